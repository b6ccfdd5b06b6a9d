//! Tables of the entries that a sequence writes once and then refers to by number
//! (`docs/spec/track-event.md` §10). The entries are texts, source locations and stack frames that
//! are known only at run time. Names of trace points are not among them.
//!
//! An entry gets its number at the first use. Its definition waits in [`Tables::pending`] until the
//! event ends, because it follows the event in the same packet.

use std::collections::HashMap;

use esatto_protozero::{HeapBuffer, Message};
use esatto_schema::InternedDataWriter;

use crate::event::text_hash::TextHashState;
use crate::event::{Frame, Location};

/// Entries that one table remembers. Later ones are written in full, or defined again each time.
const MAX_ENTRIES: usize = 4096;

/// Longer texts are not remembered, because they are rarely seen twice.
const MAX_TEXT_BYTES: usize = 1024;

/// The first number of locations that are known only at run time. Locations that are constants of
/// the program have the same numbers, from 1, in all sequences.
const FIRST_DYNAMIC_LOCATION: u64 = 1 << 20;

/// The first number that other libraries assign in these tables. This crate assigns the numbers
/// below.
pub(crate) const FIRST_FOREIGN: u64 = 1 << 24;

/// The tables of one sequence. Empty tables take no memory beyond their own size.
#[derive(Default)]
pub(crate) struct Tables {
    /// Fields of `InternedData` that the current event has to define.
    pending: HeapBuffer<InternedDataWriter<'static>>,
    string_values: Table,
    type_names: Table,
    correlations: Table,
    locations: Table,
    static_locations: crate::name::Announced,
    functions: Table,
    source_paths: Table,
    frames: Table,
    callstacks: Table,
    /// Entries of other libraries, by the number of the table.
    foreign: Vec<(u32, Table)>,
    log_bodies: u64,
}

impl Tables {
    /// Returns the number of a string value; `None`: write it in full.
    pub(crate) fn string_value(&mut self, text: &str) -> Option<u64> {
        match self.string_values.text(text.as_bytes())? {
            Found::Known(iid) => Some(iid),
            Found::New(iid) => {
                self.pending.message().debug_annotation_string_values().iid(iid).str(text.as_bytes());
                Some(iid)
            }
        }
    }

    /// Returns the number of the name of a message type; `None`: write it in full.
    pub(crate) fn type_name(&mut self, name: &str) -> Option<u64> {
        match self.type_names.text(name.as_bytes())? {
            Found::Known(iid) => Some(iid),
            Found::New(iid) => {
                self.pending.message().debug_annotation_value_type_names().iid(iid).name(name);
                Some(iid)
            }
        }
    }

    /// Returns the number of a correlation id; `None`: write it in full.
    pub(crate) fn correlation(&mut self, id: &str) -> Option<u64> {
        match self.correlations.text(id.as_bytes())? {
            Found::Known(iid) => Some(iid),
            Found::New(iid) => {
                self.pending.message().correlation_id_str().iid(iid).str(id.as_bytes());
                Some(iid)
            }
        }
    }

    /// Returns the number of a source location.
    pub(crate) fn location(&mut self, location: &Location<'_>) -> u64 {
        let (iid, new) = match location.place_number() {
            Some(number) => (u64::from(number), !self.static_locations.check_and_set(number)),
            None => match self.locations.numbered(&location.key()) {
                Found::Known(iid) => (FIRST_DYNAMIC_LOCATION + iid, false),
                Found::New(iid) => (FIRST_DYNAMIC_LOCATION + iid, true),
            },
        };
        if new {
            let mut entry = self.pending.message();
            location.write(entry.source_locations().iid(iid));
        }
        iid
    }

    /// Returns a number for the text of a log message. These texts rarely repeat, so none is
    /// remembered.
    pub(crate) fn log_body(&mut self, body: &str) -> u64 {
        self.log_bodies += 1;
        self.pending.message().log_message_body().iid(self.log_bodies).body(body);
        self.log_bodies
    }

