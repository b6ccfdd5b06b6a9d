//! Tracks by their kind and dimensions.

use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, Row, Tables, TrackRow};
use hashbrown::HashMap;

/// The value of a dimension.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Dimension<'t> {
    Thread(Row),
    Process(Row),
    Cpu(u32),
    Number(&'static str, i64),
    Text(&'static str, &'t str),
    Symbol(&'static str, Symbol),
    /// A text that is missing.
    NoText(&'static str),
}

/// Tracks that exist, by kind and dimensions.
#[derive(Debug, Default)]
pub(crate) struct TrackIndex {
    tracks: HashMap<(usize, Symbol, Option<Row>, Option<Row>), Row>,
    /// The tracks of threads that run, by file and thread.
    threads: Vec<Vec<Option<Row>>>,
    /// The file whose events are imported. Tracks of different files are different.
    pub(crate) file: usize,
}

/// A track to find or to add.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrackSpec<'t> {
    pub(crate) kind: &'static str,
    pub(crate) name: Option<Symbol>,
    pub(crate) dimensions: &'t [Dimension<'t>],
    pub(crate) unit: Option<&'static str>,
    pub(crate) is_counter: bool,
    pub(crate) machine: Option<Row>,
}

impl<'t> TrackSpec<'t> {
    pub(crate) fn new(kind: &'static str, name: Option<Symbol>, dimensions: &'t [Dimension<'t>]) -> Self {
        Self { kind, name, dimensions, unit: None, is_counter: false, machine: None }
    }

    pub(crate) fn counter(kind: &'static str, name: Option<Symbol>, dimensions: &'t [Dimension<'t>]) -> Self {
        Self { is_counter: true, ..Self::new(kind, name, dimensions) }
    }
}

impl TrackIndex {
    /// Returns the track with this kind and these dimensions; true if it is new.
    pub(crate) fn intern(&mut self, tables: &mut Tables, spec: &TrackSpec<'_>) -> (Row, bool) {
        let mut args = Vec::with_capacity(spec.dimensions.len());
        let (mut utid, mut upid, mut cpu) = (None, None, None);
        let number = |row: Row| ArgValue::Int(i64::from(row.number()) - 1);
        for dimension in spec.dimensions {
            let strings = &mut tables.strings;
            let (key, value) = match *dimension {
                Dimension::Thread(row) => {
                    utid = Some(row);
                    ("utid", number(row))
                }
                Dimension::Process(row) => {
                    upid = Some(row);
                    ("upid", number(row))
                }
                Dimension::Cpu(number) => {
                    cpu = Some(number);
                    ("cpu", ArgValue::Int(i64::from(number)))
                }
                Dimension::Number(key, number) => (key, ArgValue::Int(number)),
                Dimension::Text(key, text) => (key, ArgValue::Text(Some(strings.add_str(text)))),
                Dimension::Symbol(key, symbol) => (key, ArgValue::Text(Some(symbol))),
                Dimension::NoText(key) => (key, ArgValue::Text(None)),
            };
            args.push(Arg::new(strings.add_str(key), value));
        }
        let kind = tables.strings.add_str(spec.kind);
        let dimensions = tables.args.add(&mut args);
        let key = (self.file, kind, dimensions, spec.machine);
        if let Some(&track) = self.tracks.get(&key) {
            return (track, false);
        }
        let unit = spec.unit.map(|unit| tables.strings.add_str(unit));
        let track = tables.track.push(TrackRow {
            name: spec.name,
            r#type: kind,
            parent_id: None,
            dimension_arg_set_id: dimensions,
            source_arg_set_id: None,
            machine_id: spec.machine,
            unit,
            description: None,
            is_counter: spec.is_counter,
            utid,
            upid,
            cpu,
        });
        self.tracks.insert(key, track);
        (track, true)
    }

    /// Returns the track of what a thread does, if it has done anything.
    pub(crate) fn known_thread(&self, utid: Row) -> Option<Row> {
        self.threads.get(self.file)?.get(utid.index()).copied().flatten()
    }

    /// Returns the track of what a thread does.
    pub(crate) fn thread(&mut self, tables: &mut Tables, utid: Row) -> Row {
        if let Some(track) = self.known_thread(utid) {
            return track;
        }
        let machine = tables.thread.machine_id[utid.index()];
        let dimensions = [Dimension::Thread(utid)];
        let spec = TrackSpec { machine, ..TrackSpec::new("thread_execution", None, &dimensions) };
        let (track, _) = self.intern(tables, &spec);
        if self.threads.len() <= self.file {
            self.threads.resize(self.file + 1, Vec::new());
        }
        let threads = &mut self.threads[self.file];
        if threads.len() <= utid.index() {
            threads.resize(utid.index() + 1, None);
        }
        threads[utid.index()] = Some(track);
        track
    }
}
