//! The UI in an archive.

use core::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::{INDEX, PROGRAM, UiFile};
use crate::Error;
use crate::trace_source::ReadAt;

/// Bytes that are read to find the files of an archive. Their list has some 10 KB.
const MAX_LIST_BYTES: u64 = 4 << 20;

/// An archive whose list of files has been read.
pub(super) struct Archive {
    file: Arc<File>,
    list: ZipArchive<Bounded>,
    /// Folder of the UI in the archive, with its slash; or nothing.
    folder: String,
    version: Option<String>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Read { path: path.to_owned(), source };
        let file = Arc::new(File::open(path).map_err(failed)?);
        let about = file.metadata().map_err(failed)?;
        let not_the_ui = |why: String| Error::NotTheUi { path: path.to_owned(), why };
        if !about.is_file() {
            return Err(not_the_ui("it is neither a folder nor a file".to_owned()));
        }
        let reader = Bounded { file: Arc::clone(&file), at: 0, size: about.len(), left: MAX_LIST_BYTES };
        let list = ZipArchive::new(reader).map_err(|error| not_the_ui(format!("it is no zip file: {error}")))?;
        let Some((folder, version)) = find_ui(list.file_names()) else {
            return Err(not_the_ui(format!("it has no folder with {INDEX} and {PROGRAM}")));
        };
        Ok(Self { file, list, folder, version })
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Opens a file, and inflates it while it is read: never more than the archive has promised.
    pub(super) fn get(&self, name: &str) -> io::Result<Option<UiFile>> {
        let name = format!("{}{name}", self.folder);
        let Some(index) = self.list.index_for_name(&name) else { return Ok(None) };
        // Readers of the list share nothing, so requests can be answered at the same time.
        let mut list = self.list.clone();
        let entry = list.by_index_raw(index).map_err(io::Error::other)?;
        if !entry.is_file() || entry.encrypted() {
            return Ok(None);
        }
        let size = entry.size();
        let begin = entry.data_start().ok_or_else(|| io::Error::other("it has no begin"))?;
        let end = begin.saturating_add(entry.compressed_size());
        let stored = ReadAt { file: Arc::clone(&self.file), at: begin, end };
        let bytes: Box<dyn Read + Send> = match entry.compression() {
            CompressionMethod::Stored => Box::new(stored),
            CompressionMethod::Deflated => Box::new(DeflateDecoder::new(stored)),
            other => return Err(io::Error::other(format!("{name} is compressed by {other}"))),
        };
        Ok(Some(UiFile { size, bytes }))
    }
}

/// Finds the folder with an index and a program, and the name of its version. If there are several,
/// takes the one with the shortest path.
fn find_ui<'a>(names: impl Iterator<Item = &'a str>) -> Option<(String, Option<String>)> {
    let names: std::collections::BTreeSet<&str> = names.collect();
    let mut found: Vec<(&str, Option<&str>)> = Vec::new();
    for program in names.iter().filter_map(|name| name.strip_suffix(PROGRAM)) {
        // The folder of the index is that of the program, or the one above.
        let Some(folder) = program.strip_suffix('/') else {
            found.push(("", None));
            continue;
        };
        let (above, version) = match folder.rfind('/') {
            Some(slash) => folder.split_at(slash + 1),
            None => ("", folder),
        };
        found.push((above, Some(version)));
        found.push((program, None));
    }
    found.retain(|(folder, _)| names.contains(format!("{folder}{INDEX}").as_str()));
    // The newest version, if there are several.
    found.sort_by_key(|&(folder, version)| (folder.len(), folder, core::cmp::Reverse(version)));
    let (folder, version) = found.first()?;
    Some(((*folder).to_owned(), version.map(str::to_owned)))
}

