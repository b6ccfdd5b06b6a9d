//! The open event of a trace point.

use esatto_protozero::Message;
use esatto_schema::track_event::LegacyEventWriter;
use esatto_schema::{TrackEventWriter, log_message, track_event};

use crate::event::interning::Tables;
use crate::event::{AnnotationWriter, Arg, DictWriter, Flow, Frame, Interned, Location, TraceArgs, Value};
use crate::name::{Announced, Name};

/// The kind of an event (`docs/spec/track-event.md` §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Begins a slice.
    SliceBegin,
    /// Ends the innermost open slice of the track.
    SliceEnd,
    /// A moment.
    Instant,
    /// A new value of a counter.
    Counter,
    /// A new state of a state track. Without a name, the track then has no state.
    State,
    /// An event that its legacy fields describe ([`Event::legacy`]).
    Legacy,
}

impl Kind {
    /// Returns `TrackEvent.type`; `None` if the field is left out.
    pub(crate) const fn number(self) -> Option<track_event::Type> {
        match self {
            Self::SliceBegin => Some(track_event::Type::TYPE_SLICE_BEGIN),
            Self::SliceEnd => Some(track_event::Type::TYPE_SLICE_END),
            Self::Instant => Some(track_event::Type::TYPE_INSTANT),
            Self::Counter => Some(track_event::Type::TYPE_COUNTER),
            Self::State => Some(track_event::Type::TYPE_STATE),
            Self::Legacy => None,
        }
    }
}

/// The open event of a trace point. Its methods add annotations, flows and typed fields.
///
/// A second call replaces a part that an event has only once: a location, a correlation id, a log
/// message, a call stack.
#[derive(Debug)]
pub struct Event<'e> {
    track_event: TrackEventWriter<'e>,
    names: &'e mut AnnotationNames,
    annotate: bool,
}

/// The names of annotations that one sequence has announced, and those that the current event has
/// to announce.
#[derive(Debug, Default)]
pub(crate) struct AnnotationNames {
    pub(crate) announced: Announced,
    pub(crate) new: Vec<&'static Name>,
    pub(crate) tables: Tables,
}

impl AnnotationNames {
    /// Returns the number of a name. The event announces the name if the sequence has not done so.
    #[inline]
    pub(crate) fn number(&mut self, name: &'static Name) -> u64 {
        let iid = name.iid();
        if !self.announced.check_and_set(iid) {
            self.new.push(name);
        }
        u64::from(iid)
    }
}

impl<'e> Event<'e> {
    pub(crate) fn new(message: Message<'e>, names: &'e mut AnnotationNames, annotate: bool) -> Self {
        Self { track_event: TrackEventWriter::from(message), names, annotate }
    }

    /// Adds an argument of the trace point, except those that are written before the annotations.
    /// Annotations take the next name.
    pub(crate) fn add(&mut self, arg: &mut Arg<'_>, names: &mut core::slice::Iter<'static, Name>) {
        let value: &dyn Value = match arg {
            Arg::Track(_) | Arg::Name(_) | Arg::Counter(_) | Arg::Extra(_) | Arg::At(_) | Arg::Category(_) => return,
            Arg::Flow(id) => {
                self.track_event.flow_ids(*id);
                return;
            }
            Arg::EndFlow(id) => {
                self.track_event.terminating_flow_ids(*id);
                return;
            }
            Arg::With(write) => return write(self),
            Arg::U64(v) => v,
            Arg::I64(v) => v,
            Arg::F64(v) => v,
            Arg::Bool(v) => v,
            Arg::Str(v) => v,
            Arg::Pointer(v) => &core::ptr::without_provenance::<()>(*v as usize),
            Arg::Value(v) => *v,
        };
        if let (Some(name), true) = (names.next(), self.annotate) {
            let iid = self.names.number(name);
            let mut annotation = self.track_event.debug_annotations();
            annotation.name_iid(iid);
            value.write(AnnotationWriter::new(annotation, self.names));
        }
    }

    /// Adds a debug annotation. The name is written in full each time; `key = value` in a macro
    /// takes less space.
    pub fn annotate(&mut self, name: &str, value: impl Value) {
        if self.annotate {
            let mut annotation = self.track_event.debug_annotations();
            annotation.name(name);
            value.write(AnnotationWriter::new(annotation, self.names));
        }
    }

