//! Archives: which entries they have, and where.
//!
//! Names of entries are texts for people and manifests. Nothing is written to a file of that name.

mod tar;
mod zip;

use std::io::BufReader;

use crate::error::Error;
use crate::file_kind::FileKind;
use crate::inflate::{self, Bytes, allowed};
use crate::section::Section;

/// Entries of an archive, with those that are no traces.
pub const MAX_ENTRIES: usize = 10_000;
/// Bytes of the name of an entry.
pub const MAX_NAME_BYTES: usize = 4096;

/// Bytes that are read of a file at a time.
const BUFFER: usize = 1 << 16;

/// An entry of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) data: Data,
}

/// Place of the bytes of a file.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    Plain(Section),
    /// Entry of a zip archive, with its announced size and checksum.
    Zip {
        section: Section,
        is_deflated: bool,
        size: u64,
        crc: u32,
    },
}

impl Data {
    /// Returns how many bytes it takes where it is stored.
    pub(crate) fn stored_bytes(&self) -> u64 {
        match self {
            Self::Plain(section) | Self::Zip { section, .. } => section.len(),
        }
    }

    pub(crate) fn open(&self) -> Bytes {
        let file = |section: &Section| BufReader::with_capacity(BUFFER, section.clone());
        match self {
            Self::Plain(section) => Box::new(file(section)),
            Self::Zip { section, is_deflated, size, crc } => {
                inflate::entry(Box::new(file(section)), *is_deflated, *size, *crc, allowed(section.len()))
            }
        }
    }
}

/// Content of an archive.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Files, in the order of the archive.
    pub(crate) entries: Vec<Entry>,
    /// Entries that are left out, and other remarks.
    pub(crate) notes: Vec<String>,
    /// The archive is damaged: reason, and how much of it is read.
    pub(crate) damage: Option<String>,
}

impl Listing {
    /// Adds a file, unless it is hidden.
    fn add(&mut self, name: &[u8], data: Data) {
        let name = String::from_utf8_lossy(name).into_owned();
        if !is_hidden(&name) {
            self.entries.push(Entry { name, data });
        }
    }

    fn leave_out(&mut self, name: &[u8], why: &str) {
        self.notes.push(format!("{} is left out: {why}", String::from_utf8_lossy(name)));
    }
}

/// Lists the entries of an archive.
pub(crate) fn list(name: &str, kind: FileKind, file: &Section) -> Result<Listing, Error> {
    let listed = if kind == FileKind::Zip { zip::list(file) } else { tar::list(file) };
    listed.map_err(|why| Error::unusable(name, why))
}

/// Returns whether a name has a part that begins with a dot, like those that systems add to
/// archives.
fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.') && part != "." && part != "..")
}

/// Returns why an archive has too many entries.
fn too_many() -> String {
    format!("the archive has more than {MAX_ENTRIES} entries")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_have_a_part_that_begins_with_a_dot() {
        for name in [".DS_Store", "a/.git/b", "__MACOSX/._a"] {
            assert!(is_hidden(name), "{name}");
        }
        for name in ["a.pftrace", "./a", "../a/b", "a/./b", ""] {
            assert!(!is_hidden(name), "{name}");
        }
    }
}
