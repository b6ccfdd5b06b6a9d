//! The bytes of the one trace that a server shows.

use core::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use crate::Error;
use crate::http::Body;

/// A trace with its name.
#[derive(Clone, Debug)]
pub struct TraceSource {
    bytes: Bytes,
    /// The name in an address: only characters that need no escape there.
    url_name: String,
}

#[derive(Clone)]
enum Bytes {
    File(Arc<File>, u64),
    Memory(Arc<[u8]>),
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(_, size) => write!(f, "a file of {size} bytes"),
            Self::Memory(bytes) => write!(f, "{} bytes", bytes.len()),
        }
    }
}

impl TraceSource {
    /// Opens a file. Pipes and devices are read into memory.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if about.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        if about.is_file() {
            return Ok(Self { bytes: Bytes::File(file.into(), about.len()), url_name: plain(&name) });
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        Ok(Self::from_bytes(bytes, &name))
    }

    /// A trace in memory.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>, name: &str) -> Self {
        Self { bytes: Bytes::Memory(bytes.into()), url_name: plain(name) }
    }

    /// The name of the trace, for an address.
    #[must_use]
    pub fn url_name(&self) -> &str {
        &self.url_name
    }

    /// The bytes of the trace, for an answer.
    pub(crate) fn body(&self) -> Body {
        match &self.bytes {
            Bytes::File(file, size) => Body::stream(*size, ReadAt { file: Arc::clone(file), at: 0, end: *size }),
            Bytes::Memory(bytes) => Body::Shared(Arc::clone(bytes)),
        }
    }
}

/// Reads a part of a file that others read at the same time.
#[derive(Debug)]
pub(crate) struct ReadAt {
    pub(crate) file: Arc<File>,
    pub(crate) at: u64,
    pub(crate) end: u64,
}

impl Read for ReadAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = buffer.len().min(left);
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Replaces all that needs an escape in an address. Perfetto's UI shows the name as it is there.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~".contains(letter);
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    // A browser removes these parts of a path.
    if matches!(plain.as_str(), "" | "." | "..") { "trace".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_need_no_escapes_in_addresses() {
        for (name, plain) in [
            ("a-b_c.pftrace", "a-b_c.pftrace"),
            ("my trace?#&.pb", "my_trace___.pb"),
            ("é/\"<>%41", "______41"),
            ("..", "trace"),
            ("", "trace"),
        ] {
            assert_eq!(TraceSource::from_bytes(Vec::new(), name).url_name(), plain);
        }
    }

    #[test]
    fn a_folder_is_no_trace() {
        let error = TraceSource::open(Path::new("/")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read /: "), "{error}");
        assert!(TraceSource::open(Path::new("/nonexistent/t.pftrace")).is_err());
    }
}
