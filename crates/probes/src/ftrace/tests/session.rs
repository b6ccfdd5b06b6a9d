//! [`Session`]: an encoder with its events, whose packets can be read back.

use std::fs;
use std::path::Path;

use esatto_schema::{FtraceEventBundleReader, TracePacketReader};

use crate::data_source::Observed;
use crate::ftrace::Surroundings;
use crate::ftrace::{EventTable, PageLayout, PrintkFormats, SourceEncoder, SourceOptions};
use crate::test_writer::TestWriter;

/// A table, and what a source wants of it.
pub(crate) struct Session {
    pub(crate) table: EventTable,
    pub(crate) options: SourceOptions,
}

/// Result of some pages.
pub(crate) struct Outcome {
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) observed: Observed,
    pub(crate) encoder: SourceEncoder,
}

impl Session {
    /// A session without events on pages of 4 KiB.
    pub(crate) fn new() -> Self {
        let table = EventTable::new(PageLayout::FALLBACK, PrintkFormats::default());
        Self { table, options: SourceOptions::default() }
    }

    /// Adds an event whose format was recorded.
    pub(crate) fn with(self, group: &str, name: &str) -> Self {
        let format = recorded(&format!("formats/{name}.format"));
        self.with_format(group, name, &format)
    }

    /// Adds an event.
    pub(crate) fn with_format(mut self, group: &str, name: &str, format: &[u8]) -> Self {
        let id = self.table.look_up(group, name, || Some(format.to_vec()));
        self.options.events.insert(id.expect("a format"));
        self
    }

    pub(crate) fn compact(mut self) -> Self {
        self.options.compact_sched = true;
        self
    }

    /// Encodes pages of CPU 1.
    pub(crate) fn encode(self, pages: &[u8]) -> Outcome {
        let mut encoder = SourceEncoder::new(self.options, &self.table);
        let mut test = TestWriter::new();
        let mut writer = test.writer();
        let mut observed = Observed::default();
        encoder.begin_read();
        let mut around = Surroundings {
            table: &self.table,
            symbols: None,
            clock: None,
            writer: &mut writer,
            observed: &mut observed,
        };
        encoder.encode(1, pages, &mut around);
        drop(writer);
        Outcome { packets: test.packets(), observed, encoder }
    }
}

impl Outcome {
    /// Iterates over the bundles of all packets.
    pub(crate) fn bundles(&self) -> impl Iterator<Item = FtraceEventBundleReader<'_>> {
        self.packets.iter().filter_map(|packet| TracePacketReader::new(packet).ftrace_events())
    }
}

/// Reads a file of `tests/pages`.
pub(crate) fn recorded(path: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages").join(path);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
