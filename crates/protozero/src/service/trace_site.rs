//! [`TraceSite`]: the facts that the schema tells about the traced calls of a method
//! (`docs/spec/ipc-tracing.md` §8).

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::switch::Switch;
use crate::repeated::kind;
use crate::view::View;

/// Traced calls of a method: their category, and the fields whose values they record.
#[derive(Debug)]
pub struct TraceSite {
    category: &'static str,
    request: &'static [TraceValue],
    reply: &'static [TraceValue],
    word: AtomicUsize,
    switch: Switch,
}

/// Field of a request or a reply whose value traced calls record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceValue {
    number: u32,
    name: &'static str,
    kind: ValueKind,
}

/// Type of a [`TraceValue`] in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueKind {
    /// `uint32`, `uint64`
    Uint,
    /// `int32`, `int64`, enumerations
    Int,
    /// `sint32`, `sint64`
    Sint,
    /// `fixed32`, `fixed64`
    Fixed,
    /// `sfixed32`
    Sfixed32,
    /// `sfixed64`
    Sfixed64,
    /// `float`
    Float,
    /// `double`
    Double,
    /// `bool`
    Bool,
    /// `string`
    Text,
}

/// Value of a recorded field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Recorded<'a> {
    /// Number without a sign.
    Uint(u64),
    /// Number with a sign.
    Int(i64),
    /// Number with a fraction.
    Double(f64),
    /// Truth.
    Bool(bool),
    /// Text, not necessarily UTF-8.
    Text(&'a [u8]),
}

impl TraceSite {
    /// Makes the site of a category.
    #[must_use]
    pub const fn new(category: &'static str) -> Self {
        Self::recording(category, &[], &[])
    }

    /// Makes the site of a category whose calls record values of the request and of each reply.
    #[must_use]
    pub const fn recording(
        category: &'static str,
        request: &'static [TraceValue],
        reply: &'static [TraceValue],
    ) -> Self {
        Self { category, request, reply, word: AtomicUsize::new(0), switch: Switch::new() }
    }

    /// Returns the name of the category.
    #[must_use]
    pub fn category(&self) -> &'static str {
        self.category
    }

    /// Returns the fields of the request to record.
    #[must_use]
    pub fn request(&self) -> &'static [TraceValue] {
        self.request
    }

    /// Returns the fields of each reply to record.
    #[must_use]
    pub fn reply(&self) -> &'static [TraceValue] {
        self.reply
    }

    /// Returns the number that the tracing adapter stored here; 0 at first.
    pub fn word(&self) -> usize {
        self.word.load(Ordering::Acquire)
    }

    /// Stores a number for the tracing adapter, such as an index or an address, so that it finds
    /// its own state of the category without a search.
    pub fn set_word(&self, word: usize) {
        self.word.store(word, Ordering::Release);
    }

    /// Returns false if the category is not recorded now. Also returns true until the tracing
    /// adapter has [set](Self::set_switch) the switch.
    #[inline(always)]
    #[must_use]
    pub fn may_be_enabled(&self) -> bool {
        self.switch.may_be_on()
    }

    /// Lets [`may_be_enabled`](Self::may_be_enabled) return false while `word` is 0, which the
    /// tracing adapter does while the category is not recorded.
    pub fn set_switch(&self, word: &'static AtomicU32) {
        self.switch.follow(word);
    }
}

impl TraceValue {
    /// Makes one of a field's number, name and type.
    #[must_use]
    pub const fn new(number: u32, name: &'static str, kind: ValueKind) -> Self {
        Self { number, name, kind }
    }

    /// Returns the name of the field.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the value in an encoded message; `None` if it is absent.
    #[must_use]
    pub fn read<'a>(&self, message: &'a [u8]) -> Option<Recorded<'a>> {
        let (view, id) = (View::new(message), self.number);
        match self.kind {
            ValueKind::Uint => view.last::<kind::Uint64>(id).map(Recorded::Uint),
            ValueKind::Int => view.last::<kind::Int64>(id).map(Recorded::Int),
            ValueKind::Sint => view.last::<kind::Sint64>(id).map(Recorded::Int),
            ValueKind::Fixed => view.last::<kind::Fixed64>(id).map(Recorded::Uint),
            ValueKind::Sfixed32 => view.last::<kind::Sfixed32>(id).map(|value| Recorded::Int(i64::from(value))),
            ValueKind::Sfixed64 => view.last::<kind::Sfixed64>(id).map(Recorded::Int),
            ValueKind::Float => view.last::<kind::Float>(id).map(|value| Recorded::Double(f64::from(value))),
            ValueKind::Double => view.last::<kind::Double>(id).map(Recorded::Double),
            ValueKind::Bool => view.last::<kind::Bool>(id).map(Recorded::Bool),
            ValueKind::Text => view.last::<kind::Bytes>(id).map(Recorded::Text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_may_be_enabled_unless_its_switch_is_off() {
        static SITE: TraceSite = TraceSite::new("category");
        static WORD: AtomicU32 = AtomicU32::new(0);
        assert!(SITE.may_be_enabled(), "nobody knows");
        SITE.set_switch(&WORD);
        assert!(!SITE.may_be_enabled());
        WORD.store(2, Ordering::Relaxed);
        assert!(SITE.may_be_enabled());
    }

    #[test]
    fn values_are_read_from_the_encoded_message() {
        for (message, kind, value) in [
            (&b"\x08\x96\x01"[..], ValueKind::Uint, Some(Recorded::Uint(150))),
            (b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", ValueKind::Int, Some(Recorded::Int(-2))),
            (b"\x08\x03", ValueKind::Sint, Some(Recorded::Int(-2))),
            (b"\x0d\x01\0\0\0", ValueKind::Fixed, Some(Recorded::Uint(1))),
            (b"\x09\x01\0\0\0\0\0\0\0", ValueKind::Fixed, Some(Recorded::Uint(1))),
            (b"\x0d\xff\xff\xff\xff", ValueKind::Sfixed32, Some(Recorded::Int(-1))),
            (b"\x09\xff\xff\xff\xff\xff\xff\xff\xff", ValueKind::Sfixed64, Some(Recorded::Int(-1))),
            (b"\x0d\0\0\x80\x3f", ValueKind::Float, Some(Recorded::Double(1.0))),
            (b"\x09\0\0\0\0\0\0\xf0\x3f", ValueKind::Double, Some(Recorded::Double(1.0))),
            (b"\x08\x01", ValueKind::Bool, Some(Recorded::Bool(true))),
            (b"\x0a\x01a\x0a\x01b", ValueKind::Text, Some(Recorded::Text(b"b"))),
            (b"\x10\x01", ValueKind::Uint, None),
            (b"\x0a\xff", ValueKind::Text, None),
        ] {
            assert_eq!(TraceValue::new(1, "field", kind).read(message), value, "{kind:?} {message:?}");
        }
    }
}
