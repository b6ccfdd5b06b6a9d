//! Decoder of one `TrackEvent`, with the state of its sequence (`docs/spec/track-event.md` §2).

use core::ops::Range;

use esatto_protozero::Fields;
use esatto_schema::{interned_data, track_event};

use crate::packet_sequence::{MAX_EXTRA_COUNTERS, Sequence, State};
use crate::problems::{Problem, Problems};
use crate::string_table::{Strings, Symbol};
use crate::track_descriptors::{TrackKind, Tracks};
use crate::track_key::TrackKey;

/// The value of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
}

impl CounterValue {
    /// Returns the value as a floating point number, perhaps rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Double(value) => value,
        }
    }
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    Begin,
    End,
    Instant,
    Counter(CounterValue),
    State,
    /// A whole slice with its duration in nanoseconds, of the older form.
    Complete(i64),
}

/// An event, with ranges into the lists of [`Events`].
#[derive(Debug, Clone)]
pub(crate) struct RawEvent {
    /// Its time. Until the end of the import, this is time of its own machine.
    pub(crate) ts: i64,
    pub(crate) track: TrackKey,
    pub(crate) action: Action,
    pub(crate) name: Option<Symbol>,
    pub(crate) sequence: u32,
    pub(crate) offset: u64,
    pub(crate) categories: Range<u32>,
    pub(crate) flows: Range<u32>,
    pub(crate) terminating: Range<u32>,
    pub(crate) extra: Range<u32>,
    pub(crate) annotations: Range<u32>,
}

/// The events of a trace and the lists that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) list: Vec<RawEvent>,
    pub(crate) categories: Vec<Symbol>,
    pub(crate) flows: Vec<u64>,
    pub(crate) extra: Vec<(TrackKey, CounterValue)>,
}

impl Events {
    pub(crate) fn categories(&self, event: &RawEvent) -> &[Symbol] {
        slice(&self.categories, &event.categories)
    }

    pub(crate) fn flows(&self, event: &RawEvent) -> &[u64] {
        slice(&self.flows, &event.flows)
    }

    pub(crate) fn terminating(&self, event: &RawEvent) -> &[u64] {
        slice(&self.flows, &event.terminating)
    }

    pub(crate) fn extra(&self, event: &RawEvent) -> &[(TrackKey, CounterValue)] {
        slice(&self.extra, &event.extra)
    }
}

fn slice<'l, T>(list: &'l [T], range: &Range<u32>) -> &'l [T] {
    &list[range.start as usize..range.end as usize]
}

pub(crate) fn position<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).expect("a trace has less than 2^32 list elements")
}

