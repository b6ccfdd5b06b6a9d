//! File for a result. It gets its name only when the result is complete.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Destination of a filtered message.
pub(crate) struct Output {
    /// `None` if the result is not written.
    file: Option<BufWriter<File>>,
    path: PathBuf,
    /// Name of the file until it is complete. `None` for pipes and devices.
    temporary: Option<PathBuf>,
}

impl Output {
    /// Creates a file that [`finish`](Self::finish) moves to `path`. A pipe or a device is opened.
    pub(crate) fn create(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else { return Ok(Self { file: None, path: PathBuf::new(), temporary: None }) };
        let failed = |error: io::Error| format!("{}: {error}", path.display());
        let existing = std::fs::metadata(path).ok();
        if existing.as_ref().is_some_and(|meta| !meta.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(Self { file: Some(BufWriter::new(file)), path: path.to_owned(), temporary: None });
        }
        // The target of a symbolic link is replaced, not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut name = OsString::from(".");
        name.push(target.file_name().ok_or_else(|| format!("{}: not the name of a file", path.display()))?);
        name.push(format!(".{}.part", std::process::id()));
        let temporary = target.with_file_name(name);
        let part_failed = |error: io::Error| format!("{}: {error}", temporary.display());
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(part_failed)?;
        if let Some(meta) = existing {
            file.set_permissions(meta.permissions()).map_err(part_failed)?;
        }
        Ok(Self { file: Some(BufWriter::new(file)), path: target, temporary: Some(temporary) })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes).map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// Completes the file, and gives it its name.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.flush()
            .and_then(|()| self.temporary.as_ref().map_or(Ok(()), |temporary| std::fs::rename(temporary, &self.path)))
            .map_err(|error| format!("{}: {error}", self.path.display()))?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}
