//! Columns of tables, and the macro that makes a table of them.

use core::num::NonZeroU32;

use crate::string_table::{Strings, Symbol};
use hashbrown::HashMap;

/// A row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Row(NonZeroU32);

impl Row {
    pub(crate) fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("a table has less than 2^32 rows"))
    }

    /// Returns its position in the columns.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }
}

/// A value of any column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'t> {
    /// No value.
    Null,
    /// An integer, a truth value or a row.
    Int(i64),
    /// A floating point number.
    Real(f64),
    /// A text.
    Text(&'t str),
}

/// A type of values.
pub trait Cell: Copy {
    /// Returns it in general form.
    fn value(self, strings: &Strings) -> Value<'_>;
}

macro_rules! int_cells {
    ($($ty:ty),*) => {$(
        impl Cell for $ty {
            fn value(self, _: &Strings) -> Value<'_> {
                Value::Int(i64::from(self))
            }
        }
    )*};
}

int_cells!(i64, u32, u16, i32, bool);

impl Cell for f64 {
    fn value(self, _: &Strings) -> Value<'_> {
        Value::Real(self)
    }
}

impl Cell for Row {
    fn value(self, _: &Strings) -> Value<'_> {
        Value::Int(i64::from(self.0.get()) - 1)
    }
}

impl Cell for Symbol {
    fn value(self, strings: &Strings) -> Value<'_> {
        Value::Text(strings.get(self))
    }
}

impl<T: Cell> Cell for Option<T> {
    fn value(self, strings: &Strings) -> Value<'_> {
        self.map_or(Value::Null, |cell| cell.value(strings))
    }
}

/// A column.
pub trait Column: Default {
    /// The type of its values.
    type Item: Cell;
    /// Appends a value for the row at `index`, the next one.
    fn append(&mut self, index: usize, item: Self::Item);
    /// Returns the value of a row.
    fn cell(&self, index: usize) -> Self::Item;
}

impl<T: Cell> Column for Vec<T> {
    type Item = T;

    fn append(&mut self, _: usize, item: T) {
        self.push(item);
    }

    fn cell(&self, index: usize) -> T {
        self[index]
    }
}

/// A column in which few rows have a value.
#[derive(Debug)]
pub struct Sparse<T>(HashMap<u32, T>);

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Cell> Sparse<T> {
    pub(crate) fn set(&mut self, row: Row, item: T) {
        self.0.insert(row.number() - 1, item);
    }
}

impl<T: Cell> Column for Sparse<T> {
    type Item = Option<T>;

    fn append(&mut self, index: usize, item: Option<T>) {
        if let Some(item) = item {
            self.set(Row::new(index), item);
        }
    }

    fn cell(&self, index: usize) -> Option<T> {
        self.0.get(&u32::try_from(index).ok()?).copied()
    }
}

/// Rows of a column of times that share a base.
const ROWS_OF_BASE: usize = 1024;
/// Mark of a value that is too far from its base.
const FAR: u32 = u32::MAX;

/// A column of times or durations, which takes half of the memory of plain numbers: values near a
/// base take 4 bytes.
#[derive(Debug, Default)]
pub struct Near {
    bases: Vec<i64>,
    offsets: Vec<u32>,
    far: HashMap<u32, i64>,
}

impl Near {
    /// Returns the value of a row.
    pub fn get(&self, index: usize) -> i64 {
        match self.offsets[index] {
            FAR => u32::try_from(index).ok().and_then(|index| self.far.get(&index)).copied().unwrap_or(0),
            // The base plus the offset may be too large for the type.
            offset => self.bases[index / ROWS_OF_BASE] + (i64::from(offset) - 1),
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    pub(crate) fn set(&mut self, index: usize, value: i64) {
        self.offsets[index] = self.encode(index, value);
    }

    fn encode(&mut self, index: usize, value: i64) -> u32 {
        let base = self.bases[index / ROWS_OF_BASE];
        let offset = value.checked_sub(base).and_then(|offset| offset.checked_add(1));
        let offset = offset.and_then(|offset| u32::try_from(offset).ok()).unwrap_or(FAR);
        if offset == FAR {
            self.far.insert(Row::new(index).number() - 1, value);
        }
        offset
    }
}

impl Column for Near {
    type Item = i64;

    fn append(&mut self, index: usize, item: i64) {
        if index % ROWS_OF_BASE == 0 {
            // Durations have no common base.
            let is_duration = item < i64::from(FAR);
            self.bases.push(if is_duration { 0 } else { item });
        }
        let offset = self.encode(index, item);
        self.offsets.push(offset);
    }

    fn cell(&self, index: usize) -> i64 {
        self.get(index)
    }
}

/// A table with its columns by name.
pub trait Table {
    /// Returns its name.
    fn name(&self) -> &'static str;
    /// Returns the names of its columns.
    fn columns(&self) -> &'static [&'static str];
    /// Returns its number of rows.
    fn rows(&self) -> usize;
    /// Returns the value in a row and a column, both by position.
    fn value<'t>(&'t self, row: usize, column: usize, strings: &'t Strings) -> Value<'t>;
}

/// Makes a table, and the type of its rows.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $table:ident of $row:ident as $name:literal {
            $( $(#[$field_doc:meta])* $field:ident : $column:ty, )+
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $table {
            $( $(#[$field_doc])* pub $field: $column, )+
            rows: usize,
        }

        #[doc = concat!("A row of [`", stringify!($table), "`].")]
        #[derive(Debug, Clone, Copy)]
        pub struct $row {
            $( $(#[$field_doc])* pub $field: <$column as crate::tables::Column>::Item, )+
        }

        impl $table {
            pub(crate) fn push(&mut self, row: $row) -> crate::tables::Row {
                let index = self.rows;
                $( crate::tables::Column::append(&mut self.$field, index, row.$field); )+
                self.rows += 1;
                crate::tables::Row::new(index)
            }
        }

        impl crate::tables::Table for $table {
            fn name(&self) -> &'static str {
                $name
            }

            fn columns(&self) -> &'static [&'static str] {
                &[$( stringify!($field) ),+]
            }

            fn rows(&self) -> usize {
                self.rows
            }

            fn value<'t>(
                &'t self,
                row: usize,
                column: usize,
                strings: &'t crate::string_table::Strings,
            ) -> crate::tables::Value<'t> {
                let mut at = 0;
                $(
                    if column == at {
                        let cell = crate::tables::Column::cell(&self.$field, row);
                        return crate::tables::Cell::value(cell, strings);
                    }
                    at += 1;
                )+
                let _ = at;
                crate::tables::Value::Null
            }
        }
    };
}

pub(crate) use table;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_values_and_far_ones_are_kept() {
        let values = [-1, 0, 5, i64::MAX, i64::MIN, 1 << 40, (1 << 40) + 7, i64::from(u32::MAX), -2];
        for first in values {
            let mut column = Near::default();
            let list: Vec<i64> = [first].into_iter().chain(values.into_iter().cycle().take(3000)).collect();
            list.iter().enumerate().for_each(|(index, &value)| column.append(index, value));
            assert!(list.iter().enumerate().all(|(index, &value)| column.get(index) == value), "{first}");
            column.set(1, i64::MAX);
            column.set(2, 3);
            assert_eq!((column.get(1), column.get(2)), (i64::MAX, 3));
        }
    }
}
