//! Arguments of spans, as bytes that the page reads when a span is selected.

use std::collections::HashMap;

use crate::columns::{Columns, GREATEST_EXACT, put_signed, put_varint};
use crate::texts::{Text, Texts};

/// Number of a set of arguments; 0 is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ArgumentSet(pub(crate) u32);

/// A value of an argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Argument<'a> {
    Text(&'a str),
    Integer(i64),
    Unsigned(u64),
    Pointer(u64),
    Double(f64),
    Bool(bool),
}

/// Sets of arguments. Equal ones are stored once.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    ends: Vec<i64>,
    known: HashMap<Box<[u8]>, ArgumentSet>,
    scratch: Vec<u8>,
}

/// Sets that are remembered to find equal ones.
const MAX_KNOWN: usize = 1 << 16;

impl Arguments {
    /// Adds a set of names and values in their order.
    pub(crate) fn add<'a>(
        &mut self,
        arguments: impl IntoIterator<Item = (&'a str, Argument<'a>)>,
        texts: &mut Texts,
    ) -> ArgumentSet {
        let mut bytes = core::mem::take(&mut self.scratch);
        bytes.clear();
        for (name, value) in arguments {
            put_text(&mut bytes, texts.number(name));
            put_value(&mut bytes, value, texts);
        }
        let set = self.set(&bytes);
        self.scratch = bytes;
        set
    }

    fn set(&mut self, bytes: &[u8]) -> ArgumentSet {
        if bytes.is_empty() {
            return ArgumentSet(0);
        }
        if let Some(&set) = self.known.get(bytes) {
            return set;
        }
        self.bytes.extend_from_slice(bytes);
        self.ends.push(i64::try_from(self.bytes.len()).expect("memory is smaller"));
        let set = ArgumentSet(u32::try_from(self.ends.len()).expect("a trace has less than 2^32 sets"));
        if self.known.len() < MAX_KNOWN {
            self.known.insert(bytes.into(), set);
        }
        set
    }

    pub(crate) fn write(&self, columns: &mut Columns) {
        columns.bytes("args.bytes", &self.bytes);
        columns.deltas("args.ends", self.ends.iter().copied());
    }
}

fn put_text(bytes: &mut Vec<u8>, text: Text) {
    put_varint(bytes, text.0.into());
}

/// Appends the kind of a value, and the value. `Model.#argValue` in `page/model.js` reads it.
fn put_value(bytes: &mut Vec<u8>, value: Argument<'_>, texts: &mut Texts) {
    match value {
        Argument::Text(text) => {
            bytes.push(0);
            put_text(bytes, texts.number(text));
        }
        // The page would round these, if they were numbers of variable length.
        Argument::Integer(value) if value.unsigned_abs() > GREATEST_EXACT.unsigned_abs() => {
            bytes.push(4);
            bytes.extend(value.to_le_bytes());
        }
        Argument::Unsigned(value) if value > GREATEST_EXACT.unsigned_abs() => {
            bytes.push(5);
            bytes.extend(value.to_le_bytes());
        }
        Argument::Pointer(value) => {
            bytes.push(6);
            bytes.extend(value.to_le_bytes());
        }
        Argument::Integer(value) => {
            bytes.push(1);
            put_signed(bytes, value);
        }
        Argument::Unsigned(value) => {
            bytes.push(1);
            put_signed(bytes, i64::try_from(value).expect("checked above"));
        }
        Argument::Double(value) => {
            bytes.push(2);
            bytes.extend(value.to_le_bytes());
        }
        Argument::Bool(value) => bytes.extend([3, value.into()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_are_stored_once() {
        let (mut arguments, mut texts) = (Arguments::default(), Texts::default());
        assert_eq!(arguments.add([], &mut texts), ArgumentSet(0));
        let one = arguments.add([("a", Argument::Integer(1))], &mut texts);
        assert_eq!(arguments.add([("a", Argument::Integer(1))], &mut texts), one);
        assert_ne!(arguments.add([("a", Argument::Integer(2))], &mut texts), one);
    }

    #[test]
    fn integers_beyond_two_to_the_53_have_8_bytes() {
        let (mut arguments, mut texts) = (Arguments::default(), Texts::default());
        let values = [Argument::Unsigned(u64::MAX), Argument::Integer(i64::MIN), Argument::Pointer(0xfeed)];
        arguments.add(values.map(|value| ("a", value)), &mut texts);
        let mut expected = vec![1, 5];
        expected.extend([0xff; 8]);
        expected.extend([1, 4, 0, 0, 0, 0, 0, 0, 0, 0x80]);
        expected.extend([1, 6, 0xed, 0xfe, 0, 0, 0, 0, 0, 0]);
        assert_eq!(arguments.bytes, expected);
        assert_eq!(texts.iter().count(), 2, "no text for a number");
    }
}
