//! What a trace point says about its event.

use esatto_protozero::Message;
use esatto_schema::{DebugAnnotationWriter, TrackEventWriter, track_event};

use crate::arg::Arg;
use crate::flow::Flow;
use crate::name::{Announced, Name};
use crate::value::Value;

/// The kind of an event (`docs/spec/track-event.md` §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Opens a slice.
    SliceBegin,
    /// Closes the innermost open slice of the track.
    SliceEnd,
    /// A moment.
    Instant,
    /// A new value of a counter.
    Counter,
}

impl Kind {
    pub(crate) const fn number(self) -> track_event::Type {
        match self {
            Self::SliceBegin => track_event::Type::TYPE_SLICE_BEGIN,
            Self::SliceEnd => track_event::Type::TYPE_SLICE_END,
            Self::Instant => track_event::Type::TYPE_INSTANT,
            Self::Counter => track_event::Type::TYPE_COUNTER,
        }
    }
}

/// The open event of a trace point: annotations, flows and typed fields are added here.
#[derive(Debug)]
pub struct Event<'e> {
    track_event: TrackEventWriter<'e>,
    names: &'e mut AnnotationNames,
    annotate: bool,
}

/// Names of annotations of one sequence: which were announced, and which this event has to announce.
#[derive(Debug, Default)]
pub(crate) struct AnnotationNames {
    pub(crate) announced: Announced,
    pub(crate) new: Vec<&'static Name>,
}

impl AnnotationNames {
    /// Makes sure that a name is announced with the event at the latest.
    pub(crate) fn announce(&mut self, name: &'static Name) {
        if !self.announced.check_and_set(name.iid()) {
            self.new.push(name);
        }
    }
}

impl<'e> Event<'e> {
    pub(crate) fn new(message: Message<'e>, names: &'e mut AnnotationNames, annotate: bool) -> Self {
        Self { track_event: TrackEventWriter::from(message), names, annotate }
    }

    /// Adds what a trace point says of its event, but for what stands before the annotations. Annotations take the next name.
    pub(crate) fn add(&mut self, arg: &mut Arg<'_>, names: &mut core::slice::Iter<'static, Name>) {
        let value: &dyn Value = match arg {
            Arg::Track(_) | Arg::Name(_) | Arg::Counter(_) => return,
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
            value.write(&mut self.interned_annotation(name));
        }
    }

    /// Adds a debug annotation. The name is written in full each time.
    pub fn annotate(&mut self, name: &str, value: impl Value) {
        if self.annotate {
            let mut annotation = self.track_event.debug_annotations();
            annotation.name(name);
            value.write(&mut annotation);
        }
    }

    /// Adds a debug annotation whose name is written once per sequence; what the macros do with `key = value`.
    #[inline]
    pub fn annotate_static(&mut self, name: &'static Name, value: impl Value) {
        if self.annotate {
            let mut annotation = self.interned_annotation(name);
            value.write(&mut annotation);
        }
    }

    #[inline]
    fn interned_annotation(&mut self, name: &'static Name) -> DebugAnnotationWriter<'_> {
        self.names.announce(name);
        let mut annotation = self.track_event.debug_annotations();
        annotation.name_iid(u64::from(name.iid()));
        annotation
    }

    /// Puts the event on a flow: an arrow comes from the event that carried it before.
    #[inline]
    pub fn flow(&mut self, flow: Flow) {
        self.track_event.flow_ids(flow.id());
    }

    /// Ends a flow here, so that its id can be used for another one.
    #[inline]
    pub fn end_flow(&mut self, flow: Flow) {
        self.track_event.terminating_flow_ids(flow.id());
    }

    /// Every other field of `TrackEvent`.
    #[inline]
    pub fn fields(&mut self) -> &mut TrackEventWriter<'e> {
        &mut self.track_event
    }
}
