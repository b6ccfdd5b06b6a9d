//! Reader of the captured conversations (format: tests/captures/README.md).

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/captures");

/// Line of a `.frames.tsv`.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) to_service: bool,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) request_id: u64,
    pub(crate) kind: String,
    pub(crate) method: String,
    pub(crate) content: String,
}

/// Both directions of one connection.
pub(crate) struct Conversation {
    pub(crate) name: String,
    pub(crate) to_service: Vec<u8>,
    /// `None` if the file is too large for the project.
    pub(crate) to_client: Option<Vec<u8>>,
    pub(crate) lines: Vec<Line>,
}

impl Conversation {
    /// Returns the bytes of the frame of a line.
    pub(crate) fn bytes(&self, line: &Line) -> &[u8] {
        let stream = if line.to_service { &self.to_service } else { self.to_client.as_ref().unwrap() };
        &stream[line.offset as usize..][..line.length as usize]
    }
}

/// Returns every conversation of the collection.
pub(crate) fn all() -> Vec<Conversation> {
    let mut tables = Vec::new();
    for directory in entries(Path::new(CAPTURES)).into_iter().filter(|p| p.is_dir()) {
        tables.extend(entries(&directory).into_iter().filter(|p| p.to_str().unwrap().ends_with(".frames.tsv")));
    }
    assert_eq!(tables.len(), 74, "conversations in {CAPTURES}");
    tables.iter().map(|table| read(table)).collect()
}

fn read(table: &Path) -> Conversation {
    let stem = table.to_str().unwrap().strip_suffix(".frames.tsv").unwrap();
    let text = fs::read_to_string(table).unwrap();
    let lines = text.lines().skip(1).map(|line| {
        let mut columns = line.split('\t').map(str::to_owned);
        let mut next = || columns.next().unwrap_or_default();
        let (_time, dir, offset, length, request_id, kind, method) =
            (next(), next(), next(), next(), next(), next(), next());
        let (_fd, _smb, content) = (next(), next(), next());
        Line {
            to_service: dir == "c2s",
            offset: offset.parse().unwrap(),
            length: length.parse().unwrap(),
            request_id: request_id.parse().unwrap(),
            kind,
            method,
            content,
        }
    });
    Conversation {
        name: stem.strip_prefix(CAPTURES).unwrap().to_owned(),
        to_service: fs::read(format!("{stem}.c2s.bin")).unwrap(),
        to_client: fs::read(format!("{stem}.s2c.bin")).ok(),
        lines: lines.collect(),
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut list: Vec<_> = fs::read_dir(directory).unwrap().map(|e| e.unwrap().path()).collect();
    list.sort();
    list
}

/// Decodes hexadecimal digits.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

/// Encodes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
