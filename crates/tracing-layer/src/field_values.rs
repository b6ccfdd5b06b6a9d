//! Values of fields, kept until an event is written with them.

use core::fmt::{self, Write as _};

use esatto::{Arg, Event, Flow, Name, Timestamp, Track};
use tracing_core::field::{Field, Visit};

/// Bytes of the longest text of a value. Longer ones are cut, and end in [`CUT`].
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// End of a text that was cut.
const CUT: &str = "… (cut)";

/// Memory that a slot keeps for its next span.
const MAX_KEPT_BYTES: usize = 1024;

/// Arguments that are no fields.
const HEAD_ARGS: usize = 4;

/// These, and as many fields as `tracing` allows.
const MAX_ARGS: usize = HEAD_ARGS + 32;

/// Arguments of an event that are no fields.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) track: Option<&'a Track>,
    pub(crate) flows: [Option<Flow>; 2],
    pub(crate) at: Option<&'a Timestamp>,
}

/// Values of the fields of one call site, in the order in which they were recorded.
#[derive(Debug, Default)]
pub(crate) struct Values {
    entries: Vec<Entry>,
    /// The texts of all entries, one after the other.
    text: String,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Index of the field.
    field: usize,
    value: Value,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    /// Its begin and end in `text`.
    Text(usize, usize),
}

impl Values {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Removes all values, and keeps a reasonable amount of memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        if self.text.capacity() > MAX_KEPT_BYTES {
            self.text = String::new();
        } else {
            self.text.clear();
        }
    }

    /// Adds all of `other`.
    pub(crate) fn append(&mut self, other: &Self) {
        let offset = self.text.len();
        self.text.push_str(&other.text);
        self.entries.extend(other.entries.iter().map(|entry| Entry {
            value: match entry.value {
                Value::Text(begin, end) => Value::Text(begin + offset, end + offset),
                value => value,
            },
            ..*entry
        }));
    }

    /// Returns true if the values are those of the first fields, in order, so that they need no
    /// names.
    fn is_in_order(&self) -> bool {
        self.entries.iter().enumerate().all(|(index, entry)| entry.field == index)
    }

    /// Calls `record` with `head` and the values as arguments. They take their names from the site,
    /// whose fields are called `names`.
    pub(crate) fn with_args<R>(
        &self,
        names: &'static [Name],
        head: Head<'_>,
        record: impl FnOnce(&mut [Arg<'_>]) -> R,
    ) -> R {
        // Most events have few arguments, and an array must be filled.
        if self.len() <= 4 {
            self.with_array::<8, _>(names, head, record)
        } else {
            self.with_array::<MAX_ARGS, _>(names, head, record)
        }
    }

    fn with_array<const N: usize, R>(
        &self,
        names: &'static [Name],
        head: Head<'_>,
        record: impl FnOnce(&mut [Arg<'_>]) -> R,
    ) -> R {
        let Head { track, flows, at } = head;
        let mut write = |event: &mut Event<'_>| self.write(0, names, event);
        let mut args = [const { Arg::U64(0) }; N];
        let mut len = 0;
        let mut push = |arg| {
            args[len] = arg;
            len += 1;
        };
        track.map(Arg::Track).into_iter().for_each(&mut push);
        flows.into_iter().flatten().for_each(|flow| push(Arg::Flow(flow.id())));
        at.map(Arg::At).into_iter().for_each(&mut push);
        if self.is_in_order() && HEAD_ARGS + self.len() <= N {
            self.entries.iter().for_each(|entry| push(self.arg(entry)));
        } else {
            push(Arg::With(&mut write));
        }
        record(&mut args[..len])
    }

    fn arg(&self, entry: &Entry) -> Arg<'_> {
        match entry.value {
            Value::U64(v) => Arg::U64(v),
            Value::I64(v) => Arg::I64(v),
            Value::F64(v) => Arg::F64(v),
            Value::Bool(v) => Arg::Bool(v),
            Value::Text(begin, end) => Arg::Str(&self.text[begin..end]),
        }
    }

    /// Writes the values from index `first` on as annotations.
    pub(crate) fn write(&self, first: usize, names: &'static [Name], event: &mut Event<'_>) {
        self.write_entries(&self.entries[first.min(self.len())..], names, event);
    }

    /// Writes the values of the fields for which `is_wanted` returns true.
    pub(crate) fn write_if(&self, is_wanted: impl Fn(usize) -> bool, names: &'static [Name], event: &mut Event<'_>) {
        self.write_entries(self.entries.iter().filter(|entry| is_wanted(entry.field)), names, event);
    }

    fn write_entries<'a>(
        &self,
        entries: impl IntoIterator<Item = &'a Entry>,
        names: &'static [Name],
        event: &mut Event<'_>,
    ) {
        for entry in entries {
            let Some(name) = names.get(entry.field) else { continue };
            match entry.value {
                Value::U64(v) => event.annotate_static(name, v),
                Value::I64(v) => event.annotate_static(name, v),
                Value::F64(v) => event.annotate_static(name, v),
                Value::Bool(v) => event.annotate_static(name, v),
                Value::Text(begin, end) => event.annotate_static(name, &self.text[begin..end]),
            }
        }
    }

    /// The text of a field.
    pub(crate) fn text_of(&self, field: usize) -> Option<&str> {
        self.entries.iter().find_map(|entry| match entry.value {
            Value::Text(begin, end) if entry.field == field => Some(&self.text[begin..end]),
            _ => None,
        })
    }

    /// The value of a field, if it is a number.
    pub(crate) fn number_of(&self, field: usize) -> Option<u64> {
        self.entries.iter().find_map(|entry| match entry.value {
            Value::U64(v) if entry.field == field => Some(v),
            _ => None,
        })
    }

    fn push(&mut self, field: &Field, value: Value) {
        self.entries.push(Entry { field: field.index(), value });
    }

    fn push_text(&mut self, field: &Field, text: fmt::Arguments<'_>) {
        let begin = self.text.len();
        let mut cut = Text { text: &mut self.text, left: MAX_TEXT_BYTES, is_cut: false };
        // This fails if the text is cut, or if a `Debug` of the program fails: the text so far
        // stays.
        let _ = cut.write_fmt(text);
        if cut.is_cut {
            self.text.push_str(CUT);
        }
        self.push(field, Value::Text(begin, self.text.len()));
    }
}

struct Text<'a> {
    text: &'a mut String,
    left: usize,
    is_cut: bool,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let mut end = piece.len().min(self.left);
        while !piece.is_char_boundary(end) {
            end -= 1;
        }
        self.text.push_str(&piece[..end]);
        self.left -= end;
        self.is_cut = end < piece.len();
        if self.is_cut { Err(fmt::Error) } else { Ok(()) }
    }
}

impl Visit for Values {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push(field, Value::F64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push(field, Value::I64(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push(field, Value::U64(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push(field, Value::Bool(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.push_text(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        struct Chain<'a>(&'a (dyn std::error::Error + 'static));
        impl fmt::Display for Chain<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                /// Number of causes that are written; a chain may lead back to itself.
                const MAX_CAUSES: usize = 32;
                write!(f, "{}", self.0)?;
                let causes = core::iter::successors(self.0.source(), |error| error.source());
                causes.take(MAX_CAUSES).try_for_each(|cause| write!(f, ": {cause}"))
            }
        }
        self.push_text(field, format_args!("{}", Chain(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push_text(field, format_args!("{value:?}"));
    }
}
