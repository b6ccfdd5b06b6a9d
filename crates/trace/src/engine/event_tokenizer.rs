//! Decoder of one `TrackEvent`, with the state of its sequence.

use esatto_protozero::Fields;
use esatto_schema::{interned_data, log_message, source_location, task_execution, track_event};

use super::context::Context;
use super::event_details::EventDetail;
use super::event_tracks::{CounterInfo, EventTracks, Slot};
use super::proto_args::ProtoArgs;
use super::record::{LegacyRecord, LogRecord};
use super::tokenizer::Tokenizer;
use crate::debug_annotation::{AnnotationErrors, AnnotationReader, RawAnnotation};
use crate::event_type::CounterValue;
use crate::packet_sequence::{MAX_EXTRA_COUNTERS, State};
use crate::problems::Problem;
use crate::string_table::{Strings, Symbol};
use crate::tables::{Arg, ArgValue, Row};

const COUNTER: u8 = 4;
const STATE: u8 = 5;

/// A `SourceLocation`.
#[derive(Debug, Default, Clone, Copy)]
struct Location<'p> {
    file: &'p [u8],
    function: &'p [u8],
    line: u64,
}

impl<'p> Location<'p> {
    fn read(bytes: &'p [u8]) -> Self {
        use source_location::field;
        let mut location = Self::default();
        for f in Fields::new(bytes) {
            match f.id {
                field::FILE_NAME => location.file = f.as_bytes(),
                field::FUNCTION_NAME => location.function = f.as_bytes(),
                field::LINE_NUMBER => location.line = f.as_u64(),
                _ => {}
            }
        }
        location
    }

    fn interned(state: &'p State, iid: u64) -> Option<Self> {
        state.entry(interned_data::field::SOURCE_LOCATIONS, iid).map(Self::read)
    }

    fn args(&self, prefix: &str, strings: &mut Strings, args: &mut Vec<Arg>) {
        let mut add = |strings: &mut Strings, name: &str, value| {
            args.push(Arg::new(strings.add_str(&format!("{prefix}.{name}")), value));
        };
        let file = ArgValue::Text(Some(strings.add(self.file)));
        add(strings, "file_name", file);
        let function = ArgValue::Text(Some(strings.add(self.function)));
        add(strings, "function_name", function);
        add(strings, "line_number", ArgValue::Uint(self.line));
    }
}

/// Numbers of fields that others than the authors of the schema may use.
const FIRST_EXTENSION: u32 = 1000;

impl Tokenizer {
    /// Returns the method that a message of Chromium's IPC calls: its file and its address.
    fn mojo_method(&mut self, id: u32, f: &esatto_protozero::Field<'_>, sequence: usize) -> Option<(Row, u64)> {
        use esatto_schema::{chrome_mojo_event_info, unsymbolized_source_location::field};
        if id != track_event::field::CHROME_MOJO_EVENT_INFO {
            return None;
        }
        let method = chrome_mojo_event_info::field::MOJO_INTERFACE_METHOD_IID;
        let iid = Fields::new(f.as_bytes()).find(|f| f.id == method)?.as_u64();
        let table = interned_data::field::UNSYMBOLIZED_SOURCE_LOCATIONS;
        let entry = self.sequences[sequence].state.entry(table, iid)?;
        let find = |id: u32| Fields::new(entry).find(|f| f.id == id).map_or(0, |f| f.as_u64());
        let (mapping, rel_pc) = (find(field::MAPPING_ID), find(field::REL_PC));
        Some((self.mapping(sequence, mapping)?, rel_pc))
    }

