//! Track events that the library encodes (`docs/spec/c-abi.md` §11).
//!
//! What comes with an event is read once, into the arguments of the SDK's trace points ([`Scan`]); the trace point itself is one of the
//! SDK's, made when an event of its kind is first seen ([`sites`]).

mod fields;
mod sites;
mod tracks;

use core::ffi::c_char;

use esatto::{Arg, CounterValue, Event, Kind, raw};

use crate::abi::{self, Extra, extra, te_type};
use crate::category::{self, CategoryImpl};
use crate::guard::guard;
use crate::text;
use sites::Known;
use tracks::Tracks;

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeHlEmitImpl(
    cat: *const CategoryImpl,
    event_type: i32,
    name: *const c_char,
    extra_data: *const *const Extra,
) {
    guard(|| {
        // SAFETY: the contract: from create; categories live for ever.
        let category: Option<&'static CategoryImpl> = unsafe { cat.as_ref() };
        let (Some(category), Some(kind)) = (category, kind(event_type)) else { return };
        // A signal handler may have interrupted this very function where it holds a lock: then the thread is closed.
        if category.category().instances() == 0 || !raw::is_open() {
            return;
        }
        // SAFETY: the contract: a string that ends with NUL, and an array that ends with null, of valid extras.
        let event = unsafe { Scan::new(kind, name, extra_data) };
        event.record(category);
        if event.flush {
            raw::flush();
        }
    })
}

fn kind(event_type: i32) -> Option<Kind> {
    Some(match event_type {
        te_type::SLICE_BEGIN => Kind::SliceBegin,
        te_type::SLICE_END => Kind::SliceEnd,
        te_type::INSTANT => Kind::Instant,
        te_type::COUNTER => Kind::Counter,
        te_type::STATE => Kind::State,
        _ => return None,
    })
}

/// An event of the program, as it was found.
struct Scan<'a> {
    kind: Kind,
    /// Empty, too, if the event has none.
    name: Option<&'a [u8]>,
    is_name_inline: bool,
    annotations: Vec<Annotation<'a>>,
    /// The names of the annotations.
    names: Vec<&'a str>,
    counter: Option<CounterValue>,
    /// Ids, and whether they end.
    flows: Vec<(u64, bool)>,
    timestamp: Option<esatto::Timestamp>,
    tracks: Tracks<'a>,
    dynamic_category: *const abi::CategoryDescriptor,
    /// What has to be written field by field.
    rest: Vec<Rest<'a>>,
    flush: bool,
}

/// The value of an annotation.
#[derive(Clone, Copy)]
enum Annotation<'a> {
    Bool(bool),
    U64(u64),
    I64(i64),
    F64(f64),
    Str(&'a str),
    Pointer(u64),
}

