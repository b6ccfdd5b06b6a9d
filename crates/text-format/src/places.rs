//! Places of the fields in a text.

use core::ops::{Deref, Range};

/// A value of a field, and its bytes in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Index of the place of the message that has the field. `None` is the message of the whole
    /// text.
    pub parent: Option<usize>,
    /// Number of the field.
    pub number: u32,
    /// Values of the same field that the message had before this one.
    pub index: usize,
    /// Bytes of the name. All values of a list have the same name.
    pub name: Range<usize>,
    /// Bytes of the value; those of a message include its braces.
    pub value: Range<usize>,
}

/// Places of all fields of a text, in the order of the text. A message comes before its fields.
///
/// Extensions have places like other fields. The fields in an `Any` have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    list: Vec<Place>,
    /// Offset of the first byte of each line.
    line_starts: Vec<usize>,
}

impl Places {
    pub(crate) fn new(text: &[u8], list: Vec<Place>) -> Self {
        let after_breaks = text.iter().enumerate().filter(|&(_, &byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self { list, line_starts: core::iter::once(0).chain(after_breaks).collect() }
    }

    /// Returns the index of the value of this field that `parent` has.
    pub fn find(&self, parent: Option<usize>, number: u32, index: usize) -> Option<usize> {
        let first = parent.map_or(0, |parent| parent + 1);
        let end = parent.map_or(usize::MAX, |parent| self.list[parent].value.end);
        let inside = self.list.iter().enumerate().skip(first).take_while(|(_, place)| place.name.start < end);
        let mut matching =
            inside.filter(|(_, place)| (place.parent, place.number, place.index) == (parent, number, index));
        matching.next().map(|(at, _)| at)
    }

    /// Returns the line, counted from 1, that has this byte of the text.
    pub fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }

    /// Returns the offset of the first byte of a line, counted from 1; `None` if there is none.
    pub fn start_of_line(&self, line: usize) -> Option<usize> {
        self.line_starts.get(line.checked_sub(1)?).copied()
    }
}

impl Deref for Places {
    type Target = [Place];

    fn deref(&self) -> &[Place] {
        &self.list
    }
}
