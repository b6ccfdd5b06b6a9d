//! New file that gets its name when it is complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, RenameFlags, linkat, renameat_with};
use rustix::io::Errno;

use super::file_names::name_beside;
use super::target::{nameless, proc_path, temporary_beside};

/// A file of which other programs see nothing until it is complete. If this program is killed, the
/// file is gone, as far as the file system has files without names.
#[derive(Debug)]
pub(crate) struct NewFile {
    file: File,
    /// Its name beside the later one, if it needs one.
    temporary: Option<PathBuf>,
}

impl NewFile {
    /// Creates a file in the folder of `target`, readable only for its owner.
    pub(crate) fn beside(target: &Path) -> io::Result<Self> {
        if let Some(file) = nameless(&name_beside(target)?) {
            return Ok(Self { file, temporary: None });
        }
        let (temporary, file) = temporary_beside(target)?;
        Ok(Self { file, temporary: Some(temporary) })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Gives it its name. An existing file is replaced only if `replaces` is true; otherwise the
    /// error is [`io::ErrorKind::AlreadyExists`].
    pub(crate) fn name(mut self, target: &Path, replaces: bool) -> io::Result<()> {
        let own = proc_path(&self.file);
        let link = |to: &Path| linkat(CWD, &*own, CWD, to, AtFlags::SYMLINK_FOLLOW);
        let temporary = match self.temporary.clone() {
            Some(temporary) => temporary,
            None if !replaces => return link(target).map_err(Into::into),
            None => {
                let temporary = name_beside(target)?;
                link(&temporary)?;
                self.temporary = Some(temporary.clone());
                temporary
            }
        };
        if !replaces {
            match renameat_with(CWD, &temporary, CWD, target, RenameFlags::NOREPLACE) {
                // The file system has no such operation.
                Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(target).is_ok() => {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                Err(Errno::INVAL | Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
                Ok(()) => {
                    self.temporary = None;
                    return Ok(());
                }
            }
        }
        fs::rename(&temporary, target)?;
        self.temporary = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}
