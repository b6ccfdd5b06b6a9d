//! [`BytesAt`]: bytes that are read by their offset.

use std::fs::File;

/// Bytes that are read by their offset. Another process may change and extend them meanwhile.
pub(crate) trait BytesAt {
    /// Reads into `buffer` and returns how many bytes there were: fewer only at the end, or if the
    /// rest cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize;
}

impl BytesAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(at) = offset.checked_add(filled as u64) else { break };
            match std::os::unix::fs::FileExt::read_at(self, &mut buffer[filled..], at) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(why) if why.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        filled
    }
}

impl BytesAt for &[u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let filled = rest.len().min(buffer.len());
        buffer[..filled].copy_from_slice(&rest[..filled]);
        filled
    }
}
