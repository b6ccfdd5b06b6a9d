//! Values of debug annotations (`docs/spec/track-event.md` §13).
//!
//! A [`Value`] writes itself to an [`AnnotationWriter`]. `standard` implements it for the types of
//! the standard library. `adapters` makes values from closures, `Debug` and `Display`, iterators
//! and messages.

mod adapters;
mod annotation_writer;
mod counter_value;
mod formatted;
mod standard;

use crate::event::Arg;
pub use adapters::{
    DebugValue, DictValue, DisplayValue, Interned, JsonValue, ListValue, ProtoValue, debug, dict, display, interned,
    json, list, proto,
};
pub use counter_value::CounterValue;

pub use annotation_writer::{AnnotationWriter, DictWriter, ListWriter};

/// Something that can be attached to an event.
///
/// Implemented for
///
/// | type | is written as |
/// | --- | --- |
/// | integers, `NonZero`, atomics; `i128` and `u128` beyond 64 bits | integer; text |
/// | `f32`, `f64`, `bool` | float, boolean |
/// | `str`, `String`, `char`, `Path`, `OsStr`, `fmt::Arguments`, IP and socket addresses | text |
/// | `Duration` | nanoseconds |
/// | raw pointers, `NonNull` | pointer |
/// | `()` | null pointer |
/// | `Option` | the value; `None`: an entry without value |
/// | `Result` | the value or the error |
/// | references, `Box`, `Arc`, `Rc`, `Cow` | the value behind them |
/// | slices, arrays, `Vec`, `VecDeque`, sets, tuples | array |
/// | maps | dictionary |
///
/// [`debug`] and [`display`] write any such value as text. [`dict`] and [`list`] make nested values
/// in place. [`interned`] is for texts that repeat. `#[derive(TraceArgs)]` implements this trait
/// for structs and enumerations. By hand:
///
/// ```
/// use esatto::{AnnotationWriter, Value};
///
/// struct Size { width: u32, height: u32 }
///
/// impl Value for Size {
///     fn write(&self, out: AnnotationWriter<'_>) {
///         out.dict().add("width", self.width).add("height", self.height);
///     }
/// }
/// ```
#[doc(
    alias = "argument",
    alias = "annotation",
    alias = "field",
    alias = "attribute",
    alias = "metadata",
    alias = "TracedValue"
)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be attached to a trace event",
    note = "implement `esatto::Value` (or derive `TraceArgs`), or write it as text: `key = ?value` (by Debug) or `key = %value` (by Display)",
    note = "a flow or a time is no argument: write it with a colon, `flow: flow`, `end_flow: flow` or `at: time`"
)]
pub trait Value {
    /// Writes the value. The name has already been written.
    fn write(&self, out: AnnotationWriter<'_>);

    /// Returns the value if it is a plain number, address or text, which take the fast path.
    #[inline(always)]
    fn plain(&self) -> Option<Arg<'_>> {
        None
    }
}

/// Something with named parts that can be attached to an event as several annotations
/// ([`Event::args`](crate::Event::args)) or as one dictionary.
///
/// `#[derive(TraceArgs)]` implements it together with [`Value`]. By hand:
///
/// ```
/// use esatto::{AnnotationWriter, DictWriter, TraceArgs, Value};
///
/// esatto::categories! { static NET = "net"; }
///
/// struct Request { method: &'static str, size: u64 }
///
/// impl TraceArgs for Request {
///     fn write_args(&self, out: &mut DictWriter<'_>) {
///         out.add("method", self.method).add("size", self.size);
///     }
/// }
///
/// impl Value for Request {
///     fn write(&self, out: AnnotationWriter<'_>) {
///         self.write_args(&mut out.dict());
///     }
/// }
///
/// let request = Request { method: "GET", size: 512 };
/// esatto::instant!(NET, "as two annotations", |event| event.args(&request));
/// esatto::instant!(NET, "as a dictionary", request = &request);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no named arguments for a trace event",
    note = "derive or implement `esatto::TraceArgs`"
)]
pub trait TraceArgs {
    /// Writes each part under its name.
    fn write_args(&self, out: &mut DictWriter<'_>);
}

impl<T: TraceArgs + ?Sized> TraceArgs for &T {
    fn write_args(&self, out: &mut DictWriter<'_>) {
        (**self).write_args(out);
    }
}

impl<T: TraceArgs + ?Sized> TraceArgs for Box<T> {
    fn write_args(&self, out: &mut DictWriter<'_>) {
        (**self).write_args(out);
    }
}

/// `None` writes nothing.
impl<T: TraceArgs> TraceArgs for Option<T> {
    fn write_args(&self, out: &mut DictWriter<'_>) {
        if let Some(some) = self {
            some.write_args(out);
        }
    }
}
