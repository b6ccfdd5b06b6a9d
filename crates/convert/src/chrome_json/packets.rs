//! Packets of track events, on one sequence.

use std::collections::HashMap;

use esatto_protozero::append_to;
use esatto_schema::{DebugAnnotationWriter, InternedDataWriter, TracePacketWriter, TrackEventWriter, track_event};
use serde_json::{Map, Value};

/// Field of `Trace`.
const PACKET: u32 = 1;
/// Flag of a packet that starts the state of a sequence.
const CLEARED: u32 = 1;
/// Flag of a packet that needs the state of a sequence.
const NEEDS_STATE: u32 = 2;
/// Names that are stored once; further ones are written again and again.
const MAX_INTERNED: usize = 1 << 20;
/// Longest name that is stored once.
const MAX_INTERNED_BYTES: usize = 256;
/// Lists and dictionaries inside each other; deeper ones are left out.
const MAX_ARGUMENT_DEPTH: usize = 64;

/// Kind of interned names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Event,
    Category,
    Argument,
}

/// Names that have numbers, and those that the next packet announces.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<(Kind, String), u64>,
    new: Vec<(Kind, String, u64)>,
}

impl Names {
    fn number(&mut self, kind: Kind, name: &str) -> Option<u64> {
        if name.len() > MAX_INTERNED_BYTES {
            return None;
        }
        let key = (kind, name.to_owned());
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        if self.numbers.len() >= MAX_INTERNED {
            return None;
        }
        let number = self.numbers.len() as u64 + 1;
        self.new.push((kind, key.1.clone(), number));
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Writes the names that are new.
    fn announce(&mut self, mut data: InternedDataWriter<'_>) {
        for (kind, name, number) in self.new.drain(..) {
            match kind {
                Kind::Event => _ = data.event_names().iid(number).name(name),
                Kind::Category => _ = data.event_categories().iid(number).name(name),
                Kind::Argument => _ = data.debug_annotation_names().iid(number).name(name),
            }
        }
    }
}

/// Parts that events of several kinds have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EventParts<'e> {
    pub(super) track: u64,
    pub(super) kind: Option<track_event::Type>,
    pub(super) name: &'e str,
    pub(super) category: &'e str,
    /// Processor time of the thread, in nanoseconds.
    pub(super) thread_time: Option<i64>,
    pub(super) args: Option<&'e Map<String, Value>>,
    pub(super) flows: &'e [u64],
}

/// Writer of packets.
#[derive(Debug)]
pub(super) struct Packets {
    sequence: u32,
    names: Names,
    has_begun: bool,
    pub(super) out: Vec<u8>,
}

impl Packets {
    pub(super) fn new(sequence: u32) -> Self {
        Self { sequence, names: Names::default(), has_begun: false, out: Vec::new() }
    }

    /// Writes a packet.
    pub(super) fn packet(&mut self, ts: Option<i64>, write: impl FnOnce(TracePacketWriter<'_>)) {
        let Self { sequence, names, has_begun, out } = self;
        append_to(out, |mut trace| {
            let mut packet = TracePacketWriter::from(trace.begin(PACKET));
            if let Some(ts) = ts.and_then(|ts| u64::try_from(ts).ok()) {
                packet.timestamp(ts);
            }
            packet.trusted_packet_sequence_id(*sequence);
            packet.sequence_flags(if *has_begun { NEEDS_STATE } else { CLEARED | NEEDS_STATE });
            *has_begun = true;
            if !names.new.is_empty() {
                names.announce(packet.interned_data());
            }
            write(packet);
        });
    }

    /// Writes an event. `more` adds fields of its kind.
    pub(super) fn event(&mut self, ts: i64, parts: EventParts<'_>, more: impl FnOnce(&mut TrackEventWriter<'_>)) {
        let name = self.names.number(Kind::Event, parts.name);
        let category = self.names.number(Kind::Category, parts.category);
        let args = parts.args.map(|args| annotations(args, &mut self.names, 0)).unwrap_or_default();
        self.packet(Some(ts), |mut packet| {
            let mut event = packet.track_event();
            event.track_uuid(parts.track);
            if let Some(kind) = parts.kind {
                event.r#type(kind);
            }
            match name {
                _ if parts.name.is_empty() => {}
                Some(iid) => _ = event.name_iid(iid),
                None => _ = event.name(parts.name),
            }
            match category {
                _ if parts.category.is_empty() => {}
                Some(iid) => _ = event.category_iids(iid),
                None => _ = event.categories(parts.category),
            }
            if let Some(ns) = parts.thread_time {
                event.thread_time_absolute_us(ns / 1000);
            }
            for &flow in parts.flows {
                event.flow_ids(flow);
            }
            for arg in &args {
                arg.write(event.debug_annotations());
            }
            more(&mut event);
        });
    }
}

/// An argument with the numbers of its names.
#[derive(Debug)]
struct Annotation<'v> {
    name: &'v str,
    iid: Option<u64>,
    value: AnnotationValue<'v>,
}

#[derive(Debug)]
enum AnnotationValue<'v> {
    Scalar(&'v Value),
    Dictionary(Vec<Annotation<'v>>),
    List(Vec<Annotation<'v>>),
}

fn annotations<'v>(args: &'v Map<String, Value>, names: &mut Names, depth: usize) -> Vec<Annotation<'v>> {
    let annotation = |(name, value): (&'v String, &'v Value)| {
        let iid = names.number(Kind::Argument, name);
        Some(Annotation { name, iid, value: annotation_value(value, names, depth)? })
    };
    args.iter().filter_map(annotation).collect()
}

/// Empty values are left out, as in the trace processor.
fn annotation_value<'v>(value: &'v Value, names: &mut Names, depth: usize) -> Option<AnnotationValue<'v>> {
    match value {
        Value::Null => None,
        _ if depth > MAX_ARGUMENT_DEPTH => None,
        Value::Object(args) if args.is_empty() => None,
        Value::Object(args) => Some(AnnotationValue::Dictionary(annotations(args, names, depth + 1))),
        Value::Array(values) if values.is_empty() => None,
        Value::Array(values) => {
            let value =
                |value| Some(Annotation { name: "", iid: None, value: annotation_value(value, names, depth + 1)? });
            Some(AnnotationValue::List(values.iter().filter_map(value).collect()))
        }
        value => Some(AnnotationValue::Scalar(value)),
    }
}

impl Annotation<'_> {
    fn write(&self, mut out: DebugAnnotationWriter<'_>) {
        match self.iid {
            Some(iid) => _ = out.name_iid(iid),
            None if self.name.is_empty() => {}
            None => _ = out.name(self.name),
        }
        match &self.value {
            AnnotationValue::Dictionary(entries) => entries.iter().for_each(|entry| entry.write(out.dict_entries())),
            AnnotationValue::List(entries) => entries.iter().for_each(|entry| entry.write(out.array_values())),
            AnnotationValue::Scalar(Value::Bool(value)) => _ = out.bool_value(*value),
            AnnotationValue::Scalar(Value::String(value)) => _ = out.string_value(value),
            AnnotationValue::Scalar(Value::Number(value)) => match (value.as_i64(), value.as_u64()) {
                (Some(value), _) => _ = out.int_value(value),
                (None, Some(value)) => _ = out.uint_value(value),
                (None, None) => _ = out.double_value(value.as_f64().unwrap_or(0.0)),
            },
            AnnotationValue::Scalar(_) => {}
        }
    }
}
