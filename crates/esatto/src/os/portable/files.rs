//! Files that the service in this process writes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

pub(crate) fn to_path(bytes: Vec<u8>) -> PathBuf {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// The file is read by nobody else: its position is ours.
pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut file = file;
    file.seek(SeekFrom::Start(offset))?;
    file.read(bytes)
}

/// Another handle on a file. It would share its position with the first, which goes on writing.
pub(crate) fn reopen(_: &File) -> io::Result<File> {
    Err(io::Error::other("a file cannot be copied while it is written on this system"))
}
