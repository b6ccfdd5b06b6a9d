//! Structs and enums as arguments of events.

use core::cell::Cell;
use core::fmt::{self, Write as _};

use esatto_schema::DebugAnnotationWriter;

use crate::event::Event;
use crate::name::Name;
use crate::value::Value;

/// Named values that can be added to an event together ([`Event::args`]).
///
/// `#[derive(esatto::TraceArgs)]` (feature `macros`) implements it for structs and enums, and [`Value`] with it, so that they
/// can also be a single argument: a dictionary of the same entries. By hand it takes a few lines:
///
/// ```
/// # esatto::categories! { static NET = "net"; }
/// use esatto::{ArgName, Args, TraceArgs};
///
/// struct Request { method: &'static str, size: usize }
///
/// impl TraceArgs for Request {
///     fn add_to(&self, args: &mut Args<'_, '_>) {
///         static METHOD: ArgName = ArgName::new("method");
///         static SIZE: ArgName = ArgName::new("size");
///         args.add(&METHOD, &self.method);
///         args.add(&SIZE, &self.size);
///     }
/// }
///
/// let request = Request { method: "GET", size: 0 };
/// esatto::instant!(NET, "request", |event| event.args(&request));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no set of arguments",
    label = "this has no `TraceArgs`",
    note = "`#[derive(esatto::TraceArgs)]` implements `esatto::TraceArgs` for structs and enums"
)]
pub trait TraceArgs {
    /// Adds each entry, in the order in which they are to be shown.
    fn add_to(&self, args: &mut Args<'_, '_>);
}

impl<T: TraceArgs + ?Sized> TraceArgs for &T {
    fn add_to(&self, args: &mut Args<'_, '_>) {
        (**self).add_to(args);
    }
}

impl<T: TraceArgs + ?Sized> TraceArgs for Box<T> {
    fn add_to(&self, args: &mut Args<'_, '_>) {
        (**self).add_to(args);
    }
}

/// Nothing is added for `None`.
impl<T: TraceArgs> TraceArgs for Option<T> {
    fn add_to(&self, args: &mut Args<'_, '_>) {
        if let Some(some) = self {
            some.add_to(args);
        }
    }
}

/// The name of an argument; written once per sequence where it names an argument of the event itself.
#[derive(Debug)]
pub struct ArgName(Name);

impl ArgName {
    /// Makes a name; for a `static`.
    #[must_use]
    pub const fn new(text: &'static str) -> Self {
        Self(Name::new(text))
    }
}

/// Where [`TraceArgs`] go: to an event, or into a dictionary.
#[derive(Debug)]
pub struct Args<'a, 'e>(Destination<'a, 'e>);

#[derive(Debug)]
enum Destination<'a, 'e> {
    Event(&'a mut Event<'e>),
    Dictionary(&'a mut DebugAnnotationWriter<'e>),
}

impl Args<'_, '_> {
    /// Adds one value.
    pub fn add(&mut self, name: &'static ArgName, value: &(impl Value + ?Sized)) {
        match &mut self.0 {
            Destination::Event(event) => event.annotate_static(&name.0, value),
            Destination::Dictionary(dictionary) => {
                let mut entry = dictionary.dict_entries();
                entry.name(name.0.text());
                value.write(&mut entry);
            }
        }
    }
}

impl Event<'_> {
    /// Adds each entry of `args` as an argument of its own.
    pub fn args(&mut self, args: &(impl TraceArgs + ?Sized)) {
        args.add_to(&mut Args(Destination::Event(self)));
    }
}

/// Writes `args` as a dictionary; what a derived [`Value::write`] does.
pub fn write_dictionary(args: &(impl TraceArgs + ?Sized), out: &mut DebugAnnotationWriter<'_>) {
    args.add_to(&mut Args(Destination::Dictionary(out)));
}

/// A value that is recorded as the text of its [`Debug`](fmt::Debug).
///
/// Formatting costs what it costs, but no allocation in the long run.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// let range = 3..5;
/// esatto::instant!(APP, "trim", range = esatto::debug(&range));
/// ```
pub const fn debug<T: fmt::Debug>(value: T) -> Formatted<T, AsDebug> {
    Formatted { value, _form: core::marker::PhantomData }
}

/// A value that is recorded as the text of its [`Display`](fmt::Display); otherwise like [`debug`].
pub const fn display<T: fmt::Display>(value: T) -> Formatted<T, AsDisplay> {
    Formatted { value, _form: core::marker::PhantomData }
}

/// A value that is recorded as text; made by [`debug`] and [`display`].
#[derive(Clone, Copy, Debug)]
pub struct Formatted<T, F> {
    value: T,
    _form: core::marker::PhantomData<F>,
}

/// Text as of [`fmt::Debug`].
#[derive(Clone, Copy, Debug)]
pub enum AsDebug {}

/// Text as of [`fmt::Display`].
#[derive(Clone, Copy, Debug)]
pub enum AsDisplay {}

impl<T: fmt::Debug> Value for Formatted<T, AsDebug> {
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        write_formatted(out, format_args!("{:?}", self.value));
    }
}

impl<T: fmt::Display> Value for Formatted<T, AsDisplay> {
    fn write(&self, out: &mut DebugAnnotationWriter<'_>) {
        write_formatted(out, format_args!("{}", self.value));
    }
}

/// What the text of one value may keep allocated in its thread.
const MAX_KEPT_BYTES: usize = 4096;

fn write_formatted(out: &mut DebugAnnotationWriter<'_>, text: fmt::Arguments<'_>) {
    if let Some(text) = text.as_str() {
        out.string_value(text);
        return;
    }
    thread_local! {
        /// Empty while a text is made, so that a value whose formatting formats another one gets a buffer of its own.
        static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
    }
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    // An implementation that reports an error has its text cut there.
    let _ = scratch.write_fmt(text);
    out.string_value(&scratch);
    if scratch.capacity() <= MAX_KEPT_BYTES {
        let _ = SCRATCH.try_with(|kept| kept.set(scratch));
    }
}
