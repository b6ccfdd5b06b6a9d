//! Columns of tables, and the macro that makes a table of them.

use core::num::NonZeroU32;
use core::ops::Range;

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

/// A value of any column, with texts and rows as they are stored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawValue {
    /// No value.
    Null,
    /// An integer or a truth value.
    Int(i64),
    /// A floating point number.
    Real(f64),
    /// A text of the trace.
    Text(Symbol),
    /// A text of the engine.
    Word(&'static str),
    /// A row of this table or of another one.
    Row(Row),
}

impl RawValue {
    /// Returns it in general form.
    pub fn value(self, strings: &Strings) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Int(v) => Value::Int(v),
            Self::Real(v) => Value::Real(v),
            Self::Text(symbol) => Value::Text(strings.get(symbol)),
            Self::Word(text) => Value::Text(text),
            Self::Row(row) => Value::Int(i64::from(row.number()) - 1),
        }
    }
}

/// The kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers.
    Int,
    /// Truth values.
    Bool,
    /// Floating point numbers.
    Real,
    /// Texts.
    Text,
    /// Rows of this table or of another one.
    Row,
}

/// Description of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, in a sentence.
    pub doc: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// True if a row may have no value.
    pub is_nullable: bool,
}

/// Rows of a table, by position.
#[derive(Debug, Clone)]
pub enum Rows<'r> {
    /// Neighbours.
    Range(Range<usize>),
    /// Any rows.
    List(&'r [u32]),
}

impl Rows<'_> {
    /// Calls a function for each row.
    pub(crate) fn for_each(self, mut each: impl FnMut(usize)) {
        match self {
            Self::Range(rows) => rows.for_each(each),
            Self::List(rows) => rows.iter().for_each(|row| each(*row as usize)),
        }
    }
}

/// A type of values.
pub trait Cell: Copy {
    /// The kind of the values.
    const KIND: Kind;
    /// True if there may be no value.
    const IS_NULLABLE: bool = false;
    /// Returns it as it is stored.
    fn raw(self) -> RawValue;
    /// Returns it in general form.
    fn value(self, strings: &Strings) -> Value<'_> {
        self.raw().value(strings)
    }
}

macro_rules! cells {
    ($($ty:ty: $kind:ident, $value:expr;)*) => {$(
        impl Cell for $ty {
            const KIND: Kind = Kind::$kind;

            fn raw(self) -> RawValue {
                $value(self)
            }
        }
    )*};
}

cells! {
    i64: Int, RawValue::Int;
    u32: Int, |v| RawValue::Int(i64::from(v));
    u16: Int, |v| RawValue::Int(i64::from(v));
    i32: Int, |v| RawValue::Int(i64::from(v));
    bool: Bool, |v| RawValue::Int(i64::from(v));
    f64: Real, RawValue::Real;
    Row: Row, RawValue::Row;
    Symbol: Text, RawValue::Text;
}

impl<T: Cell> Cell for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_NULLABLE: bool = true;

    fn raw(self) -> RawValue {
        self.map_or(RawValue::Null, T::raw)
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
            offset => self.bases[index / ROWS_OF_BASE].wrapping_add(i64::from(offset) - 1),
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
        // The values may be so far apart that this wraps. Then `get` wraps, too.
        let offset = value.wrapping_sub(self.bases[index / ROWS_OF_BASE]).wrapping_add(1);
        match u32::try_from(offset) {
            Ok(offset) if offset != FAR => offset,
            _ => self.encode_far(index, value),
        }
    }

    #[cold]
    fn encode_far(&mut self, index: usize, value: i64) -> u32 {
        self.far.insert(Row::new(index).number() - 1, value);
        FAR
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
    /// Returns its description, in a sentence.
    fn doc(&self) -> &'static str;
    /// Returns the description of a column.
    fn column_info(&self, column: usize) -> Option<ColumnInfo>;
    /// Calls a function for the value of each of these rows in a column.
    fn scan(&self, column: usize, rows: Rows<'_>, each: &mut dyn FnMut(RawValue));
}

/// Makes a table, and the type of its rows.
macro_rules! table {
    (
        $(#[doc = $doc:literal])*
        $table:ident of $row:ident as $name:literal {
            $( $(#[doc = $field_doc:literal])* $field:ident : $column:ty, )+
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Default)]
        pub struct $table {
            $( $(#[doc = $field_doc])* pub $field: $column, )+
            rows: usize,
        }

        #[doc = concat!("A row of [`", stringify!($table), "`].")]
        #[derive(Debug, Clone, Copy)]
        pub struct $row {
            $( $(#[doc = $field_doc])* pub $field: <$column as crate::tables::Column>::Item, )+
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

            fn doc(&self) -> &'static str {
                concat!($($doc),*).trim_ascii()
            }

            fn column_info(&self, column: usize) -> Option<crate::tables::ColumnInfo> {
                const INFOS: &[crate::tables::ColumnInfo] = &[$(
                    crate::tables::ColumnInfo {
                        name: crate::tables::plain_name(stringify!($field)),
                        doc: concat!($($field_doc),*).trim_ascii(),
                        kind: <<$column as crate::tables::Column>::Item as crate::tables::Cell>::KIND,
                        is_nullable: <<$column as crate::tables::Column>::Item as crate::tables::Cell>::IS_NULLABLE,
                    }
                ),+];
                INFOS.get(column).copied()
            }

            fn scan(
                &self,
                column: usize,
                rows: crate::tables::Rows<'_>,
                each: &mut dyn FnMut(crate::tables::RawValue),
            ) {
                let mut at = 0;
                $(
                    if column == at {
                        let raw = |row| crate::tables::Cell::raw(crate::tables::Column::cell(&self.$field, row));
                        return rows.for_each(|row| each(raw(row)));
                    }
                    at += 1;
                )+
                let _ = at;
            }
        }
    };
}

pub(crate) use table;

/// Returns the name of a column without the mark of a raw identifier.
pub(crate) const fn plain_name(name: &'static str) -> &'static str {
    let [b'r', b'#', plain @ ..] = name.as_bytes() else { return name };
    match core::str::from_utf8(plain) {
        Ok(plain) => plain,
        Err(_) => name,
    }
}

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
