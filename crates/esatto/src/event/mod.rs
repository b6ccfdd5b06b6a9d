//! Events: their arguments, tracks, flows, times and places.

pub(crate) mod arg;
mod callstack;
mod event_writer;
mod flow;
pub(crate) mod interning;
mod location;
mod site;
mod text_hash;
pub(crate) mod timestamp;
pub(crate) mod track;
pub(crate) mod value;

pub use arg::Arg;
pub use callstack::Frame;
pub(crate) use event_writer::AnnotationNames;
pub use event_writer::{Correlation, Event, Kind, LogPriority};
pub use flow::Flow;
pub use location::{Location, Place};
pub use site::Site;
pub use value::{
    AnnotationWriter, CounterValue, DebugValue, DictValue, DictWriter, DisplayValue, Interned, JsonValue, ListValue,
    ListWriter, ProtoValue, TraceArgs, Value, debug, dict, display, interned, json, list, proto,
};