    /// Decodes an event into `self.event`. Returns false if it breaks a rule.
    pub(super) fn read_event(&mut self, bytes: &[u8], sequence: usize, machine: u32) -> bool {
        use track_event::field;
        let generation = self.generation(sequence);
        self.event.clear();
        self.event.sequence = generation;
        let context = &mut self.context;
        let strings = &mut context.tables.strings;
        let sequence_id = self.sequences[sequence].id;
        let state = &mut self.sequences[sequence].state;
        let event = &mut self.event;
        let (mut kind, mut track, mut legacy) = (0, None, None);
        let mut has_name_iid = false;
        let (mut int_value, mut real_value) = (None, None);
        let mut categories = core::mem::take(&mut self.categories);
        categories.clear();
        let (mut old_flows, mut old_terminating) = (Vec::new(), Vec::new());
        let (mut int_tracks, mut int_values) = (Vec::new(), Vec::new());
        let (mut real_tracks, mut real_values) = (Vec::new(), Vec::new());
        let mut is_annotated = false;
        let mut typed: Vec<(u32, esatto_protozero::Field<'_>)> = Vec::new();
        let mut typed_more: Vec<(u32, esatto_protozero::Field<'_>)> = Vec::new();
        for f in Fields::new(bytes) {
            match f.id {
                field::TYPE => kind = f.as_i32(),
                field::TRACK_UUID => track = Some(f.as_u64()),
                field::NAME => event.name = Some(strings.add(f.as_bytes())),
                field::NAME_IID => {
                    has_name_iid = f.as_u64() != 0;
                    event.name = state.look_up(interned_data::field::EVENT_NAMES, f.as_u64());
                    if event.name.is_none() {
                        context.stats.count("interned_data_tokenizer_errors");
                        context.problems.count(Problem::UnresolvedName);
                    }
                }
                field::CATEGORY_IIDS => {
                    let iid = f.as_u64();
                    let found = state.look_up(interned_data::field::EVENT_CATEGORIES, iid);
                    categories.push(found.unwrap_or_else(|| {
                        context.problems.count(Problem::UnresolvedCategory);
                        strings.add_str(&format!("unknown({iid})"))
                    }));
                }
                field::CATEGORIES => categories.push(strings.add(f.as_bytes())),
                field::COUNTER_VALUE => int_value = Some(f.as_i64()),
                field::DOUBLE_COUNTER_VALUE => real_value = Some(f.as_f64()),
                field::EXTRA_COUNTER_TRACK_UUIDS => int_tracks.push(f.as_u64()),
                field::EXTRA_COUNTER_VALUES => int_values.push(f.as_i64()),
                field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => real_tracks.push(f.as_u64()),
                field::EXTRA_DOUBLE_COUNTER_VALUES => real_values.push(f.as_f64()),
                field::FLOW_IDS => event.flows.push(f.as_u64()),
                field::TERMINATING_FLOW_IDS => event.terminating.push(f.as_u64()),
                field::FLOW_IDS_OLD => old_flows.push(f.as_u64()),
                field::TERMINATING_FLOW_IDS_OLD => old_terminating.push(f.as_u64()),
                field::DEBUG_ANNOTATIONS => is_annotated = true,
                field::LEGACY_EVENT => legacy = Some(f.as_bytes()),
                field::LOG_MESSAGE
                | field::TASK_EXECUTION
                | field::SOURCE_LOCATION
                | field::SOURCE_LOCATION_IID
                | field::CORRELATION_ID
                | field::CORRELATION_ID_STR
                | field::CORRELATION_ID_STR_IID => typed.push((f.id, f)),
                id => typed_more.push((id, f)),
            }
        }
        if event.flows.is_empty() {
            event.flows.append(&mut old_flows);
        }
        if event.terminating.is_empty() {
            event.terminating.append(&mut old_terminating);
        }
        let mut detail = context.details.are_kept.then(|| EventDetail {
            machine,
            uuid: track.or(state.track).unwrap_or(0),
            sequence: sequence_id,
            offset: self.offset,
            categories: categories.clone(),
            ..EventDetail::default()
        });
        // `category`: all of them, in one text.
        event.category = match categories[..] {
            [] => None,
            [one] => Some(one),
            _ => Some(*self.joined_categories.entry_ref(&categories[..]).or_insert_with(|| {
                let texts: Vec<&str> = categories.iter().map(|&category| strings.get(category)).collect();
                let text = texts.join(",");
                strings.add_str(&text)
            })),
        };
        self.categories = categories;
        let uuid = track.or(state.track);
        // Track 0 is that of the thread of the sequence, unless an event with a type asks for it.
        event.has_track = uuid.is_some_and(|uuid| uuid != 0) || (track.is_some() && (1..=4).contains(&kind));
        event.track = context.event_tracks.slot(machine, uuid.unwrap_or(0));
        let mut problem = None;
        event.action = u8::try_from(kind).ok().filter(|kind| (1..=STATE).contains(kind)).unwrap_or(0);
        if event.action == STATE && !is_state(&context.event_tracks, event.track) {
            problem = Some(Problem::StateWithoutTrack);
        }
        if let Some(bytes) = legacy {
            let (mut found, name_iid) = read_legacy(bytes, strings);
            if let Some(iid) = name_iid.filter(|iid| *iid != 0 && !has_name_iid) {
                event.name = state.look_up(interned_data::field::EVENT_NAMES, iid);
                if event.name.is_none() {
                    context.problems.count(Problem::UnresolvedName);
                }
            }
            found.id_scope = found.id_scope.filter(|&scope| !strings.get(scope).is_empty());
            event.legacy = Some(found);
        }
        if event.action == 0 && event.legacy.is_none_or(|legacy| legacy.phase == 0) {
            problem = Some(Problem::EventWithoutType);
        }
        if event.action == COUNTER {
            let value = match (int_value, real_value) {
                (Some(value), _) => Some(CounterValue::Int(value)),
                (None, value) => value.map(CounterValue::Double),
            };
            match (counter_of(context, event.track), value) {
                (Some(counter), Some(value)) => {
                    let value = count(counter, uuid.unwrap_or(0), value, state);
                    event.value = value.as_f64();
                    if let Some(detail) = &mut detail {
                        detail.counter = Some(value);
                    }
                }
                (None, _) => problem = Some(Problem::CounterWithoutTrack),
                (_, None) => problem = Some(Problem::CounterWithoutValue),
            }
        }
        if !int_values.is_empty() || !real_values.is_empty() {
            let int_tracks = if int_tracks.is_empty() { state.extra_counters.clone() } else { int_tracks };
            let real_tracks = if real_tracks.is_empty() { state.extra_double_counters.clone() } else { real_tracks };
            let fits = int_tracks.len() >= int_values.len() && real_tracks.len() >= real_values.len();
            if !fits || int_values.len() + real_values.len() > MAX_EXTRA_COUNTERS {
                problem = problem.or(Some(Problem::ExtraCounters));
            }
            let ints = int_tracks.into_iter().zip(int_values.into_iter().map(CounterValue::Int));
            let reals = real_tracks.into_iter().zip(real_values.into_iter().map(CounterValue::Double));
            for (uuid, value) in ints.chain(reals).take(MAX_EXTRA_COUNTERS) {
                let slot = self.context.event_tracks.slot(machine, uuid);
                match counter_of(&self.context, slot) {
                    Some(counter) if problem.is_none() => {
                        let value = count(counter, uuid, value, state);
                        event.extra.push((slot, value.as_f64()));
                        if let Some(detail) = &mut detail {
                            detail.extra.push((uuid, value));
                        }
                    }
                    _ => problem = problem.or(Some(Problem::CounterWithoutTrack)),
                }
            }
        }
        if let Some(problem) = problem {
            self.context.stats.count("track_event_tokenizer_errors");
            self.context.problems.count(problem);
            return false;
        }
        self.survey.states += u64::from(event.action == STATE);
        let native = typed_more.iter().find_map(|(id, f)| self.mojo_method(*id, f, sequence));
        let state = &mut self.sequences[sequence].state;
        let event = &mut self.event;
        let strings = &mut self.context.tables.strings;
        for (id, f) in &typed {
            read_typed(*id, f, state, strings, event);
        }
        let mut reader = AnnotationReader { state, errors: AnnotationErrors::default() };
        let mut list: Vec<RawAnnotation<'_>> = Vec::new();
        if is_annotated {
            let annotations = Fields::new(bytes).filter(|f| f.id == field::DEBUG_ANNOTATIONS);
            list.extend(annotations.filter_map(|f| reader.read(f.as_bytes())));
        }
        if !list.is_empty() || !typed_more.is_empty() {
            let args = &mut event.args;
            let (types, keys) = (&self.context.types, &mut self.context.arg_keys);
            let late = Some(&mut event.late);
            let mut out = ProtoArgs { types, state, keys, strings, args, late, depth: 0, native, errors: 0 };
            let mut counts = Vec::new();
            for (id, f) in typed_more {
                if !out.add_event_field(id, &f, &mut counts) && id >= FIRST_EXTENSION {
                    out.put_off_event_field(&f);
                }
            }
            for annotation in &list {
                annotation.flatten(&mut out);
            }
            if out.errors > 0 {
                let errors = out.errors;
                self.context.stats.add("track_event_parser_errors", None, errors);
            }
        }
        if let Some(detail) = detail {
            self.context.details.add(event, detail, &list, strings);
        }
        self.survey.annotations += list.len() as u64;
        let errors = reader.errors;
        let problems = &mut self.context.problems;
        problems.add(Problem::UnresolvedAnnotationName, errors.unresolved_names);
        problems.add(Problem::UnresolvedString, errors.unresolved_strings);
        problems.add(Problem::AnnotationWithoutName, errors.nameless);
        true
    }
}

/// Returns the counter of a counter track.
fn counter_of(context: &Context, slot: Slot) -> Option<&CounterInfo> {
    context.event_tracks.slots[slot].description.as_ref()?.counter.as_ref()
}

fn is_state(tracks: &EventTracks, slot: Slot) -> bool {
    tracks.slots[slot].description.as_ref().is_some_and(|description| description.is_state)
}

/// Returns the value of a counter after an event: summed up if it is incremental, and multiplied.
fn count(counter: &CounterInfo, uuid: u64, value: CounterValue, state: &mut State) -> CounterValue {
    let multiplier = counter.multiplier.max(1);
    match value {
        CounterValue::Int(mut value) => {
            if counter.incremental {
                let sum = state.sums.entry(uuid).or_default();
                *sum = sum.wrapping_add(value);
                value = *sum;
            }
            CounterValue::Int(value.wrapping_mul(multiplier))
        }
        CounterValue::Double(mut value) => {
            if counter.incremental {
                let sum = state.double_sums.entry(uuid).or_default();
                *sum += value;
                value = *sum;
            }
            CounterValue::Double(value * multiplier as f64)
        }
    }
}

/// Reads a field of a `TrackEvent` that becomes arguments.
fn read_typed(
    id: u32,
    f: &esatto_protozero::Field<'_>,
    state: &State,
    strings: &mut Strings,
    event: &mut super::record::TrackEventRecord,
) {
    use track_event::field;
    let correlation = |strings: &mut Strings, text: Option<Symbol>, event: &mut super::record::TrackEventRecord| {
        event.args.push(Arg::new(strings.add_str("correlation_id"), ArgValue::Text(text)));
    };
    match id {
        field::CORRELATION_ID => {
            let text = strings.add_str(&format!("tp:#{}", f.as_u64()));
            correlation(strings, Some(text), event);
        }
        field::CORRELATION_ID_STR => {
            let text = strings.add(f.as_bytes());
            correlation(strings, Some(text), event);
        }
        field::CORRELATION_ID_STR_IID => {
            let text = state.look_up(interned_data::field::CORRELATION_ID_STR, f.as_u64());
            if text.is_some() {
                correlation(strings, text, event);
            }
        }
        field::SOURCE_LOCATION => {
            use source_location::field;
            for f in Fields::new(f.as_bytes()) {
                let (name, value) = match f.id {
                    field::FILE_NAME => ("file_name", ArgValue::Text(Some(strings.add(f.as_bytes())))),
                    field::FUNCTION_NAME => ("function_name", ArgValue::Text(Some(strings.add(f.as_bytes())))),
                    field::LINE_NUMBER => ("line_number", ArgValue::Uint(f.as_u64())),
                    _ => continue,
                };
                event.args.push(Arg::new(strings.add_str(&format!("source_location.{name}")), value));
            }
        }
        field::SOURCE_LOCATION_IID => {
            let iid = f.as_u64();
            if let Some(location) = Location::interned(state, iid) {
                location.args("source", strings, &mut event.args);
            }
            event.args.push(Arg::new(strings.add_str("source_location_iid"), ArgValue::Uint(iid)));
        }
        field::TASK_EXECUTION => {
            let iid = Fields::new(f.as_bytes()).find(|f| f.id == task_execution::field::POSTED_FROM_IID);
            let location = iid.and_then(|iid| Location::interned(state, iid.as_u64()));
            if let Some(location) = location {
                location.args("task.posted_from", strings, &mut event.args);
            }
        }
        field::LOG_MESSAGE => read_log(f.as_bytes(), state, strings, event),
        _ => {}
    }
}

fn read_log(bytes: &[u8], state: &State, strings: &mut Strings, event: &mut super::record::TrackEventRecord) {
    use log_message::field;
    /// Field of `LogMessageBody`.
    const BODY: u32 = 2;
    let (mut body, mut location, mut priority) = (None, None, 0);
    for f in Fields::new(bytes) {
        match f.id {
            field::BODY_IID => {
                let entry = state.entry(interned_data::field::LOG_MESSAGE_BODY, f.as_u64());
                let text = entry.and_then(|entry| Fields::new(entry).find(|f| f.id == BODY));
                body = text.map(|text| strings.add(text.as_bytes()));
            }
            field::SOURCE_LOCATION_IID => location = Location::interned(state, f.as_u64()),
            field::PRIO => priority = f.as_u32(),
            _ => {}
        }
    }
    let mut add = |strings: &mut Strings, key: &str, value| event.args.push(Arg::new(strings.add_str(key), value));
    add(strings, "track_event.log_message", ArgValue::Text(body));
    let mut tag = None;
    if let Some(location) = location {
        let file = strings.add(location.file);
        add(strings, "track_event.log_message.file_name", ArgValue::Text(Some(file)));
        let function = strings.add(location.function);
        add(strings, "track_event.log_message.function_name", ArgValue::Text(Some(function)));
        let line = i64::try_from(location.line).unwrap_or(i64::MAX);
        add(strings, "track_event.log_message.line_number", ArgValue::Int(line));
        let text = format!("{}:{}", String::from_utf8_lossy(location.file), location.line);
        tag = Some(strings.add_str(&text));
    }
    if priority != 0 {
        add(strings, "track_event.priority", ArgValue::Int(i64::from(priority)));
    }
    event.log = Some(LogRecord { priority, tag, body });
}

/// Reads a `LegacyEvent`. Returns also the number of an interned name.
fn read_legacy(bytes: &[u8], strings: &mut Strings) -> (LegacyRecord, Option<u64>) {
    use track_event::legacy_event::field;
    let mut found = LegacyRecord::default();
    let mut name = None;
    let small = |v: i32| u8::try_from(v).unwrap_or(0);
    for f in Fields::new(bytes) {
        match f.id {
            field::NAME_IID => name = Some(f.as_u64()),
            field::PHASE => found.phase = small(f.as_i32()),
            field::DURATION_US => found.duration_us = f.as_i64(),
            field::THREAD_DURATION_US => found.thread_duration_us = Some(f.as_i64()),
            field::UNSCOPED_ID | field::LOCAL_ID | field::GLOBAL_ID => {
                found.id = f.as_u64();
                found.id_field = u8::try_from(f.id).unwrap_or(0);
            }
            field::ID_SCOPE => found.id_scope = Some(strings.add(f.as_bytes())),
            field::BIND_ID => found.bind_id = Some(f.as_u64()),
            field::BIND_TO_ENCLOSING => found.bind_to_enclosing = f.as_bool(),
            field::FLOW_DIRECTION => found.direction = small(f.as_i32()),
            field::INSTANT_EVENT_SCOPE => found.instant_scope = small(f.as_i32()),
            field::PID_OVERRIDE => found.pid = Some(i64::from(f.as_i32())),
            field::TID_OVERRIDE => found.tid = Some(i64::from(f.as_i32())),
            _ => {}
        }
    }
    (found, name)
}
