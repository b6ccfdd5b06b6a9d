//! A column of few different values.

use super::{Cell, Column};
use crate::string_table::Symbol;

/// Values that a byte can stand for.
const VALUES_OF_A_BYTE: usize = 256;

/// A column in which few different values occur, such as names of events: a row takes one byte. If
/// there are more than 256 values, it takes as much as in a `Vec`.
#[derive(Debug)]
pub struct Coded<T> {
    codes: Vec<u8>,
    values: Vec<T>,
    /// The code that a value with this guess had the last time.
    guesses: Vec<u8>,
    /// The rows, if there are too many values.
    wide: Option<Vec<T>>,
}

/// A type of values that a column can code.
pub trait Code: Cell + PartialEq {
    /// Returns a number that is mostly different for different values.
    fn guess(self) -> u8;
}

#[expect(clippy::cast_possible_truncation, reason = "the lower bits differ most")]
fn low(number: u32) -> u8 {
    number as u8
}

impl Code for u32 {
    fn guess(self) -> u8 {
        low(self)
    }
}

impl Code for i32 {
    fn guess(self) -> u8 {
        low(u32::from_ne_bytes(self.to_ne_bytes()))
    }
}

impl Code for Option<u32> {
    fn guess(self) -> u8 {
        self.map_or(u8::MAX, low)
    }
}

impl Code for Option<Symbol> {
    fn guess(self) -> u8 {
        self.map_or(u8::MAX, |symbol| low(symbol.number()))
    }
}

impl<T> Default for Coded<T> {
    fn default() -> Self {
        Self { codes: Vec::new(), values: Vec::new(), guesses: Vec::new(), wide: None }
    }
}

impl<T: Code> Coded<T> {
    /// Returns the value of a row.
    pub fn get(&self, index: usize) -> T {
        match &self.wide {
            None => self.values[usize::from(self.codes[index])],
            Some(wide) => wide[index],
        }
    }

    /// Iterates over the values of all rows.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.wide.as_ref().map_or(self.codes.len(), Vec::len)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn set(&mut self, index: usize, item: T) {
        match (self.code(item), &mut self.wide) {
            (Some(code), _) => self.codes[index] = code,
            (None, Some(wide)) => wide[index] = item,
            (None, None) => self.widen()[index] = item,
        }
    }

    /// Returns the code of a value, unless there is none.
    fn code(&mut self, item: T) -> Option<u8> {
        if self.wide.is_some() {
            return None;
        }
        let guess = usize::from(item.guess());
        if let Some(&code) = self.guesses.get(guess) {
            if self.values.get(usize::from(code)) == Some(&item) {
                return Some(code);
            }
        }
        let code = self.values.iter().position(|value| *value == item).unwrap_or(self.values.len());
        if code == self.values.len() {
            if code == VALUES_OF_A_BYTE {
                return None;
            }
            self.values.push(item);
        }
        let code = u8::try_from(code).ok()?;
        self.guesses.resize(VALUES_OF_A_BYTE, 0);
        self.guesses[guess] = code;
        Some(code)
    }

    fn widen(&mut self) -> &mut Vec<T> {
        let codes = core::mem::take(&mut self.codes);
        self.wide.insert(codes.into_iter().map(|code| self.values[usize::from(code)]).collect())
    }
}

impl<T: Code> Column for Coded<T> {
    type Item = T;

    fn append(&mut self, _: usize, item: T) {
        match (self.code(item), &mut self.wide) {
            (Some(code), _) => self.codes.push(code),
            (None, Some(wide)) => wide.push(item),
            (None, None) => self.widen().push(item),
        }
    }

    fn cell(&self, index: usize) -> T {
        self.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[u32], is_wide: bool) {
        let mut column = Coded::default();
        let mut expected = Vec::new();
        for (index, &value) in values.iter().enumerate() {
            column.append(index, value);
            expected.push(value);
            // As the end of a state does.
            if index % 3 == 2 {
                column.set(index - 1, value / 2);
                expected[index - 1] = value / 2;
            }
        }
        assert_eq!(column.iter().collect::<Vec<_>>(), expected);
        assert_eq!((column.len(), column.wide.is_some()), (expected.len(), is_wide));
    }

    #[test]
    fn few_values_and_many_are_kept() {
        check(&[], false);
        check(&[7; 100], false);
        // Equal guesses.
        let alike: Vec<u32> = (0..1000).map(|number| number % 60 * 256).collect();
        check(&alike, false);
        let many: Vec<u32> = (0..1000).collect();
        check(&many, true);
        let exactly: Vec<u32> = (0..1000).map(|number| number % 256).collect();
        check(&exactly, false);
    }

    #[test]
    fn a_change_can_be_the_value_too_many() {
        let mut column = Coded::default();
        for value in 0..256_u32 {
            column.append(value as usize, value);
        }
        column.set(3, 1000);
        column.append(256, 2000);
        assert_eq!((column.get(3), column.get(4), column.get(256), column.len()), (1000, 4, 2000, 257));
    }
}