/// What no other argument says.
enum Rest<'a> {
    Correlation(u64),
    CorrelationText(&'a [u8]),
    /// A string that is no text as ours are: name, value.
    Annotation(Option<&'a [u8]>, *const Extra),
    Fields(*const *const abi::ProtoField),
}

impl<'a> Scan<'a> {
    /// # Safety
    ///
    /// The contract of [`PerfettoTeHlEmitImpl`]; all of it stays as it is for `'a`.
    unsafe fn new(kind: Kind, name: *const c_char, extra_data: *const *const Extra) -> Self {
        // SAFETY: the caller's promise.
        let name = unsafe { text::bytes(name) }.filter(|_| kind != Kind::SliceEnd);
        let mut scan = Self {
            kind,
            name,
            is_name_inline: false,
            annotations: Vec::new(),
            names: Vec::new(),
            counter: None,
            flows: Vec::new(),
            timestamp: None,
            tracks: Tracks::None,
            dynamic_category: core::ptr::null(),
            rest: Vec::new(),
            flush: false,
        };
        // SAFETY: the caller's promise.
        for extra in unsafe { text::pointers(extra_data) } {
            // SAFETY: as above.
            unsafe { scan.add(extra) };
        }
        scan
    }

    /// # Safety
    ///
    /// The extra begins one of the struct that its type says, and that is valid for `'a`.
    unsafe fn add(&mut self, extra: *const Extra) {
        macro_rules! as_struct {
            ($type:ident) => {{
                let whole: *const abi::$type = extra.cast();
                // SAFETY: the type says that it is one.
                let whole: &'a abi::$type = unsafe { &*whole };
                whole
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
                    true => esatto::Timestamp::trace_ns(value),
                    false => esatto::Timestamp::of_clock(clock_id, value),
                });
            }
            extra::DYNAMIC_CATEGORY => self.dynamic_category = as_struct!(ExtraDynamicCategory).desc,
            extra::COUNTER_INT64 if self.kind == Kind::Counter => {
                self.counter = Some(CounterValue::Int(as_struct!(ExtraCounterInt64).value));
            }
            extra::COUNTER_DOUBLE => {
                self.counter = Some(CounterValue::Double(as_struct!(ExtraCounterDouble).value));
            }
            extra::DEBUG_ARG_BOOL => {
                let arg = as_struct!(ExtraDebugArgBool);
                // SAFETY: a string, or null.
                unsafe { self.annotate(arg.name, Some(Annotation::Bool(arg.value == 1)), extra) };
            }
            extra::DEBUG_ARG_UINT64 => {
                let arg = as_struct!(ExtraDebugArgUint64);
                // SAFETY: as above.
                unsafe { self.annotate(arg.name, Some(Annotation::U64(arg.value)), extra) };
            }
            extra::DEBUG_ARG_INT64 => {
                let arg = as_struct!(ExtraDebugArgInt64);
                // SAFETY: as above.
                unsafe { self.annotate(arg.name, Some(Annotation::I64(arg.value)), extra) };
            }
            extra::DEBUG_ARG_DOUBLE => {
                let arg = as_struct!(ExtraDebugArgDouble);
                // SAFETY: as above.
                unsafe { self.annotate(arg.name, Some(Annotation::F64(arg.value)), extra) };
            }
            extra::DEBUG_ARG_POINTER => {
                let arg = as_struct!(ExtraDebugArgPointer);
                // SAFETY: as above.
                unsafe { self.annotate(arg.name, Some(Annotation::Pointer(arg.value as u64)), extra) };
            }
            extra::DEBUG_ARG_STRING => {
                let arg = as_struct!(ExtraDebugArgString);
                // SAFETY: as above, both of them.
                let value = unsafe { text::bytes(arg.value) }.unwrap_or_default();
                let value = core::str::from_utf8(value).ok().map(Annotation::Str);
                // SAFETY: as above.
                unsafe { self.annotate(arg.name, value, extra) };
            }
            extra::FLOW => self.flows.push((as_struct!(ExtraFlow).id, false)),
            extra::TERMINATING_FLOW => self.flows.push((as_struct!(ExtraFlow).id, true)),
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

    /// Adds an annotation; one whose strings are not UTF-8, or that has no name, is written later.
    ///
    /// # Safety
    ///
    /// `name` is null or a string that ends with NUL.
    unsafe fn annotate(&mut self, name: *const c_char, value: Option<Annotation<'a>>, extra: *const Extra) {
        // SAFETY: the caller's promise.
        let name = unsafe { text::bytes(name) };
        match (name.and_then(|name| core::str::from_utf8(name).ok()), value) {
            (Some(name), Some(value)) => {
                self.names.push(name);
                self.annotations.push(value);
            }
            _ => self.rest.push(Rest::Annotation(name, extra)),
        }
    }

    fn record(&self, category: &'static CategoryImpl) {
        let text = self.name.and_then(|name| core::str::from_utf8(name).ok());
        let odd_name = self.name.filter(|_| text.is_none());
        let site_name = text.filter(|_| !self.is_name_inline);
        let has_category = self.dynamic_category.is_null();
        let Some(Known { site, is_named }) = sites::find(category, has_category, self.kind, site_name, &self.names)
        else {
            return;
        };
        let dynamic_category = match self.kind {
            Kind::SliceEnd | Kind::Counter => core::ptr::null(),
            _ => self.dynamic_category,
        };
        let in_full = if is_named { &[] } else { &self.annotations[..] };
        let mut write = |event: &mut Event<'_>| {
            for (name, value) in self.names.iter().zip(in_full) {
                fields::annotate(event, name, *value);
            }
            // SAFETY: valid as long as the event is emitted.
            if let Some(category) = unsafe { dynamic_category.as_ref() } {
                // SAFETY: as above.
                fields::category(event, unsafe { text::bytes(category.name) }.unwrap_or_default());
            }
            if let Some(name) = odd_name {
                fields::name(event, name);
            }
            for rest in &self.rest {
                // SAFETY: as above.
                unsafe { fields::write(event, rest) };
            }
        };
        // SAFETY: as above.
        let track = unsafe { self.tracks.track() };
        // Allocates nothing for an event without anything.
        let mut args: Vec<Arg<'_>> = Vec::new();
        args.extend(track.as_ref().map(Arg::Track));
        args.extend(text.filter(|_| self.is_name_inline || !is_named).map(Arg::Name));
        args.extend(self.timestamp.as_ref().map(Arg::At));
        args.extend(self.counter.map(Arg::Counter));
        if is_named {
            args.extend(self.annotations.iter().map(|annotation| annotation.arg()));
        }
        let flow = |&(id, ends): &(u64, bool)| if ends { Arg::EndFlow(id) } else { Arg::Flow(id) };
        args.extend(self.flows.iter().map(flow));
        if !in_full.is_empty() || !dynamic_category.is_null() || odd_name.is_some() || !self.rest.is_empty() {
            args.push(Arg::With(&mut write));
        }
        let recording = || {
            let instances = category.category().instances();
            if has_category {
                return instances;
            }
            // SAFETY: as above.
            instances & unsafe { category::dynamic_instances(self.dynamic_category) }
        };
        match track {
            // SAFETY: as above.
            Some(_) => unsafe { self.tracks.record(&recording, site, &mut args) },
            None if has_category => drop(raw::record_in(recording(), site, &mut args)),
            None => drop(raw::record_for(&recording, site, &mut args)),
        }
    }
}

impl<'a> Annotation<'a> {
    const fn arg<'s>(self) -> Arg<'s>
    where
        'a: 's,
    {
        match self {
            Self::Bool(v) => Arg::Bool(v),
            Self::U64(v) => Arg::U64(v),
            Self::I64(v) => Arg::I64(v),
            Self::F64(v) => Arg::F64(v),
            Self::Str(v) => Arg::Str(v),
            Self::Pointer(v) => Arg::Pointer(v),
        }
    }
}
