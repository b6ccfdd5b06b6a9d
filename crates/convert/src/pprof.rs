//! The format of pprof: a gzipped protobuf message `perftools.profiles.Profile`.

use std::collections::HashMap;
use std::io::{self, Write};

use esatto_protozero::append_to;
use esatto_trace::tables::{Table as _, Tables};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::stacks::{StackKind, Stacks};

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Fields of `ValueType`.
mod value_type {
    pub(super) const TYPE: u32 = 1;
    pub(super) const UNIT: u32 = 2;
}

/// Fields of `Sample`.
mod sample {
    pub(super) const LOCATION_ID: u32 = 1;
    pub(super) const VALUE: u32 = 2;
    pub(super) const LABEL: u32 = 3;
}

/// Fields of `Label`.
mod label {
    pub(super) const KEY: u32 = 1;
    pub(super) const STR: u32 = 2;
    pub(super) const NUM: u32 = 3;
}

/// Fields of `Mapping`.
mod mapping {
    pub(super) const ID: u32 = 1;
    pub(super) const FILENAME: u32 = 5;
    pub(super) const HAS_FUNCTIONS: u32 = 7;
}

/// Fields of `Location`.
mod location {
    pub(super) const ID: u32 = 1;
    pub(super) const MAPPING_ID: u32 = 2;
    pub(super) const ADDRESS: u32 = 3;
    pub(super) const LINE: u32 = 4;
}

/// Field of `Line`.
const FUNCTION_ID: u32 = 1;

/// Fields of `Function`.
mod function {
    pub(super) const ID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const SYSTEM_NAME: u32 = 3;
}

/// The clock that reads the time of day, in snapshots of clocks.
const REALTIME: i64 = 1;

/// The strings of a profile. The first one is empty.
#[derive(Debug)]
struct Texts {
    list: Vec<String>,
    index: HashMap<String, u64>,
}

impl Texts {
    fn new() -> Self {
        let mut texts = Self { list: Vec::new(), index: HashMap::new() };
        texts.number("");
        texts
    }

    fn number(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.index.get(text) {
            return number;
        }
        let number = self.list.len() as u64;
        self.list.push(text.to_owned());
        self.index.insert(text.to_owned(), number);
        number
    }
}

/// Returns the time of day at the begin of a trace, in nanoseconds; 0 if it is not known.
pub fn wall_time(tables: &Tables) -> i64 {
    let clocks = &tables.clock_snapshot;
    let host = |row: &usize| clocks.clock_id[*row] == REALTIME && clocks.machine_id[*row].is_none();
    (0..clocks.rows()).find(host).map_or(0, |row| clocks.clock_value[row])
}

/// Writes a profile. `time_nanos` is its time of day, or 0.
///
/// The owner of a stack is in the labels `process`, `pid`, `thread`, `tid` and `track`.
///
/// # Errors
///
/// Those of the output.
pub fn write_pprof(stacks: &Stacks, time_nanos: i64, out: impl Write) -> io::Result<()> {
    let mut out = GzEncoder::new(out, Compression::default());
    let mut texts = Texts::new();
    let mut bytes = Vec::new();
    for (name, unit) in stacks.kind().values() {
        let (name, unit) = (texts.number(name), texts.number(unit));
        append_to(&mut bytes, |mut message| {
            let mut value = message.begin(profile::SAMPLE_TYPE);
            value.varint(value_type::TYPE, name);
            value.varint(value_type::UNIT, unit);
        });
    }
    for (origin, node, values) in stacks.samples() {
        let origin = &stacks.origins[origin];
        let mut texts_of = Vec::new();
        let mut numbers = Vec::new();
        for (key, id_key, part) in [("process", "pid", &origin.process), ("thread", "tid", &origin.thread)] {
            if let Some((name, id)) = part {
                texts_of.push((texts.number(key), texts.number(name)));
                numbers.push((texts.number(id_key), *id));
            }
        }
        if let Some(track) = &origin.track {
            let key = if stacks.kind() == StackKind::Heap { "heap" } else { "track" };
            texts_of.push((texts.number(key), texts.number(track)));
        }
        append_to(&mut bytes, |mut message| {
            let mut sample = message.begin(profile::SAMPLE);
            for frame in stacks.path(node).into_iter().rev() {
                sample.varint(sample::LOCATION_ID, frame as u64 + 1);
            }
            for value in values {
                sample.int(sample::VALUE, *value);
            }
            for (key, text) in &texts_of {
                let mut label = sample.begin(sample::LABEL);
                label.varint(label::KEY, *key);
                label.varint(label::STR, *text);
            }
            for (key, number) in &numbers {
                let mut label = sample.begin(sample::LABEL);
                label.varint(label::KEY, *key);
                label.int(label::NUM, *number);
            }
        });
        if bytes.len() > 1 << 16 {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    let mut files = Texts::new();
    for (index, frame) in stacks.frames.iter().enumerate() {
        let id = index as u64 + 1;
        let name = texts.number(&frame.name);
        // The number of the empty text is 0, which stands for no mapping.
        let file = files.number(&frame.file);
        append_to(&mut bytes, |mut message| {
            {
                let mut function = message.begin(profile::FUNCTION);
                function.varint(function::ID, id);
                function.varint(function::NAME, name);
                function.varint(function::SYSTEM_NAME, name);
            }
            let mut location = message.begin(profile::LOCATION);
            location.varint(location::ID, id);
            if file != 0 {
                location.varint(location::MAPPING_ID, file);
                location.varint(location::ADDRESS, frame.address);
            }
            location.begin(location::LINE).varint(FUNCTION_ID, id);
        });
    }
    for (id, file) in files.list.iter().enumerate().skip(1) {
        let file = texts.number(file);
        append_to(&mut bytes, |mut message| {
            let mut mapping = message.begin(profile::MAPPING);
            mapping.varint(mapping::ID, id as u64);
            mapping.varint(mapping::FILENAME, file);
            mapping.bool(mapping::HAS_FUNCTIONS, true);
        });
    }
    let comment = texts.number("converted by esatto from a Perfetto trace");
    let default = texts.number(stacks.kind().values()[0].0);
    append_to(&mut bytes, |mut message| {
        if time_nanos > 0 {
            message.int(profile::TIME_NANOS, time_nanos);
        }
        message.varint(profile::COMMENT, comment);
        message.varint(profile::DEFAULT_SAMPLE_TYPE, default);
        for text in &texts.list {
            message.string(profile::STRING_TABLE, text);
        }
    });
    out.write_all(&bytes)?;
    out.finish()?.flush()
}