/// Reads a file that others read at the same time, but only so many bytes.
#[derive(Clone)]
struct Bounded {
    file: Arc<File>,
    at: u64,
    size: u64,
    left: u64,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(format!("its list of files has more than {MAX_LIST_BYTES} bytes")));
        }
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Seek for Bounded {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UiFiles;
    use std::io::{Cursor, Write as _};
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn archive(name: &str, files: &[(&str, &[u8])]) -> (Vec<u8>, std::path::PathBuf) {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (index, (name, bytes)) in files.iter().enumerate() {
            let method = if index % 2 == 0 { CompressionMethod::Deflated } else { CompressionMethod::Stored };
            zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
            zip.write_all(bytes).unwrap();
        }
        let bytes = zip.finish().unwrap().into_inner();
        (bytes, std::env::temp_dir().join(format!("esatto-ui-{}-{name}.zip", std::process::id())))
    }

    fn open(bytes: &[u8], path: &Path) -> Result<UiFiles, String> {
        std::fs::write(path, bytes).unwrap();
        let files = UiFiles::open(path).map_err(|error| error.to_string());
        std::fs::remove_file(path).unwrap();
        files
    }

    fn read(files: &UiFiles, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(mut file) = files.get(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.bytes.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    const UI: [(&str, &[u8]); 5] = [
        ("pkg/__init__.py", b"secret"),
        ("pkg/web/index.html", b"<html>"),
        ("pkg/web/v1.0-abc/index.html", b"<html>"),
        ("pkg/web/v1.0-abc/frontend_bundle.js", b"program program program"),
        ("pkg/web/../../evil", b"evil"),
    ];

    #[test]
    fn the_ui_is_found_in_a_wheel() {
        let (bytes, path) = archive("wheel", &UI);
        let files = open(&bytes, &path).unwrap();
        assert_eq!(files.version(), Some("v1.0-abc"));
        let program = read(&files, "v1.0-abc/frontend_bundle.js").unwrap();
        assert_eq!(program.as_deref(), Some(&b"program program program"[..]));
        assert_eq!(read(&files, "index.html").unwrap().as_deref(), Some(&b"<html>"[..]));
        for name in ["../__init__.py", "__init__.py", "../../evil", "v1.0-abc", "nothing"] {
            assert_eq!(read(&files, name).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn the_newest_version_and_the_shortest_path_count() {
        let find = |names: &[&str]| find_ui(names.iter().copied());
        let at = |folder: &str, version: Option<&str>| Some((folder.to_owned(), version.map(str::to_owned)));
        assert_eq!(find(&["index.html", "v1/frontend_bundle.js", "v2/frontend_bundle.js"]), at("", Some("v2")));
        assert_eq!(find(&["x/index.html", "x/frontend_bundle.js"]), at("x/", None));
        assert_eq!(find(&["index.html", "frontend_bundle.js"]), at("", None));
        assert_eq!(find(&["index.html", "a/b/frontend_bundle.js"]), None);
        assert_eq!(find(&["v1/frontend_bundle.js"]), None);
    }

    #[test]
    fn a_file_that_is_no_archive_says_so() {
        let (_, path) = archive("text", &[]);
        let error = open(b"<html>", &path).unwrap_err();
        assert!(error.contains("is not a copy of Perfetto's UI: it is no zip file"), "{error}");
        let (bytes, path) = archive("other", &[("index.html", b"")]);
        let error = open(&bytes, &path).unwrap_err();
        assert!(error.contains("it has no folder with index.html and frontend_bundle.js"), "{error}");
    }

    #[test]
    fn a_list_without_end_is_not_read() {
        let long = "x".repeat(60_000);
        let names: Vec<_> = (0..80).map(|index| format!("{index}{long}")).collect();
        let files: Vec<_> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
        let (bytes, path) = archive("list", &files);
        let error = open(&bytes, &path).unwrap_err();
        assert!(error.contains("it is no zip file"), "{error}");
    }

    #[test]
    fn a_bomb_is_refused_by_its_size() {
        let mut files = UI.to_vec();
        files.push(("pkg/web/bomb", b"zeros"));
        let (mut bytes, path) = archive("bomb", &files);
        // The size of the last file, in the list.
        let entry = bytes.windows(4).rposition(|bytes| bytes == b"PK\x01\x02").unwrap();
        bytes[entry + 24..entry + 28].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
        let files = open(&bytes, &path).unwrap();
        let error = files.get("bomb").map(|_| ()).unwrap_err().to_string();
        assert_eq!(error, "bomb has 2147483647 bytes, more than 134217728");
    }

    #[test]
    fn damaged_archives_end_in_errors() {
        let (bytes, path) = archive("damaged", &UI);
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                if let Ok(files) = open(&bytes, &path) {
                    let _ = read(&files, "index.html").map(|bytes| bytes.map(|bytes| bytes.len()));
                    let _ = read(&files, "v1.0-abc/frontend_bundle.js");
                }
            }
        }
    }
}
