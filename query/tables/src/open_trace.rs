//! A trace that the engine has read.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, OnceLock};

use arrow::array::{RecordBatch, StringViewArray, StringViewBuilder};
use arrow::error::ArrowError;
use esatto_trace::tables::{Arg, ArgValue, RawValue, Row, Rows, Table, Tables};
use esatto_trace::{Engine, Error, ReadOptions};

use crate::batches::TableBatches;
use crate::{Batches, ReadTables, Request, TableDef};

/// Traces whose ids differ from each other, and are exact as numbers of JSON.
pub const MAX_TRACES: u32 = 1 << 20;

/// Bits of an id that are the row. Those above are the number of the trace.
pub const ROW_BITS: u32 = 32;

/// Bytes of text that views can address in one buffer.
const BLOCK_BYTES: u32 = 1 << 26;

/// A trace that the engine has read.
#[derive(Debug)]
pub struct OpenTrace {
    /// On the heap, because it is large: those who knew the trace keep its place until they forget
    /// it.
    engine: Box<Engine>,
    number: u32,
    texts: OnceLock<StringViewArray>,
    keys: OnceLock<HashMap<String, esatto_trace::Symbol>>,
}

/// The types that the values of an argument have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgTypes {
    /// It has integers, truth values or addresses.
    pub has_int: bool,
    /// It has floating point numbers.
    pub has_real: bool,
    /// It has texts.
    pub has_text: bool,
}

/// The mistakes of a trace, or the reason why it could not be read wholly.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Damage {
    /// The first mistake.
    pub first: String,
    /// The number of mistakes.
    pub mistakes: u64,
}

impl Damage {
    /// A single mistake.
    pub fn new(mistake: String) -> Self {
        Self { first: mistake, mistakes: 1 }
    }
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.first)?;
        match self.mistakes {
            0 | 1 => Ok(()),
            mistakes => write!(f, " (and {} more errors)", mistakes - 1),
        }
    }
}

/// Distances of a clock and the trace clock, at the moments of snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClockOffsets(Vec<(i64, i64)>);

impl ClockOffsets {
    /// Makes them of the values of the clock at moments of the trace clock, in any order. Moments
    /// with a distance that does not fit into 64 bits are left out.
    pub fn new(snapshots: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let distance = |(ts, value): (i64, i64)| Some((ts, value.checked_sub(ts)?));
        let mut offsets: Vec<(i64, i64)> = snapshots.into_iter().filter_map(distance).collect();
        offsets.sort_unstable();
        // The distance of a moment holds until another one.
        offsets.dedup_by_key(|(_, ahead)| *ahead);
        offsets.shrink_to_fit();
        Self(offsets)
    }

    /// Returns the bytes of memory that they take.
    pub fn memory_size(&self) -> usize {
        size_of::<Self>() + self.0.capacity() * size_of::<(i64, i64)>()
    }

    /// Converts a time on the trace clock.
    pub fn convert(&self, ts: i64) -> Option<i64> {
        let after = self.0.partition_point(|(at, _)| *at <= ts);
        let (_, ahead) = self.0.get(after.saturating_sub(1))?;
        ts.checked_add(*ahead)
    }
}

impl OpenTrace {
    /// Reads a trace to its end. `number` is its number among the traces of a query, from 0.
    ///
    /// # Panics
    ///
    /// The number is not less than [`MAX_TRACES`].
    pub fn read(file: impl Read, number: u32) -> Self {
        Self::read_with(file, number, &ReadOptions::default())
    }

    /// As [`Self::read`], with options.
    ///
    /// # Panics
    ///
    /// The number is not less than [`MAX_TRACES`].
    pub fn read_with(file: impl Read, number: u32, options: &ReadOptions) -> Self {
        Self::new(Engine::read_with(file, options), number)
    }

