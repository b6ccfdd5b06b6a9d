//! What comes with an event.

use core::ffi::c_char;

use esatto::{Arg, CounterValue, Kind, Timestamp, raw};

use super::list::List;
use super::tracks::Tracks;
use crate::abi::{self, CategoryDescriptor, Extra, extra};
use crate::text;

/// The extras of an event, read once. Those of most events lie here; more of them, in vectors.
pub(super) struct Scan<'a> {
    kind: Kind,
    pub(super) is_name_inline: bool,
    /// The names of the annotations, none of which is null.
    pub(super) names: List<*const c_char, 12>,
    /// The values of the annotations, in that order, among others.
    pub(super) args: List<Arg<'a>, 16>,
    pub(super) timestamp: Option<Timestamp>,
    pub(super) tracks: Tracks<'a>,
    pub(super) dynamic_category: Option<&'a CategoryDescriptor>,
    /// What has to be written field by field.
    pub(super) rest: List<Rest<'a>, 4>,
    pub(super) flush: bool,
}

/// What no argument of the SDK says.
#[derive(Clone, Copy)]
pub(super) enum Rest<'a> {
    Correlation(u64),
    CorrelationText(&'a [u8]),
    /// Without a name, or with a text that is not UTF-8.
    Annotation(*const Extra),
    Fields(*const *const abi::ProtoField),
}

impl<'a> Scan<'a> {
    #[inline(always)]
    pub(super) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            is_name_inline: false,
            names: List::new(),
            args: List::new(),
            timestamp: None,
            tracks: Tracks::None,
            dynamic_category: None,
            rest: List::new(),
            flush: false,
        }
    }

    /// Reads what a program has handed over. With `in_full` annotations are left for later, to be written with their names.
    ///
    /// # Safety
    ///
    /// Null or an array that ends with null, of extras that each begin one of the struct that its type says; all of it stays as it is for `'a`.
    #[inline(always)]
    pub(super) unsafe fn read(&mut self, extras: *const *const Extra, in_full: bool) {
        // SAFETY: the caller's promise.
        for extra in unsafe { text::pointers(extras) } {
            // SAFETY: as above.
            unsafe { self.add(extra, in_full) };
        }
    }

    /// # Safety
    ///
    /// The extra begins one of the struct that its type says, and that is valid for `'a`.
    #[inline(always)]
    unsafe fn add(&mut self, extra: *const Extra, in_full: bool) {
        macro_rules! as_struct {
            ($type:ident) => {{
                let whole: *const abi::$type = extra.cast();
                // SAFETY: the type says that it is one.
                let whole: &'a abi::$type = unsafe { &*whole };
                whole
            }};
        }
        macro_rules! annotation {
            ($type:ident, $arg:expr) => {{
                let whole = as_struct!($type);
                self.annotate(whole.name, $arg(whole.value), extra, in_full);
            }};
        }
        // SAFETY: the caller's promise.
        match unsafe { (*extra).kind } {
            extra::REGISTERED_TRACK => self.tracks = Tracks::Registered(as_struct!(ExtraRegisteredTrack)),
            extra::NAMED_TRACK => self.tracks = Tracks::Named(as_struct!(ExtraNamedTrack)),
            extra::PROTO_TRACK => self.tracks = Tracks::Proto(as_struct!(ExtraProtoTrack)),
            extra::NESTED_TRACKS => self.tracks = Tracks::Nested(as_struct!(ExtraNestedTracks)),
            extra::TIMESTAMP => {
                let abi::Timestamp { clock_id, value } = as_struct!(ExtraTimestamp).timestamp;
                // "Incremental" means the clock of the trace, however it is written.
                let is_trace_clock = clock_id == abi::clock::INCREMENTAL || clock_id == raw::clock_id();
                self.timestamp = Some(match is_trace_clock {
                    true => Timestamp::trace_ns(value),
                    false => Timestamp::of_clock(clock_id, value),
                });
            }
            extra::DYNAMIC_CATEGORY => {
                let desc = as_struct!(ExtraDynamicCategory).desc;
                // SAFETY: null or valid, by the caller's promise.
                self.dynamic_category = unsafe { desc.as_ref() };
            }
            extra::COUNTER_INT64 if self.kind == Kind::Counter => {
                self.args.push(Arg::Counter(CounterValue::Int(as_struct!(ExtraCounterInt64).value)));
            }
            extra::COUNTER_DOUBLE => {
                self.args.push(Arg::Counter(CounterValue::Double(as_struct!(ExtraCounterDouble).value)));
            }
            extra::DEBUG_ARG_BOOL => annotation!(ExtraDebugArgBool, |value| Arg::Bool(value == 1)),
            extra::DEBUG_ARG_UINT64 => annotation!(ExtraDebugArgUint64, Arg::U64),
            extra::DEBUG_ARG_INT64 => annotation!(ExtraDebugArgInt64, Arg::I64),
            extra::DEBUG_ARG_DOUBLE => annotation!(ExtraDebugArgDouble, Arg::F64),
            extra::DEBUG_ARG_POINTER => annotation!(ExtraDebugArgPointer, |value| Arg::Pointer(value as u64)),
            extra::DEBUG_ARG_STRING => {
                let arg = as_struct!(ExtraDebugArgString);
                // SAFETY: a string, or null.
                let value = unsafe { text::bytes(arg.value) }.unwrap_or_default();
                match text::utf8(value) {
                    Some(value) => self.annotate(arg.name, Arg::Str(value), extra, in_full),
                    None => self.rest.push(Rest::Annotation(extra)),
                }
            }
            extra::FLOW => self.args.push(Arg::Flow(as_struct!(ExtraFlow).id)),
            extra::TERMINATING_FLOW => self.args.push(Arg::EndFlow(as_struct!(ExtraFlow).id)),
            extra::FLUSH => self.flush = true,
            extra::NO_INTERN => self.is_name_inline = true,
            extra::PROTO_FIELDS => self.rest.push(Rest::Fields(as_struct!(ExtraProtoFields).fields)),
            extra::CORRELATION_ID => self.rest.push(Rest::Correlation(as_struct!(ExtraCorrelationId).id)),
            extra::CORRELATION_ID_STR => {
                let id = as_struct!(ExtraCorrelationIdStr).str;
                // SAFETY: a string, or null.
                if let Some(id) = unsafe { text::bytes(id) } {
                    self.rest.push(Rest::CorrelationText(id));
                }
            }
            _ => {}
        }
    }

    #[inline(always)]
    fn annotate(&mut self, name: *const c_char, value: Arg<'a>, extra: *const Extra, in_full: bool) {
        if name.is_null() || in_full {
            self.rest.push(Rest::Annotation(extra));
        } else {
            self.names.push(name);
            self.args.push(value);
        }
    }
}
