//! Values made from other types: closures, formatted text, iterators, messages.

use core::fmt::{Debug, Display};
use core::marker::PhantomData;

use esatto_protozero::Writer;

use crate::event::{AnnotationWriter, DictWriter, ListWriter, Value};

/// Writes a value as `{:?}` shows it. Nothing is allocated, and nothing is formatted unless the
/// event is recorded.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// #[derive(Debug)]
/// enum State { Idle, Busy { jobs: u32 } }
///
/// let state = State::Busy { jobs: 3 };
/// esatto::instant!(APP, "changed", from = esatto::debug(&State::Idle), to = esatto::debug(&state));
/// ```
pub const fn debug<T: Debug>(value: T) -> DebugValue<T> {
    DebugValue(value)
}

/// Writes a value as `{}` shows it. Nothing is allocated, and nothing is formatted unless the event
/// is recorded.
pub const fn display<T: Display>(value: T) -> DisplayValue<T> {
    DisplayValue(value)
}

/// Writes a text that repeats. It is defined once per sequence and then referred to by a number.
///
/// ```
/// # esatto::categories! { static DB = "db"; }
/// # let statement = String::from("select 1");
/// esatto::instant!(DB, "query", sql = esatto::interned(&statement));
/// ```
#[must_use]
pub const fn interned(text: &str) -> Interned<'_> {
    Interned(text)
}

/// Writes JSON text, which readers parse.
#[must_use]
pub const fn json(text: &str) -> JsonValue<'_> {
    JsonValue(text)
}

/// Makes a dictionary from a closure.
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// esatto::instant!(NET, "connected", peer = esatto::dict(|peer| {
///     peer.add("host", "localhost").add("port", 80);
///     peer.dict("tls").add("version", 1.3);
///     peer.list("tried").push("::1").push("127.0.0.1");
/// }));
/// ```
pub const fn dict<F: Fn(&mut DictWriter<'_>)>(write: F) -> DictValue<F> {
    DictValue(write)
}

/// Makes an array from anything that can be iterated, such as a range or a chain of adaptors. The
/// iterator is cloned each time it is written.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// # let words = ["a", "list"];
/// esatto::instant!(APP, "words", lengths = esatto::list(words.iter().map(|word| word.len())));
/// ```
pub const fn list<I>(values: I) -> ListValue<I>
where
    I: IntoIterator<Item: Value> + Clone,
{
    ListValue(values)
}

/// Writes a protobuf message. `type_name` is its full name with a dot in front; a reader that knows
/// the type shows its fields.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// use esatto::schema::SourceLocationWriter;
///
/// esatto::instant!(APP, "parsed", place = esatto::proto::<SourceLocationWriter<'_>, _>(
///     ".perfetto.protos.SourceLocation",
///     |location| { location.file_name("rules.lua").line_number(17); },
/// ));
/// ```
pub const fn proto<W: Writer, F: Fn(&mut W::At<'_>)>(type_name: &str, write: F) -> ProtoValue<'_, W, F> {
    ProtoValue { type_name, write, writer: PhantomData }
}

/// A value made by [`debug`].
#[derive(Clone, Copy, Debug)]
pub struct DebugValue<T>(T);

impl<T: Debug> Value for DebugValue<T> {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.formatted(format_args!("{:?}", self.0));
    }
}

/// A value made by [`display`].
#[derive(Clone, Copy, Debug)]
pub struct DisplayValue<T>(T);

impl<T: Display> Value for DisplayValue<T> {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.formatted(format_args!("{}", self.0));
    }
}

/// A value made by [`interned`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Interned<'a>(pub(crate) &'a str);

impl Value for Interned<'_> {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.interned_text(self.0);
    }
}

/// A value made by [`json`].
#[derive(Clone, Copy, Debug)]
pub struct JsonValue<'a>(&'a str);

impl Value for JsonValue<'_> {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.json(self.0);
    }
}

/// A value made by [`dict`].
#[derive(Clone, Copy)]
pub struct DictValue<F>(F);

impl<F: Fn(&mut DictWriter<'_>)> Value for DictValue<F> {
    fn write(&self, out: AnnotationWriter<'_>) {
        self.0(&mut out.dict());
    }
}

/// A value made by [`list`].
#[derive(Clone, Copy, Debug)]
pub struct ListValue<I>(I);

impl<I: IntoIterator<Item: Value> + Clone> Value for ListValue<I> {
    fn write(&self, out: AnnotationWriter<'_>) {
        let mut list: ListWriter<'_> = out.list();
        for value in self.0.clone() {
            list.push(value);
        }
    }
}

/// A value made by [`proto`].
#[derive(Clone, Copy)]
pub struct ProtoValue<'a, W, F> {
    type_name: &'a str,
    write: F,
    writer: PhantomData<fn() -> W>,
}

impl<W: Writer, F: Fn(&mut W::At<'_>)> Value for ProtoValue<'_, W, F> {
    fn write(&self, out: AnnotationWriter<'_>) {
        out.proto_with::<W>(self.type_name, |message| (self.write)(message));
    }
}

impl<F> Debug for DictValue<F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("DictValue")
    }
}

impl<W, F> Debug for ProtoValue<'_, W, F> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("ProtoValue").field(&self.type_name).finish()
    }
}
