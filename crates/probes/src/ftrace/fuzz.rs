//! Entry points for the fuzzers and the benches.

use esatto::producer::TraceWriter;

use super::cpu_stats::{CpuStats, kprobe_hits_and_misses};
use super::undo::{Entry, left_to_undo};
use crate::data_source::Observed;
use crate::ftrace::{
    EventTable, GenericEncoding, KernelSymbols, KernelSymbolsParser, PageLayout, PrintkFormats, SourceEncoder,
    SourceOptions, Surroundings,
};

/// Encoder of the pages of a ring buffer.
#[derive(Debug)]
pub struct PageEncoder {
    table: EventTable,
    symbols: KernelSymbols,
    encoder: SourceEncoder,
    observed: Observed,
}

impl PageEncoder {
    /// Makes an encoder of events, given by group, name and `format` file. Events without a valid
    /// file are left out. Pages have `page_size` bytes.
    pub fn new<'a>(
        events: impl IntoIterator<Item = (&'a str, &'a str, &'a [u8])>,
        page_size: usize,
        compact_sched: bool,
        named_generic: bool,
    ) -> Self {
        let mut table = EventTable::new(PageLayout::FALLBACK.with_page_size(page_size), PrintkFormats::default());
        let mut options = SourceOptions { compact_sched, ..SourceOptions::default() };
        if named_generic {
            options.generic_encoding = GenericEncoding::Named;
        }
        for (group, name, format) in events {
            if let Some(id) = table.look_up(group, name, || Some(format.to_vec())) {
                options.events.insert(id);
            }
        }
        let encoder = SourceEncoder::new(options, &table);
        Self { table, symbols: KernelSymbols::default(), encoder, observed: Observed::default() }
    }

    /// Sets the names of functions, from a file as `/proc/kallsyms`.
    pub fn set_symbols(&mut self, kallsyms: &[u8]) {
        self.symbols = KernelSymbols::parse(kallsyms);
    }

    /// Writes the events of whole pages.
    pub fn encode(&mut self, cpu: u32, pages: &[u8], writer: &mut TraceWriter) {
        self.encoder.begin_read();
        self.observed.tids.clear();
        self.observed.renamed.clear();
        self.observed.inodes.clear();
        let mut around = Surroundings {
            table: &self.table,
            symbols: Some(&self.symbols),
            clock: None,
            writer,
            observed: &mut self.observed,
        };
        self.encoder.encode(cpu, pages, &mut around);
    }
}

/// Parses a `format` file, as the file of an event that the schema has and of one that it does not
/// have.
pub fn format(bytes: &[u8]) {
    let mut table = EventTable::new(PageLayout::FALLBACK, PrintkFormats::default());
    for (group, name) in [("sched", "sched_switch"), ("raw_syscalls", "sys_enter"), ("fuzz", "fuzz")] {
        if let Some(id) = table.look_up(group, name, || Some(bytes.to_vec())) {
            assert_eq!(table.name_of(id), Some((group, name)));
        }
    }
    let _ = PageLayout::parse(bytes);
}

/// Parses files of symbols, whole and in pieces. Names are found for all addresses.
pub fn symbols(bytes: &[u8]) {
    let symbols = KernelSymbols::parse(bytes);
    let mut parser = KernelSymbolsParser::new();
    bytes.chunks(7).for_each(|piece| parser.push(piece));
    assert!(parser.finish() == symbols);
    let formats = PrintkFormats::parse(bytes);
    let mut name = Vec::new();
    for word in bytes.split(|byte| !byte.is_ascii_hexdigit()).chain([&b"ffffffff81000000"[..], b"0"]) {
        let address = word
            .iter()
            .fold(0_u64, |value, digit| value << 4 | u64::from((*digit as char).to_digit(16).unwrap_or_default()));
        let _ = symbols.look_up(address, &mut name);
        let _ = formats.get(address);
    }
}

/// Parses the journal of a killed daemon. If what is left to undo is written again, it is the same.
pub fn changes(bytes: &[u8]) {
    let left = left_to_undo(bytes);
    let mut again = Vec::new();
    for undo in left.iter().rev() {
        assert!(undo.path.is_absolute(), "{}", undo.path.display());
        Entry::Changed(undo.clone()).write_to(&mut again);
    }
    assert_eq!(left_to_undo(&again), left);
    for undo in &left {
        Entry::Undone(undo.path.clone()).write_to(&mut again);
    }
    assert_eq!(left_to_undo(&again), []);
}

/// Parses a text as the statistics of a CPU and as those of kernel probes.
pub fn statistics(bytes: &[u8]) {
    let stats = CpuStats::parse(bytes);
    assert!(stats.oldest_event_ts.is_finite() && stats.now_ts.is_finite(), "{stats:?}");
    let (hits, misses) = kprobe_hits_and_misses(bytes);
    assert!(hits >= 0 && misses >= 0, "{hits} {misses}");
}
