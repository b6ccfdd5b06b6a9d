//! The UI in a folder.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;

use super::{PROGRAM, UiFile};
use crate::Error;

/// A folder that is open. It stays the same if its path comes to lead elsewhere.
#[derive(Debug)]
pub(super) struct Folder {
    folder: OwnedFd,
    version: Option<String>,
}

impl Folder {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| Error::Read { path: path.to_owned(), source };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let mut folder = Self { folder, version: None };
        if folder.get(PROGRAM).is_ok_and(|file| file.is_some()) {
            return Ok(folder);
        }
        let mut versions = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            if folder.get(&format!("{name}/{PROGRAM}")).is_ok_and(|file| file.is_some()) {
                versions.push(name.to_owned());
            }
        }
        versions.sort();
        folder.version = versions.pop();
        if folder.version.is_none() {
            return Err(Error::NotTheUi { path: path.to_owned(), why: format!("it has no {PROGRAM}") });
        }
        Ok(folder)
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Opens a file. Symbolic links are not followed: they may lead out of the folder.
    pub(super) fn get(&self, name: &str) -> io::Result<Option<UiFile>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let mut at: Option<OwnedFd> = None;
        let mut names = name.split('/').peekable();
        while let Some(name) = names.next() {
            let flags = if names.peek().is_some() { flags | OFlags::DIRECTORY } else { flags };
            let folder = at.as_ref().unwrap_or(&self.folder).as_fd();
            match openat(folder, name, flags, Mode::empty()) {
                Ok(file) => at = Some(file),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        let Some(file) = at.map(File::from) else { return Ok(None) };
        let about = file.metadata()?;
        if !about.is_file() {
            return Ok(None);
        }
        Ok(Some(UiFile { size: about.len(), bytes: Box::new(file) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UiFiles;
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A folder in which `f` makes files. It goes with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("esatto-ui-{}-{name}", std::process::id()));
            fs::create_dir_all(path.join("ui/v1.0-abc")).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn read(files: &UiFiles, name: &str) -> Option<String> {
        let mut text = String::new();
        files.get(name).unwrap()?.bytes.read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn nothing_outside_of_the_folder_is_opened() {
        let scratch = Scratch::new("outside");
        let ui = scratch.0.join("ui");
        fs::write(scratch.0.join("secret"), "secret").unwrap();
        fs::write(ui.join("index.html"), "index").unwrap();
        fs::write(ui.join("v1.0-abc/frontend_bundle.js"), "program").unwrap();
        symlink(scratch.0.join("secret"), ui.join("link")).unwrap();
        symlink(&scratch.0, ui.join("folder")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, ui.join("pipe"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .unwrap();
        let files = UiFiles::open(&ui).unwrap();
        assert_eq!(files.version(), Some("v1.0-abc"));
        assert_eq!(read(&files, "index.html").as_deref(), Some("index"));
        assert_eq!(read(&files, "v1.0-abc/frontend_bundle.js").as_deref(), Some("program"));
        for name in ["link", "folder/secret", "../secret", "pipe", "v1.0-abc", "nothing", "index.html/x"] {
            assert_eq!(read(&files, name), None, "{name}");
        }
    }

    #[test]
    fn a_folder_without_the_ui_says_what_it_lacks() {
        let scratch = Scratch::new("empty");
        let error = UiFiles::open(&scratch.0.join("ui")).unwrap_err().to_string();
        assert!(error.ends_with("/ui is not a copy of Perfetto's UI: it has no frontend_bundle.js"), "{error}");
        fs::write(scratch.0.join("ui/frontend_bundle.js"), "").unwrap();
        let error = UiFiles::open(&scratch.0.join("ui")).unwrap_err().to_string();
        assert!(error.ends_with("it has no index.html"), "{error}");
        fs::write(scratch.0.join("ui/index.html"), "").unwrap();
        assert_eq!(UiFiles::open(&scratch.0.join("ui")).unwrap().version(), None);
    }
}
