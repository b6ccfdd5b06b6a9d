//! Arguments that a trace point adds to its site at run time.

use core::fmt;

use crate::category::Category;
use crate::event::timestamp::Timestamp;
use crate::event::track::Track;
use crate::event::{CounterValue, Event, Value};

/// One argument of a trace point.
///
/// Values that become debug annotations take the names of the [`Site`](crate::Site), in order.
#[non_exhaustive]
pub enum Arg<'a> {
    /// An annotation: an unsigned integer.
    U64(u64),
    /// An annotation: a signed integer.
    I64(i64),
    /// An annotation: a float.
    F64(f64),
    /// An annotation: a boolean.
    Bool(bool),
    /// An annotation: text.
    Str(&'a str),
    /// An annotation: an address.
    Pointer(u64),
    /// An annotation: any other value.
    Value(&'a dyn Value),
    /// The track of the event, if it is not the thread's.
    Track(&'a Track),
    /// The name of the event, if the site has none.
    Name(&'a str),
    /// The value of a counter.
    Counter(CounterValue),
    /// The value of a counter other than the event's own, sampled at the same time. Readers accept
    /// up to eight per event.
    Extra(&'a (&'a Track, CounterValue)),
    /// The time of the event, if it is not now.
    At(&'a Timestamp),
    /// The category, if the site's is [`Category::of_argument`].
    Category(&'static Category),
    /// The id of a flow that the event is on.
    Flow(u64),
    /// The id of a flow that ends with the event.
    EndFlow(u64),
    /// Writes more fields, once for each session that records the event.
    With(&'a mut dyn FnMut(&mut Event<'_>)),
}

/// Trace points make arrays of arguments.
const _: () = assert!(size_of::<Arg<'_>>() <= 24);

impl fmt::Debug for Arg<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U64(v) => f.debug_tuple("U64").field(v).finish(),
            Self::I64(v) => f.debug_tuple("I64").field(v).finish(),
            Self::F64(v) => f.debug_tuple("F64").field(v).finish(),
            Self::Bool(v) => f.debug_tuple("Bool").field(v).finish(),
            Self::Str(v) => f.debug_tuple("Str").field(v).finish(),
            Self::Pointer(v) => f.debug_tuple("Pointer").field(v).finish(),
            Self::Value(_) => f.write_str("Value"),
            Self::Track(v) => f.debug_tuple("Track").field(v).finish(),
            Self::Name(v) => f.debug_tuple("Name").field(v).finish(),
            Self::Counter(v) => f.debug_tuple("Counter").field(v).finish(),
            Self::Extra(v) => f.debug_tuple("Extra").field(v).finish(),
            Self::At(v) => f.debug_tuple("At").field(v).finish(),
            Self::Category(v) => f.debug_tuple("Category").field(&v.name()).finish(),
            Self::Flow(v) => f.debug_tuple("Flow").field(v).finish(),
            Self::EndFlow(v) => f.debug_tuple("EndFlow").field(v).finish(),
            Self::With(_) => f.write_str("With"),
        }
    }
}

/// Returns the argument that a value becomes; for the macros.
#[inline(always)]
pub fn arg<T: Value>(value: &T) -> Arg<'_> {
    value.plain().unwrap_or(Arg::Value(value))
}