    /// Adds a debug annotation without a name; for bindings of other languages.
    #[doc(hidden)]
    pub fn annotate_nameless(&mut self, value: impl Value) {
        if self.annotate {
            value.write(AnnotationWriter::new(self.track_event.debug_annotations(), self.names));
        }
    }

    /// Adds a debug annotation whose name is written once per sequence, like `key = value` in a
    /// macro.
    #[doc(hidden)]
    #[inline]
    pub fn annotate_static(&mut self, name: &'static Name, value: impl Value) {
        if self.annotate {
            let iid = self.names.number(name);
            let mut annotation = self.track_event.debug_annotations();
            annotation.name_iid(iid);
            value.write(AnnotationWriter::new(annotation, self.names));
        }
    }

    /// Adds each part of a value as a separate debug annotation.
    pub fn args(&mut self, args: &(impl TraceArgs + ?Sized)) {
        if self.annotate {
            args.write_args(&mut DictWriter::of_event(&mut self.track_event, self.names));
        }
    }

    /// Puts the event on a flow: an arrow leads here from the previous event of the flow.
    #[inline]
    pub fn flow(&mut self, flow: Flow) {
        self.track_event.flow_ids(flow.id());
    }

    /// Ends a flow here, so that another flow can use its id.
    #[inline]
    pub fn end_flow(&mut self, flow: Flow) {
        self.track_event.terminating_flow_ids(flow.id());
    }

    /// Adds the place in the source code from which the event comes: [`here!`](crate::here), or
    /// another [`Location`]. Places are written once per sequence.
    pub fn location<'l>(&mut self, location: impl Into<Location<'l>>) {
        let iid = self.names.tables.location(&location.into());
        self.track_event.source_location_iid(iid);
    }

    /// Makes the event a log message, with its place in the source code if it is known. Readers
    /// also list log messages apart from the timeline.
    ///
    /// ```
    /// # esatto::categories! { static APP = "app"; }
    /// esatto::instant!(APP, "log", |event| event.log(esatto::LogPriority::Warn, "disk is almost full", Some(esatto::here!())));
    /// ```
    pub fn log<'l>(&mut self, priority: LogPriority, body: &str, location: Option<Location<'l>>) {
        let body_iid = self.names.tables.log_body(body);
        let location_iid = location.map(|location| self.names.tables.location(&location));
        let mut message = self.track_event.log_message();
        message.body_iid(body_iid).prio(priority.number());
        if let Some(iid) = location_iid {
            message.source_location_iid(iid);
        }
    }

    /// Marks the event as the execution of a task, and adds the place in the source code that
    /// posted the task.
    pub fn task_posted_from<'l>(&mut self, location: impl Into<Location<'l>>) {
        let iid = self.names.tables.location(&location.into());
        self.track_event.task_execution().posted_from_iid(iid);
    }

    /// Marks the event as part of an operation. Readers find all events with an equal id; no arrows
    /// connect them.
    ///
    /// ```
    /// # esatto::categories! { static NET = "net"; }
    /// # let request_id = String::from("7f3a-11");
    /// esatto::instant!(NET, "accepted", |event| event.correlate(17_u64));
    /// esatto::instant!(NET, "parsed", |event| event.correlate(&*request_id));
    /// esatto::instant!(NET, "answered", |event| event.correlate(esatto::interned(&request_id)));
    /// ```
    pub fn correlate<'c>(&mut self, id: impl Into<Correlation<'c>>) {
        match id.into() {
            Correlation::Number(id) => self.track_event.correlation_id(id),
            Correlation::Text(id) => self.track_event.correlation_id_str(id),
            Correlation::Interned(id) => match self.names.tables.correlation(id) {
                Some(iid) => self.track_event.correlation_id_str_iid(iid),
                None => self.track_event.correlation_id_str(id),
            },
        };
    }

    /// Adds a call stack, outermost caller first, written in full.
    ///
    /// ```
    /// # esatto::categories! { static SCRIPT = "script"; }
    /// use esatto::Frame;
    ///
    /// let stack = [Frame::new("main").at("app.lua", 3), Frame::new("on_click").at("ui.lua", 41)];
    /// esatto::instant!(SCRIPT, "slow", |event| event.callstack(stack));
    /// ```
    pub fn callstack<'f>(&mut self, frames: impl IntoIterator<Item = Frame<'f>>) {
        let mut callstack = self.track_event.callstack();
        for frame in frames {
            let mut out = callstack.frames();
            out.function_name(frame.function);
            if let Some(file) = frame.file {
                out.source_file(file);
            }
            if let Some(line) = frame.line {
                out.line_number(line);
            }
        }
    }

    /// Adds a call stack, outermost caller first, whose parts are written once per sequence: for
    /// stacks that repeat.
    pub fn interned_callstack(&mut self, frames: &[Frame<'_>]) {
        let iid = self.names.tables.callstack(frames);
        self.track_event.callstack_iid(iid);
    }

    /// Sets the weight of this event's call stack relative to others.
    pub fn callstack_weight(&mut self, weight: f64) {
        self.track_event.callstack_weight(weight);
    }

    /// Begins the fields of an event in the style of the JSON trace format, with its phase (`'b'`,
    /// `'X'` and so on). For programs that have such events; see [`legacy!`](crate::legacy!).
    pub fn legacy(&mut self, phase: char) -> LegacyEventWriter<'_> {
        let mut legacy = self.track_event.legacy_event();
        legacy.phase(phase as i32);
        legacy
    }

    /// Returns the number of a text in a table of `InternedData` whose entries have the text as
    /// field 2. The event announces the text if the sequence has not done so.
    #[doc(hidden)]
    pub fn intern(&mut self, table: u32, text: &[u8]) -> u64 {
        self.names.tables.foreign_text(table, text)
    }

    /// Returns the writer for all other fields of `TrackEvent`, and for extensions: the traits that
    /// `esatto-protozero-codegen` generates for `extend TrackEvent` have their methods here:
    ///
    /// ```text
    /// // build.rs, with `esatto-protozero-codegen`. The files that shop.proto imports are in the folder crates/schema/proto of the repository;
    /// // what is generated needs `esatto-protozero` beside `esatto`.
    /// esatto_protozero_codegen::Config::new()
    ///     .external("perfetto.protos", "::esatto::schema")
    ///     .compile(&["shop.proto"], &["proto", "…/crates/schema/proto"])?
    ///     .write_to_out_dir("shop.rs")
    ///
    /// // shop.proto
    /// import "protos/perfetto/trace/track_event/track_event.proto";
    /// message ShopExtension {
    ///   extend perfetto.protos.TrackEvent { optional string cashier = 9002; }
    /// }
    ///
    /// // main.rs
    /// mod protos {
    ///     include!(concat!(env!("OUT_DIR"), "/shop.rs"));
    /// }
    /// use protos::shop::shop_extension::TrackEventWriterExt as _;
    ///
    /// esatto::instant!(SHOP, "sold", |event| event.fields().cashier("Ada"));
    /// ```
    #[inline]
    pub fn fields(&mut self) -> &mut TrackEventWriter<'e> {
        &mut self.track_event
    }
}