    /// Returns the number of a call stack, whose outermost caller comes first.
    pub(crate) fn callstack(&mut self, frames: &[Frame<'_>]) -> u64 {
        let frame_ids: Vec<u64> = frames.iter().map(|frame| self.frame(frame)).collect();
        let key: Vec<u8> = frame_ids.iter().flat_map(|id| id.to_le_bytes()).collect();
        match self.callstacks.numbered(&key) {
            Found::Known(iid) => iid,
            Found::New(iid) => {
                let mut entry = self.pending.message();
                let mut callstack = entry.callstacks();
                callstack.iid(iid);
                for id in frame_ids {
                    callstack.frame_ids(id);
                }
                iid
            }
        }
    }

    fn frame(&mut self, frame: &Frame<'_>) -> u64 {
        let function = match self.functions.numbered(frame.function.as_bytes()) {
            Found::Known(iid) => iid,
            Found::New(iid) => {
                self.pending.message().function_names().iid(iid).str(frame.function.as_bytes());
                iid
            }
        };
        // 0 is not a valid number: the file is unknown.
        let source = frame.file.map_or(0, |file| match self.source_paths.numbered(file.as_bytes()) {
            Found::Known(iid) => iid,
            Found::New(iid) => {
                self.pending.message().source_paths().iid(iid).str(file.as_bytes());
                iid
            }
        });
        let key = [function, source, u64::from(frame.line.unwrap_or(0))].map(u64::to_le_bytes);
        match self.frames.numbered(key.as_flattened()) {
            Found::Known(iid) => iid,
            Found::New(iid) => {
                let mut entry = self.pending.message();
                let mut out = entry.frames();
                out.iid(iid).function_name_id(function);
                if source != 0 {
                    out.source_path_iid(source);
                }
                if let Some(line) = frame.line {
                    out.line_number(line);
                }
                iid
            }
        }
    }

    /// Returns the number of an entry that another library names, in any table, and whether the
    /// sequence has announced it.
    pub(crate) fn foreign(&mut self, table: u32, entry: &[u8]) -> (u64, bool) {
        let index = self.foreign.iter().position(|(number, _)| *number == table).unwrap_or_else(|| {
            self.foreign.push((table, Table::default()));
            self.foreign.len() - 1
        });
        match self.foreign[index].1.numbered(entry) {
            Found::Known(number) => (FIRST_FOREIGN + number, true),
            Found::New(number) => (FIRST_FOREIGN + number, false),
        }
    }

    /// As [`foreign`](Self::foreign), for a text. The event announces the text if the sequence has
    /// not done so.
    pub(crate) fn foreign_text(&mut self, table: u32, text: &[u8]) -> u64 {
        let (iid, known) = self.foreign(table, text);
        if !known {
            let mut data = self.pending.message();
            let mut entry = data.message().begin(table);
            entry.varint(1, iid);
            entry.bytes(2, text);
        }
        iid
    }

    /// Returns whether the event that ends has to define something.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Writes the definitions that the event needs into the `InternedData` of its packet.
    pub(crate) fn define(&mut self, interned_data: &mut Message<'_>) {
        interned_data.raw(self.pending.as_slice());
        self.pending.clear();
    }

    /// Forgets everything, because the state of the sequence was cleared.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
        self.string_values.clear();
        self.type_names.clear();
        self.correlations.clear();
        self.locations.clear();
        self.static_locations.clear();
        self.functions.clear();
        self.source_paths.clear();
        self.frames.clear();
        self.callstacks.clear();
        self.foreign.iter_mut().for_each(|(_, table)| table.clear());
        self.log_bodies = 0;
    }
}

impl core::fmt::Debug for Tables {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tables").finish_non_exhaustive()
    }
}

enum Found {
    Known(u64),
    /// Not defined yet.
    New(u64),
}

/// Numbers of one kind, from 1.
#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<Box<[u8]>, u64, TextHashState>,
    last: u64,
}

impl Table {
    /// Returns the number of an entry. In a full table, an unknown entry gets a new number each
    /// time.
    fn numbered(&mut self, key: &[u8]) -> Found {
        if let Some(&iid) = self.numbers.get(key) {
            return Found::Known(iid);
        }
        self.last += 1;
        if self.numbers.len() < MAX_ENTRIES {
            self.numbers.insert(key.into(), self.last);
        }
        Found::New(self.last)
    }

    /// Returns the number of a text that could also be written in full; `None` if it is long, or
    /// unknown and the table is full.
    fn text(&mut self, text: &[u8]) -> Option<Found> {
        let is_full = self.numbers.len() >= MAX_ENTRIES && !self.numbers.contains_key(text);
        (text.len() <= MAX_TEXT_BYTES && !is_full).then(|| self.numbered(text))
    }

    fn clear(&mut self) {
        self.numbers.clear();
        self.last = 0;
    }
}

#[cfg(test)]
mod tests {
    use esatto_schema::InternedDataReader;

    use super::*;

    fn pending(tables: &mut Tables) -> Vec<u8> {
        let mut buffer = HeapBuffer::new();
        tables.define(&mut buffer.message());
        buffer.to_vec()
    }

    #[test]
    fn a_text_is_defined_once_until_the_tables_are_cleared() {
        let mut tables = Tables::default();
        for _ in 0..2 {
            assert_eq!(tables.string_value("a"), Some(1));
            assert_eq!(tables.string_value("b"), Some(2));
            assert_eq!(tables.type_name("a"), Some(1), "each table counts for itself");
            let bytes = pending(&mut tables);
            let data = InternedDataReader::new(&bytes);
            let texts: Vec<_> = data.debug_annotation_string_values().map(|s| (s.iid(), s.str())).collect();
            assert_eq!(texts, [(Some(1), Some(&b"a"[..])), (Some(2), Some(&b"b"[..]))]);
            assert_eq!(tables.string_value("b"), Some(2));
            assert!(!tables.has_pending());
            tables.clear();
        }
    }

    #[test]
    fn a_full_table_takes_no_new_entries() {
        let mut tables = Tables::default();
        for n in 0..MAX_ENTRIES {
            assert!(tables.string_value(&n.to_string()).is_some());
        }
        assert_eq!(tables.string_value("one more"), None);
        assert_eq!(tables.string_value("7"), Some(8));
        assert_eq!(tables.correlation(&"long".repeat(1000)), None);
        let first = tables.log_body("same");
        assert_ne!(first, tables.log_body("same"));
    }

    #[test]
    fn frames_share_their_texts() {
        let mut tables = Tables::default();
        let main = Frame::new("main").at("main.rs", 3);
        let stacks = [vec![main], vec![main, Frame::new("work").at("main.rs", 9)], vec![main]];
        let iids: Vec<_> = stacks.iter().map(|stack| tables.callstack(stack)).collect();
        assert_eq!(iids, [1, 2, 1]);
        let bytes = pending(&mut tables);
        let data = InternedDataReader::new(&bytes);
        assert_eq!(data.source_paths().count(), 1);
        assert_eq!(data.function_names().count(), 2);
        assert_eq!(data.frames().map(|f| f.line_number()).collect::<Vec<_>>(), [Some(3), Some(9)]);
        assert_eq!(data.callstacks().nth(1).expect("two").frame_ids().collect::<Vec<_>>(), [1, 2]);
    }
}