    /// As [`Self::read`], with a trace that has been read.
    ///
    /// # Panics
    ///
    /// The number is not less than [`MAX_TRACES`].
    pub fn new(engine: Engine, number: u32) -> Self {
        assert!(number < MAX_TRACES, "trace {number}: there can be {MAX_TRACES}");
        Self { engine: Box::new(engine), number, texts: OnceLock::new(), keys: OnceLock::new() }
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns what is wrong with the trace, or why it could not be read wholly.
    pub fn damage(&self) -> Option<Damage> {
        let mut mistakes = self.engine.errors.len() as u64 + self.engine.more_errors;
        let mut first = self.engine.errors.first().map(ToString::to_string);
        if let Some(error) = &self.engine.sort_error {
            mistakes += 1;
            let error = Error::of_temporary_file(error);
            first = first.or_else(|| Some(format!("{error}; {}", error.remedy().unwrap_or_default())));
        }
        first.map(|first| Damage { first, mistakes })
    }

    /// Returns whether nothing has been read. With a damage, the file is no trace.
    pub fn is_empty(&self) -> bool {
        let tables = &self.engine.tables;
        tables.thread.tid.len() <= 1 && tables.process.pid.len() <= 1 && tables.track.name.is_empty()
    }

    /// Returns its number among the traces of a query.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of the trace that an id belongs to.
    pub fn number_of_id(id: i64) -> Option<u32> {
        u32::try_from(id >> ROW_BITS).ok()
    }

    /// Returns the id of the first row of each table of the trace with a number.
    pub fn first_id_of(number: u32) -> i64 {
        i64::from(number) << ROW_BITS
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.engine.tables
    }

    pub(crate) fn base(&self, table: &TableDef) -> &dyn Table {
        let base = self.engine.tables.all()[table.base_index];
        debug_assert_eq!(base.name(), table.base, "the order of the engine's tables is fixed");
        base
    }

    /// Returns the id of the first row of each table.
    pub fn first_id(&self) -> i64 {
        Self::first_id_of(self.number)
    }

    /// Returns the number of rows of a table.
    pub fn rows(&self, table: &TableDef) -> usize {
        match table.filter {
            Some(filter) => (0..self.base(table).rows()).filter(|&row| filter(self.tables(), row)).count(),
            None => self.base(table).rows(),
        }
    }

    /// Reads rows by their positions in the engine's table.
    ///
    /// # Errors
    ///
    /// There are no such columns.
    pub fn read_rows(
        self: Arc<Self>,
        table: &'static TableDef,
        columns: &[usize],
        rows: Vec<u32>,
    ) -> Result<RecordBatch, ArrowError> {
        TableBatches::of_rows(self, table, columns, rows)
    }

    /// Returns about how many bytes of memory the tables take.
    pub fn memory_size(&self) -> usize {
        let cells: usize = self.engine.tables.all().iter().map(|table| table.rows() * table.columns().len()).sum();
        let texts: usize = self.engine.tables.strings.iter().map(|text| text.len() + 2 * size_of::<u128>()).sum();
        // Most columns have values of 4 bytes.
        cells * 4 + texts * 2
    }

    /// Returns the texts of the trace, by the positions of symbols.
    pub(crate) fn texts(&self) -> &StringViewArray {
        self.texts.get_or_init(|| {
            let strings = &self.engine.tables.strings;
            // Queries account for whole blocks, so those of a small trace are small.
            let bytes: usize = strings.iter().map(str::len).sum();
            let block = u32::try_from(bytes).unwrap_or(BLOCK_BYTES).clamp(1, BLOCK_BYTES);
            let mut texts = StringViewBuilder::with_capacity(strings.iter().len()).with_fixed_block_size(block);
            strings.iter().for_each(|text| texts.append_value(text));
            texts.finish()
        })
    }

    /// Returns the arguments of a set by the id of the set; none if there is no such set.
    pub fn arg_set(&self, id: i64) -> &[Arg] {
        let row = id.checked_sub(self.first_id()).and_then(|row| usize::try_from(row).ok());
        let args = &self.engine.tables.args;
        let Some(row) = row.filter(|row| *row < args.rows()) else { return &[] };
        let mut set = None;
        args.scan(0, Rows::Range(row..row + 1), &mut |value| {
            if let RawValue::Row(found) = value {
                set = Some(found);
            }
        });
        let is_first = |set: &Row| set.index() == row;
        set.filter(is_first).map_or(&[], |set| args.set(set))
    }

    /// Returns the value of an argument.
    pub fn arg(&self, set: i64, key: &str) -> Option<ArgValue> {
        let key = *self.keys().get(key)?;
        let args = self.arg_set(set);
        args.binary_search_by_key(&key, |arg| arg.key).ok().map(|at| args[at].value)
    }

    /// Returns the text of a symbol.
    pub fn text(&self, symbol: esatto_trace::Symbol) -> &str {
        self.engine.tables.strings.get(symbol)
    }

    fn keys(&self) -> &HashMap<String, esatto_trace::Symbol> {
        self.keys.get_or_init(|| {
            let args = &self.engine.tables.args;
            let mut symbols = std::collections::HashSet::new();
            args.scan(2, Rows::Range(0..args.rows()), &mut |value| {
                if let RawValue::Text(symbol) = value {
                    symbols.insert(symbol);
                }
            });
            symbols.into_iter().map(|symbol| (self.text(symbol).to_owned(), symbol)).collect()
        })
    }

    /// Returns the types of the values of each argument, by its key.
    pub fn arg_types(&self) -> HashMap<String, ArgTypes> {
        let args = &self.engine.tables.args;
        let mut types: HashMap<&str, ArgTypes> = HashMap::new();
        let mut keys = Vec::with_capacity(args.rows());
        args.scan(2, Rows::Range(0..args.rows()), &mut |value| {
            if let RawValue::Text(symbol) = value {
                keys.push(self.text(symbol));
            }
        });
        for (column, set) in [
            (3, (|types: &mut ArgTypes| types.has_int = true) as fn(&mut ArgTypes)),
            (4, |types| types.has_text = true),
            (5, |types| types.has_real = true),
        ] {
            let mut row = 0;
            args.scan(column, Rows::Range(0..args.rows()), &mut |value| {
                if value != RawValue::Null {
                    set(types.entry(keys[row]).or_default());
                }
                row += 1;
            });
        }
        types.into_iter().map(|(key, types)| (key.to_owned(), types)).collect()
    }

    /// Returns the distances of a clock and the trace clock; none if there are no snapshots of it.
    pub fn clock_offsets(&self, clock_id: i64) -> ClockOffsets {
        let clocks = &self.engine.tables.clock_snapshot;
        let snapshots = (0..clocks.rows()).filter(|&row| {
            clocks.clock_id[row] == clock_id && clocks.machine_id[row].is_none_or(|row| row.index() == 0)
        });
        ClockOffsets::new(snapshots.map(|row| (clocks.ts[row], clocks.clock_value[row])))
    }

    /// Returns the value of a fact about the trace, as text.
    pub fn metadata(&self, name: &str) -> Option<String> {
        let table = &self.engine.tables.metadata;
        let row = (0..table.rows()).find(|&row| self.text(table.name[row]) == name)?;
        let text = table.str_value[row].map(|text| self.text(text).to_owned());
        text.or_else(|| table.int_value[row].map(|number| number.to_string()))
    }
}

impl ReadTables for OpenTrace {
    fn read_table(self: Arc<Self>, request: &Request) -> Batches {
        match TableBatches::new(self, request.clone()) {
            Ok(batches) => Box::new(batches),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}
