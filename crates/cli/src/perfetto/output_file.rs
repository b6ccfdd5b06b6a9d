//! The file of a trace that this command writes, or hands to the service (`docs/spec/cli.md` §7).

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::trace_output::{lock, push_packet};

/// Bytes that are written together.
const BLOCK_BYTES: usize = 256 << 10;

/// An open output file.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    /// The name as the user gave it; `None` for standard output.
    name: Option<PathBuf>,
    /// The name, whatever the current folder is.
    path: PathBuf,
    /// Encoded packets that are not written yet.
    pending: Vec<u8>,
    written: u64,
    /// This command has created the file.
    is_new: bool,
}

impl OutputFile {
    /// Opens the file, or creates it with the mode 0600. The content of an existing file stays
    /// until [`empty`](Self::empty).
    ///
    /// # Errors
    ///
    /// It cannot be opened, another recording writes it, or it exists and must be new.
    pub(crate) fn open(name: &OsStr, must_be_new: bool) -> Result<Self, String> {
        let failed = |why: io::Error| format!("Failed to open {}: {why}", name.to_string_lossy());
        let (file, name, is_new) = if name == "-" {
            (io::stdout().as_fd().try_clone_to_owned().map_err(failed)?.into(), None, false)
        } else {
            let (file, is_new) = open(Path::new(name), must_be_new).map_err(failed)?;
            lock(&file, Path::new(name)).map_err(|failure| failure.to_string())?;
            (file, Some(PathBuf::from(name)), is_new)
        };
        let path = name.clone().unwrap_or_default();
        // The current folder changes when the process leaves the terminal.
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Self { file, name, path, pending: Vec::new(), written: 0, is_new })
    }

    /// Discards what an existing file contains.
    pub(crate) fn empty(&mut self) -> io::Result<()> {
        let is_file = self.name.is_some() && self.file.metadata()?.is_file();
        if is_file { self.file.set_len(0) } else { Ok(()) }
    }

    /// Returns a descriptor of the file for the service.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.file.as_fd().try_clone_to_owned()
    }

    /// Appends a packet.
    pub(crate) fn packet(&mut self, packet: &[u8]) -> io::Result<()> {
        push_packet(&mut self.pending, packet);
        if self.pending.len() >= BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes what is pending.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let mut rest = &self.pending[..];
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count as u64;
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The file may end inside a packet; readers take what is before it.
                    self.pending.clear();
                    return Err(error);
                }
            }
        }
        self.pending.clear();
        Ok(())
    }

    /// Bytes that this command has written.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    /// Name for messages.
    pub(crate) fn display(&self) -> String {
        self.name.as_ref().map_or_else(|| "stdout".to_owned(), |name| name.display().to_string())
    }

    /// Name, whatever the current folder is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file if it is empty and this command has created it.
    pub(crate) fn remove_if_empty(self) {
        if !self.is_new {
            return;
        }
        let Ok(meta) = self.file.metadata() else { return };
        let is_still_there = std::fs::symlink_metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (meta.dev(), meta.ino()));
        if meta.len() == 0 && is_still_there {
            // Best effort: an empty file does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Opens a file, or creates it. Returns whether it is new.
fn open(path: &Path, must_be_new: bool) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Ok(file) => return Ok((file, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && !must_be_new => {}
        Err(error) => return Err(error),
    }
    options.create(true).truncate(false);
    // A pipe or a file may be only for writing.
    let file = options.open(path).or_else(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => options.read(false).open(path),
        _ => Err(error),
    })?;
    Ok((file, false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::private_service::Folder;

    #[test]
    fn an_existing_file_is_kept_until_the_recording_begins() {
        let folder = Folder::create().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, "older").unwrap();
        let mut output = OutputFile::open(path.as_os_str(), false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"older");
        assert!(OutputFile::open(path.as_os_str(), false).unwrap_err().contains("another recording"));
        output.empty().unwrap();
        output.packet(b"abc").unwrap();
        output.flush().unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), output.written()), (b"\x0a\x03abc".to_vec(), 5));
        output.remove_if_empty();
        assert!(path.exists());
    }

    #[test]
    fn an_empty_file_goes_only_if_it_was_made_here() {
        let folder = Folder::create().unwrap();
        let (made, older) = (folder.path().join("made"), folder.path().join("older"));
        std::fs::write(&older, "").unwrap();
        for path in [&made, &older] {
            OutputFile::open(path.as_os_str(), false).unwrap().remove_if_empty();
        }
        assert_eq!((made.exists(), older.exists()), (false, true));
        assert!(OutputFile::open(older.as_os_str(), true).unwrap_err().contains("exists"));
    }
}