/// The id of the operation that an event belongs to, for [`Event::correlate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Correlation<'a> {
    /// A number.
    Number(u64),
    /// A text, written in full.
    Text(&'a str),
    /// A text that is written once per sequence; made by [`interned`](crate::interned).
    Interned(&'a str),
}

impl From<u64> for Correlation<'_> {
    fn from(id: u64) -> Self {
        Self::Number(id)
    }
}

impl<'a> From<&'a str> for Correlation<'a> {
    fn from(id: &'a str) -> Self {
        Self::Text(id)
    }
}

impl<'a> From<Interned<'a>> for Correlation<'a> {
    fn from(id: Interned<'a>) -> Self {
        Self::Interned(id.0)
    }
}

/// The urgency of a log message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogPriority {
    /// Details that only the author needs.
    Verbose,
    /// Helps to find a mistake.
    Debug,
    /// Informs about normal operation.
    Info,
    /// Something may go wrong.
    Warn,
    /// Something has failed.
    Error,
    /// The program cannot continue.
    Fatal,
}

impl LogPriority {
    const fn number(self) -> log_message::Priority {
        match self {
            Self::Verbose => log_message::Priority::PRIO_VERBOSE,
            Self::Debug => log_message::Priority::PRIO_DEBUG,
            Self::Info => log_message::Priority::PRIO_INFO,
            Self::Warn => log_message::Priority::PRIO_WARN,
            Self::Error => log_message::Priority::PRIO_ERROR,
            Self::Fatal => log_message::Priority::PRIO_FATAL,
        }
    }
}
