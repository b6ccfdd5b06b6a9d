//! File operations for the service in this process.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// [`read_at`] does not disturb a thread that writes the file.
pub(crate) const READS_BESIDE_WRITES: bool = true;

pub(crate) fn to_path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

pub(crate) fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(bytes, offset)
}

/// Returns a second handle for [`read_at`]. It has the access of the first one. Opening the file
/// again could give more: the program may have got the descriptor from a process that may not read
/// the file.
pub(crate) fn reader(file: &File) -> io::Result<File> {
    match file.read_at(&mut [], 0) {
        Ok(_) => file.try_clone(),
        Err(error) if error.kind() == io::ErrorKind::NotSeekable => Err(error),
        Err(_) => Err(io::Error::other("it was opened for writing only; open it for reading and writing to clone it")),
    }
}
