//! The extras of an event.

use esatto::{Arg, CounterValue, Kind, Timestamp, raw};

use super::field_extra::FieldExtra;
use super::inline_list::InlineList;
use super::tracks::Tracks;
use crate::abi::numbers::clock;
use crate::abi::{self, CategoryDescriptor, Extra, ExtraVariant};
use crate::ffi::{self, Array, Ref, Str};

/// The extras of an event, read once. The lists have room for those of most events; longer ones go
/// into vectors.
pub(super) struct Extras<'a> {
    kind: Kind,
    pub(super) is_name_inline: bool,
    /// Names of the annotations. None of them is null.
    pub(super) names: InlineList<Str<'a>, 12>,
    /// Arguments of the trace point. Those that are values of annotations have the order of
    /// `names`.
    pub(super) args: InlineList<Arg<'a>, 16>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) tracks: Tracks<'a>,
    pub(super) dynamic_category: Option<Ref<'a, CategoryDescriptor<'a>>>,
    pub(super) fields: InlineList<FieldExtra<'a>, 4>,
    pub(super) flush: bool,
    /// The event is the end of a slice that is not open on this thread.
    pub(super) is_not_open: bool,
}

impl<'a> Extras<'a> {
    #[inline(always)]
    pub(super) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            is_name_inline: false,
            names: InlineList::new(),
            args: InlineList::new(),
            timestamp: None,
            tracks: Tracks::None,
            dynamic_category: None,
            fields: InlineList::new(),
            flush: false,
            is_not_open: false,
        }
    }

    /// Reads the extras that a program has passed. With `in_full` annotations become fields, which
    /// have their names in full.
    #[inline(always)]
    pub(super) fn read(&mut self, extras: Array<'a, Ref<'a, Extra>>, in_full: bool) {
        for extra in extras.iter() {
            self.add(extra, in_full);
        }
    }

    #[inline(always)]
    fn add(&mut self, extra: Ref<'a, Extra>, in_full: bool) {
        match extra.variant() {
            ExtraVariant::RegisteredTrack(track) => self.tracks = Tracks::Registered(track),
            ExtraVariant::NamedTrack(track) => self.tracks = Tracks::Named(track),
            ExtraVariant::ProtoTrack(track) => self.tracks = Tracks::Proto(track),
            ExtraVariant::NestedTracks(tracks) => self.tracks = Tracks::Nested(tracks),
            ExtraVariant::Timestamp(&abi::ExtraTimestamp { timestamp, .. }) => {
                let abi::Timestamp { clock_id, value } = timestamp;
                // "Incremental" means the clock of the trace, in whichever encoding.
                let is_trace_clock = clock_id == clock::INCREMENTAL || clock_id == raw::clock_id();
                self.timestamp = Some(match is_trace_clock {
                    true => Timestamp::trace_ns(value),
                    false => Timestamp::of_clock(clock_id, value),
                });
            }
            ExtraVariant::DynamicCategory(category) => {
                self.dynamic_category = category.desc.get().map(|_| category.desc);
            }
            // An integer counts only on counter events, a double on all (`docs/spec/c-abi.md`
            // §11).
            ExtraVariant::CounterInt64(counter) => {
                if self.kind == Kind::Counter {
                    self.args.push(Arg::Counter(CounterValue::Int(counter.value)));
                }
            }
            ExtraVariant::CounterDouble(counter) => {
                self.args.push(Arg::Counter(CounterValue::Double(counter.value)));
            }
            ExtraVariant::DebugArgBool(arg) => self.annotate(arg.name, Arg::Bool(arg.value == 1), extra, in_full),
            ExtraVariant::DebugArgUint64(arg) => self.annotate(arg.name, Arg::U64(arg.value), extra, in_full),
            ExtraVariant::DebugArgInt64(arg) => self.annotate(arg.name, Arg::I64(arg.value), extra, in_full),
            ExtraVariant::DebugArgDouble(arg) => self.annotate(arg.name, Arg::F64(arg.value), extra, in_full),
            ExtraVariant::DebugArgPointer(arg) => {
                self.annotate(arg.name, Arg::Pointer(arg.value as u64), extra, in_full);
            }
            ExtraVariant::DebugArgString(arg) => match ffi::utf8(arg.value.bytes().unwrap_or_default()) {
                Some(value) => self.annotate(arg.name, Arg::Str(value), extra, in_full),
                None => self.fields.push(FieldExtra::Annotation(extra)),
            },
            ExtraVariant::Flow(flow) => self.args.push(Arg::Flow(flow.id)),
            ExtraVariant::TerminatingFlow(flow) => self.args.push(Arg::EndFlow(flow.id)),
            ExtraVariant::Flush => self.flush = true,
            ExtraVariant::NoIntern => self.is_name_inline = true,
            ExtraVariant::ProtoFields(proto) => self.fields.push(FieldExtra::Fields(proto.fields)),
            ExtraVariant::CorrelationId(correlation) => self.fields.push(FieldExtra::Correlation(correlation.id)),
            ExtraVariant::CorrelationIdStr(correlation) => {
                if let Some(id) = correlation.str.bytes() {
                    self.fields.push(FieldExtra::CorrelationText(id));
                }
            }
            ExtraVariant::NotOpen => self.is_not_open = self.kind == Kind::SliceEnd,
            ExtraVariant::Unknown => {}
        }
    }

    #[inline(always)]
    fn annotate(&mut self, name: Str<'a>, value: Arg<'a>, extra: Ref<'a, Extra>, in_full: bool) {
        if name.is_null() || in_full {
            self.fields.push(FieldExtra::Annotation(extra));
        } else {
            self.names.push(name);
            self.args.push(value);
        }
    }
}