/// Decodes an event and appends it without its timestamp, unless it breaks a rule. The caller reads
/// the annotations: `each_annotation` gets their encodings.
pub(crate) fn read<'p>(
    bytes: &'p [u8],
    sequence: &mut Sequence,
    tracks: &Tracks,
    strings: &mut Strings,
    events: &mut Events,
    problems: &mut Problems,
    mut each_annotation: impl FnMut(&'p [u8]),
) -> bool {
    use track_event::field;
    let (machine, state) = (sequence.machine, &mut sequence.state);
    let (mut kind, mut track, mut name) = (0, None, None);
    let (mut value, mut legacy) = (None, None);
    let categories = position(&events.categories);
    let mut flows = [Vec::new(), Vec::new()];
    let mut old_flows = [Vec::new(), Vec::new()];
    let (mut extra_tracks, mut extra_values) = (Vec::new(), Vec::new());
    let (mut extra_double_tracks, mut extra_double_values) = (Vec::new(), Vec::new());
    for f in Fields::new(bytes) {
        match f.id {
            field::TYPE => kind = f.as_i32(),
            field::TRACK_UUID => track = Some(f.as_u64()),
            field::NAME => name = Some(strings.add(f.as_bytes())),
            field::NAME_IID => name = event_name(f.as_u64(), state, problems),
            field::CATEGORY_IIDS => {
                let iid = f.as_u64();
                let found = state.look_up(interned_data::field::EVENT_CATEGORIES, iid);
                events.categories.push(found.unwrap_or_else(|| {
                    problems.count(Problem::UnresolvedCategory);
                    strings.add_str(&format!("unknown({iid})"))
                }));
            }
            field::CATEGORIES => events.categories.push(strings.add(f.as_bytes())),
            field::COUNTER_VALUE => value = Some(CounterValue::Int(f.as_i64())),
            field::DOUBLE_COUNTER_VALUE => value = Some(CounterValue::Double(f.as_f64())),
            field::EXTRA_COUNTER_TRACK_UUIDS => extra_tracks.push(f.as_u64()),
            field::EXTRA_COUNTER_VALUES => extra_values.push(f.as_i64()),
            field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS => extra_double_tracks.push(f.as_u64()),
            field::EXTRA_DOUBLE_COUNTER_VALUES => extra_double_values.push(f.as_f64()),
            field::FLOW_IDS => flows[0].push(f.as_u64()),
            field::TERMINATING_FLOW_IDS => flows[1].push(f.as_u64()),
            field::FLOW_IDS_OLD => old_flows[0].push(f.as_u64()),
            field::TERMINATING_FLOW_IDS_OLD => old_flows[1].push(f.as_u64()),
            field::DEBUG_ANNOTATIONS => each_annotation(f.as_bytes()),
            field::LEGACY_EVENT => legacy = Some(f.as_bytes()),
            _ => {}
        }
    }
    let own = |uuid| TrackKey { machine, uuid };
    let track = own(track.or(state.track).unwrap_or(0));
    let action = match kind {
        1 => Ok(Action::Begin),
        2 => Ok(Action::End),
        3 => Ok(Action::Instant),
        4 => counter(track, value, state, tracks).map(Action::Counter),
        5 => match tracks.descriptors.get(&track).map(|track| track.kind) {
            Some(TrackKind::State) => Ok(Action::State),
            _ => Err(Problem::StateWithoutTrack),
        },
        _ => match legacy {
            Some(bytes) => legacy_action(bytes, &mut name, state, problems),
            None => Err(Problem::EventWithoutType),
        },
    };
    let extra = position(&events.extra);
    let double_tracks: &[u64] =
        if extra_double_tracks.is_empty() { &state.extra_double_counters.clone() } else { &extra_double_tracks };
    let int_tracks: &[u64] = if extra_tracks.is_empty() { &state.extra_counters.clone() } else { &extra_tracks };
    let counted = extra_values.len() + extra_double_values.len();
    let fits = int_tracks.len() >= extra_values.len() && double_tracks.len() >= extra_double_values.len();
    let action = action.and_then(|action| {
        if !fits || counted > MAX_EXTRA_COUNTERS {
            return Err(Problem::ExtraCounters);
        }
        let ints = int_tracks.iter().zip(extra_values).map(|(&track, value)| (track, CounterValue::Int(value)));
        let doubles =
            double_tracks.iter().zip(extra_double_values).map(|(&track, value)| (track, CounterValue::Double(value)));
        for (uuid, value) in ints.chain(doubles) {
            let track = own(uuid);
            let value = counter(track, Some(value), state, tracks)?;
            events.extra.push((track, value));
        }
        Ok(action)
    });
    let action = match action {
        Ok(action) => action,
        Err(problem) => {
            problems.count(problem);
            events.categories.truncate(categories as usize);
            events.extra.truncate(extra as usize);
            return false;
        }
    };
    // If both forms are present, the new one counts.
    let [flows, terminating] = flows;
    let [old_flows, old_terminating] = old_flows;
    let first = position(&events.flows);
    events.flows.extend(if flows.is_empty() { old_flows } else { flows });
    let second = position(&events.flows);
    events.flows.extend(if terminating.is_empty() { old_terminating } else { terminating });
    events.list.push(RawEvent {
        ts: 0,
        track,
        action,
        name,
        sequence: 0,
        offset: 0,
        categories: categories..position(&events.categories),
        flows: first..second,
        terminating: second..position(&events.flows),
        extra: extra..position(&events.extra),
        annotations: 0..0,
    });
    true
}

fn event_name(iid: u64, state: &State, problems: &mut Problems) -> Option<Symbol> {
    let found = state.look_up(interned_data::field::EVENT_NAMES, iid);
    if found.is_none() {
        problems.count(Problem::UnresolvedName);
    }
    found
}

/// Returns the value of a counter after an event.
fn counter(
    track: TrackKey,
    value: Option<CounterValue>,
    state: &mut State,
    tracks: &Tracks,
) -> Result<CounterValue, Problem> {
    let counter = tracks.counter(track).ok_or(Problem::CounterWithoutTrack)?;
    Ok(match value.ok_or(Problem::CounterWithoutValue)? {
        CounterValue::Int(mut value) => {
            if counter.incremental {
                let sum = state.sums.entry(track.uuid).or_default();
                *sum = sum.wrapping_add(value);
                value = *sum;
            }
            CounterValue::Int(value.wrapping_mul(counter.multiplier.max(1)))
        }
        CounterValue::Double(mut value) => {
            if counter.incremental {
                let sum = state.double_sums.entry(track.uuid).or_default();
                *sum += value;
                value = *sum;
            }
            CounterValue::Double(value * counter.multiplier.max(1) as f64)
        }
    })
}

/// Returns the action of a slice or instant of the older form. Its other phases are not read.
fn legacy_action(
    bytes: &[u8],
    name: &mut Option<Symbol>,
    state: &State,
    problems: &mut Problems,
) -> Result<Action, Problem> {
    use track_event::legacy_event::field;
    let (mut phase, mut duration_us) = (0, 0);
    for f in Fields::new(bytes) {
        match f.id {
            field::PHASE => phase = f.as_i32(),
            field::DURATION_US => duration_us = f.as_i64(),
            field::NAME_IID => *name = event_name(f.as_u64(), state, problems),
            _ => {}
        }
    }
    match u8::try_from(phase) {
        Ok(b'B') => Ok(Action::Begin),
        Ok(b'E') => Ok(Action::End),
        Ok(b'I' | b'i' | b'R') => Ok(Action::Instant),
        Ok(b'X') => Ok(Action::Complete(duration_us.max(0).saturating_mul(1000))),
        _ => Err(Problem::LegacyPhase),
    }
}
