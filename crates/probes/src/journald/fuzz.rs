//! Check of the journal reader for a fuzzer.

use esatto_schema::SystemdJournaldConfigReader;

use super::bytes_at::BytesAt;
use super::field::Values;
use super::filter::Filter;
use super::journal_file::{JournalFile, ReadError};

/// Reads a journal file from both ends of its list of entries.
///
/// Real files have megabytes of empty hash tables after the header. So the first eight bytes are
/// position and length of zeros, which the bytes after them leave out.
pub fn fuzz(bytes: &[u8]) {
    let Some((hole, bytes)) = bytes.split_first_chunk::<8>() else { return };
    let [at, length] =
        [&hole[..4], &hole[4..]].map(|half| half.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)));
    let file = FileWithHole { bytes, at, length };
    let filter = Filter::new(&SystemdJournaldConfigReader::new(&[]));
    let mut values = Values::default();
    let Ok(mut journal) = JournalFile::open(&file) else { return };
    let mut entries = 0;
    loop {
        match journal.next() {
            Ok(Some(entry)) => {
                assert!(entry.bytes >= 64, "an entry is larger than its header");
                journal.read_values(&filter, &mut values);
            }
            Ok(None) | Err(ReadError::File(_)) => break,
            Err(ReadError::Entry) => {}
        }
        entries += 1;
        // A list of entries is in the file, and in the order of their offsets.
        assert!(entries <= bytes.len() as u64 + length, "entries appear once");
    }
    let Ok(mut journal) = JournalFile::open(&file) else { return };
    if journal.skip_to_end().is_ok() {
        assert!(matches!(journal.next(), Ok(None) | Err(ReadError::File(_))), "nothing is after the end");
    }
}

struct FileWithHole<'a> {
    bytes: &'a [u8],
    at: u64,
    length: u64,
}

impl BytesAt for &FileWithHole<'_> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(at) = offset.checked_add(filled as u64) else { break };
            let rest = &mut buffer[filled..];
            let hole_end = self.at + self.length;
            let read = if at < self.at {
                let before = usize::try_from(self.at - at).unwrap_or(usize::MAX).min(rest.len());
                self.bytes.read_at(at, &mut rest[..before])
            } else if at < hole_end {
                let inside = usize::try_from(hole_end - at).unwrap_or(usize::MAX).min(rest.len());
                rest[..inside].fill(0);
                inside
            } else {
                self.bytes.read_at(at - self.length, rest)
            };
            if read == 0 {
                break;
            }
            filled += read;
        }
        filled
    }
}
