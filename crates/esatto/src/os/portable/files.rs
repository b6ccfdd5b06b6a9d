//! File operations for the service in this process.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// [`read_at`] moves the position at which another thread writes.
pub(crate) const READS_BESIDE_WRITES: bool = false;

pub(crate) fn to_path(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Reads at an offset. No other code reads the file, so its position may change.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut file = file;
    file.seek(SeekFrom::Start(offset))?;
    file.read(bytes)
}

/// Fails: another handle would share its position with the first one, which still writes.
pub(crate) fn reader(_: &File) -> io::Result<File> {
    Err(io::Error::other("a file cannot be copied while it is written on this system"))
}
