//! Files in memory, which the code of one process finds by their names.

use std::fs::File;
use std::io;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use linux::{create, with_name};

#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod linux {
    use std::ffi::CString;
    use std::io::Read as _;

    use super::{File, io};
    use crate::os::kernel;

    /// Makes an empty file.
    pub(crate) fn create(name: &str) -> io::Result<File> {
        kernel::memory_file(&CString::new(name)?)
    }

    /// Returns the texts of the files of this process with a name, as far as they are not longer.
    pub(crate) fn with_name(name: &str, max_bytes: u64) -> impl Iterator<Item = String> {
        let link = format!("/memfd:{name} (deleted)");
        let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        descriptors.filter_map(move |entry| {
            let path = entry.path();
            if std::fs::read_link(&path).ok()?.to_str() != Some(&link) {
                return None;
            }
            let mut text = String::new();
            // A handle of its own, which begins at the first byte.
            File::open(path).ok()?.take(max_bytes).read_to_string(&mut text).ok()?;
            Some(text)
        })
    }
}

/// Fails: there are no such files.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(esatto_portable))))]
pub(crate) fn create(_: &str) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Finds none.
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(esatto_portable))))]
pub(crate) fn with_name(_: &str, _: u64) -> impl Iterator<Item = String> {
    core::iter::empty()
}
