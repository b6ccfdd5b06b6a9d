//! The packet that a failed write leaves torn at the end of a trace file.

use std::fs::File;
use std::io::{self, Seek as _};

use esatto_protozero::wire::decode_varint;

/// Cuts a torn packet off the end of a file, after a write that took only the first `taken` bytes
/// of these packets.
///
/// The rest of the file stays: it may have had content before this process wrote to it, and other
/// processes may append to it.
///
/// # Errors
///
/// The file cannot be shortened, as is usual for pipes, or other content follows the torn packet.
pub fn cut_torn_packet(mut file: &File, packets: &[u8], taken: usize) -> io::Result<()> {
    let torn = taken - whole_packets(packets, taken);
    if torn == 0 {
        // There may be no position to cut at: before its first write, a file that is open for
        // appending is at offset 0, even if it has content.
        return Ok(());
    }
    // The file has taken bytes, so its position is after them.
    let end = file.stream_position()?;
    match end.checked_sub(torn as u64) {
        Some(begin) if file.metadata()?.len() == end => file.set_len(begin),
        _ => Err(io::Error::other("other content follows the torn packet")),
    }
}

/// Returns how many of the first `len` bytes of a `Trace` belong to whole packets.
fn whole_packets(trace: &[u8], len: usize) -> usize {
    let mut end = 0;
    // A length follows the tag.
    while let Some((length, size)) = trace.get(end + 1..).and_then(decode_varint) {
        let next = usize::try_from(length).ok().and_then(|length| length.checked_add(end + 1 + size));
        match next.filter(|&next| next <= len) {
            Some(next) => end = next,
            None => break,
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::path::PathBuf;

    /// Three packets of 4, 2 and 5 bytes.
    const TRACE: &[u8] = b"\x0a\x02ab\x0a\x00\x0a\x03cde";

    /// A file with content, until the end of the test.
    struct Existing(PathBuf);

    impl Existing {
        fn new(test: &str, content: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("esatto-torn-{test}-{}", std::process::id()));
            std::fs::write(&path, content).expect("a new file");
            Self(path)
        }

        /// Writes this many bytes of the trace, as if the next write had failed, and cuts. Returns
        /// the content.
        fn tear(&self, file: &mut File, taken: usize) -> (bool, Vec<u8>) {
            file.write_all(&TRACE[..taken]).expect("it takes them");
            let is_cut = cut_torn_packet(file, TRACE, taken).is_ok();
            (is_cut, std::fs::read(&self.0).expect("it is there"))
        }
    }

    impl Drop for Existing {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn whole_packets_are_counted() {
        let ends: Vec<usize> = (0..=TRACE.len()).map(|len| whole_packets(TRACE, len)).collect();
        assert_eq!(ends, [0, 0, 0, 0, 4, 4, 6, 6, 6, 6, 6, 11]);
    }

    #[test]
    fn a_torn_packet_is_cut_off_and_what_was_before_it_stays() {
        for taken in 0..TRACE.len() {
            let existing = Existing::new("append", b"before");
            let mut file = File::options().append(true).open(&existing.0).expect("it is there");
            let expected = [b"before", &TRACE[..whole_packets(TRACE, taken)]].concat();
            assert_eq!(existing.tear(&mut file, taken), (true, expected), "{taken} bytes");
        }
    }

    #[test]
    fn content_after_a_torn_packet_stays() {
        let existing = Existing::new("overwrite", b"longer than the trace");
        let mut file = File::options().write(true).open(&existing.0).expect("it is there");
        assert_eq!(existing.tear(&mut file, 9), (false, b"\x0a\x02ab\x0a\x00\x0a\x03can the trace".to_vec()));
    }
}
