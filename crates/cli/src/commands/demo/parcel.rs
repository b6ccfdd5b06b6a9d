//! Parcel format of the pipes between the stages: one parcel per file.
//!
//! ```text
//! u64 LE id | u64 LE file size | u32 LE checksum | u32 LE path length | u32 LE content length | path | content
//! ```

use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Longest path of a parcel; file systems have no longer ones.
const MAX_PATH_BYTES: usize = 4096;
/// Longest content: the largest file that is read ([`super::MAX_FILE_BYTES`]), if compression
/// enlarged it.
const MAX_CONTENT_BYTES: usize = super::MAX_FILE_BYTES + (super::MAX_FILE_BYTES >> 4) + 1024;
const HEADER_BYTES: usize = 28;

/// One file on its way through the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parcel {
    /// Unique within a demo; also the flow that connects its slices.
    pub(crate) id: u64,
    pub(crate) size_bytes: u64,
    pub(crate) checksum: u32,
    pub(crate) path: PathBuf,
    /// Compressed content; empty between scanner and cruncher.
    pub(crate) content: Vec<u8>,
}

impl Parcel {
    /// Writes the parcel. The caller flushes.
    pub(crate) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt as _;
        let path = self.path.as_os_str().as_bytes();
        let mut header = [0; HEADER_BYTES];
        header[0..8].copy_from_slice(&self.id.to_le_bytes());
        header[8..16].copy_from_slice(&self.size_bytes.to_le_bytes());
        header[16..20].copy_from_slice(&self.checksum.to_le_bytes());
        header[20..24].copy_from_slice(&u32_len(path)?.to_le_bytes());
        header[24..28].copy_from_slice(&u32_len(&self.content)?.to_le_bytes());
        out.write_all(&header)?;
        out.write_all(path)?;
        out.write_all(&self.content)
    }

    /// Reads the next parcel; `None` at the end of the pipe.
    pub(crate) fn read_from(input: &mut impl Read) -> io::Result<Option<Self>> {
        use std::os::unix::ffi::OsStringExt as _;
        let mut header = [0; HEADER_BYTES];
        let first = loop {
            match input.read(&mut header) {
                Ok(0) => return Ok(None),
                Ok(n) => break n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        };
        input.read_exact(&mut header[first..])?;
        let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let (path_len, content_len) = (u32_at(20) as usize, u32_at(24) as usize);
        if path_len > MAX_PATH_BYTES || content_len > MAX_CONTENT_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a parcel announces more bytes than a parcel may hold",
            ));
        }
        let mut path = vec![0; path_len];
        input.read_exact(&mut path)?;
        let mut content = vec![0; content_len];
        input.read_exact(&mut content)?;
        Ok(Some(Self {
            id: u64_at(0),
            size_bytes: u64_at(8),
            checksum: u32_at(16),
            path: std::ffi::OsString::from_vec(path).into(),
            content,
        }))
    }
}

fn u32_len(bytes: &[u8]) -> io::Result<u32> {
    u32::try_from(bytes.len()).map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "longer than 4 GiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parcels_come_out_as_they_went_in() {
        let sent = Parcel { id: 7, size_bytes: 1 << 40, checksum: 9, path: "/a/b".into(), content: vec![1, 2, 3] };
        let mut pipe = Vec::new();
        sent.write_to(&mut pipe).unwrap();
        Parcel::default().write_to(&mut pipe).unwrap();
        let mut input = pipe.as_slice();
        assert_eq!(Parcel::read_from(&mut input).unwrap(), Some(sent));
        assert_eq!(Parcel::read_from(&mut input).unwrap(), Some(Parcel::default()));
        assert_eq!(Parcel::read_from(&mut input).unwrap(), None);
    }

    #[test]
    fn an_absurd_length_is_refused_before_anything_is_allocated() {
        let mut pipe = vec![0; HEADER_BYTES];
        pipe[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Parcel::read_from(&mut pipe.as_slice()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
