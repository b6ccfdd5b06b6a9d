//! Table of arguments: named values in sets, each set stored once.

use core::hash::{BuildHasher as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{ColumnInfo, Kind, RawValue, Row, Rows, Table, Value};
use crate::string_table::{Strings, Symbol};

/// The value of an argument.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ArgValue {
    /// A signed number.
    Int(i64),
    /// An unsigned number.
    Uint(u64),
    /// A truth value.
    Bool(bool),
    /// A floating point number.
    Real(f64),
    /// A text. The trace processor has arguments with a text that is null.
    Text(Option<Symbol>),
    /// An address.
    Pointer(u64),
    /// JSON that could not be split into arguments.
    Json(Symbol),
    /// No value: a message without fields.
    Null,
}

impl ArgValue {
    fn type_name(self) -> &'static str {
        match self {
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Bool(_) => "bool",
            Self::Real(_) => "real",
            Self::Text(_) => "string",
            Self::Pointer(_) => "pointer",
            Self::Json(_) => "json",
            Self::Null => "null",
        }
    }

    fn tag(self) -> u8 {
        match self {
            Self::Int(_) => 0,
            Self::Uint(_) => 1,
            Self::Bool(_) => 2,
            Self::Real(_) => 3,
            Self::Text(_) => 4,
            Self::Pointer(_) => 5,
            Self::Json(_) => 6,
            Self::Null => 7,
        }
    }

    fn bits(self) -> u64 {
        match self {
            Self::Int(v) => u64::from_ne_bytes(v.to_ne_bytes()),
            Self::Uint(v) | Self::Pointer(v) => v,
            Self::Bool(v) => u64::from(v),
            Self::Real(v) => v.to_bits(),
            Self::Text(v) => v.map_or(0, |text| u64::from(text.number())),
            Self::Json(v) => u64::from(v.number()),
            Self::Null => 0,
        }
    }
}

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arg {
    /// Its name without positions in lists.
    pub flat_key: Symbol,
    /// Its name.
    pub key: Symbol,
    /// Its value.
    pub value: ArgValue,
}

impl Arg {
    pub(crate) fn new(key: Symbol, value: ArgValue) -> Self {
        Self { flat_key: key, key, value }
    }
}

/// Arguments in sets. The id of a set is the row of its first argument.
#[derive(Debug, Default)]
pub struct ArgTable {
    args: Vec<Arg>,
    starts: Starts,
    sets: HashTable<Set>,
    /// Keys of the hashes: an author of a trace cannot make sets with the same hash.
    keys: [DefaultHashBuilder; 2],
}

/// A set, and its second hash.
///
/// Two sets are the same if both of their hashes are: some 90 bits, with keys that nobody knows. So
/// no argument has to be compared, which would be a cache miss for each event of the kernel.
#[derive(Debug)]
struct Set {
    hash: u64,
    row: Row,
}

/// The rows at which sets begin, as bits.
#[derive(Debug, Default)]
struct Starts {
    words: Vec<u64>,
    /// The last start before each word.
    before: Vec<Option<Row>>,
    last: Option<Row>,
}

impl Starts {
    /// Adds a set of so many rows behind the others.
    fn push(&mut self, start: usize, rows: usize) {
        let words = (start + rows).div_ceil(64);
        if start / 64 < self.words.len() {
            self.words[start / 64] |= 1 << (start % 64);
        }
        let set = Some(Row::new(start));
        while self.words.len() < words {
            let begin = self.words.len() * 64;
            self.words.push(if start / 64 == self.words.len() { 1 << (start % 64) } else { 0 });
            self.before.push(if start < begin { set } else { self.last });
        }
        self.last = set;
    }

    /// Returns the set of a row.
    fn set_of(&self, row: usize) -> Option<Row> {
        let (word, bit) = (row / 64, row % 64);
        let until = self.words.get(word)? & (u64::MAX >> (63 - bit));
        match until.checked_ilog2() {
            Some(start) => Some(Row::new(word * 64 + start as usize)),
            None => self.before[word],
        }
    }

    /// Returns the row after those of a set.
    fn end(&self, set: usize, rows: usize) -> usize {
        let (mut word, next) = ((set + 1) / 64, (set + 1) % 64);
        let Some(mut bits) = self.words.get(word).map(|bits| bits & (u64::MAX << next)) else { return rows };
        while bits == 0 {
            word += 1;
            let Some(&more) = self.words.get(word) else { return rows };
            bits = more;
        }
        word * 64 + bits.trailing_zeros() as usize
    }
}

impl ArgTable {
    /// Adds a set, and returns its id; `None` for the empty set. If two arguments have the same
    /// key, the last one counts.
    pub(crate) fn add(&mut self, args: &mut Vec<Arg>) -> Option<Row> {
        if !args.is_sorted_by(|a, b| a.key < b.key) {
            args.sort_by_key(|arg| arg.key);
            args.reverse();
            args.dedup_by_key(|arg| arg.key);
            args.reverse();
        }
        self.add_sorted(args)
    }

    fn add_sorted(&mut self, args: &[Arg]) -> Option<Row> {
        if args.is_empty() {
            return None;
        }
        let [hash, second] = hashes_of(args, &self.keys);
        if let Some(set) = self.sets.find(hash, |set| set.hash == second) {
            return Some(set.row);
        }
        let set = Row::new(self.args.len());
        self.starts.push(self.args.len(), args.len());
        self.args.extend(args);
        let Self { args: list, starts, sets, keys } = self;
        let first_hash = |set: &Set| hashes_of(set_at(list, starts, set.row), keys)[0];
        sets.insert_unique(hash, Set { hash: second, row: set }, first_hash);
        Some(set)
    }

    /// Adds a set that has further arguments.
    pub(crate) fn extend(&mut self, set: Option<Row>, more: &[Arg]) -> Option<Row> {
        let mut args = set.map_or(Vec::new(), |set| self.set(set).to_vec());
        args.extend(more);
        self.add(&mut args)
    }

    fn raw(&self, row: usize, column: usize) -> RawValue {
        let arg = &self.args[row];
        match (column, arg.value) {
            (0, _) => self.starts.set_of(row).map_or(RawValue::Null, RawValue::Row),
            (1, _) => RawValue::Text(arg.flat_key),
            (2, _) => RawValue::Text(arg.key),
            (3, ArgValue::Int(v)) => RawValue::Int(v),
            (3, ArgValue::Uint(v) | ArgValue::Pointer(v)) => RawValue::Int(signed(v)),
            (3, ArgValue::Bool(v)) => RawValue::Int(i64::from(v)),
            (4, ArgValue::Text(v)) => v.map_or(RawValue::Null, RawValue::Text),
            (4, ArgValue::Json(v)) => RawValue::Text(v),
            (5, ArgValue::Real(v)) => RawValue::Real(v),
            (6, value) => RawValue::Word(value.type_name()),
            _ => RawValue::Null,
        }
    }

    /// Returns the arguments of a set, sorted by their keys.
    pub fn set(&self, set: Row) -> &[Arg] {
        set_at(&self.args, &self.starts, set)
    }
}

fn set_at<'t>(args: &'t [Arg], starts: &Starts, set: Row) -> &'t [Arg] {
    &args[set.index()..starts.end(set.index(), args.len())]
}

fn hashes_of(args: &[Arg], keys: &[DefaultHashBuilder; 2]) -> [u64; 2] {
    let mut hashers = keys.each_ref().map(DefaultHashBuilder::build_hasher);
    for arg in args {
        let name = u64::from(arg.key.number()) << 32 | u64::from(arg.flat_key.number());
        let value = arg.value.bits() ^ u64::from(arg.value.tag()).rotate_right(8);
        for hasher in &mut hashers {
            hasher.write_u64(name);
            hasher.write_u64(value);
        }
    }
    hashers.map(|hasher| hasher.finish())
}

impl Table for ArgTable {
    fn name(&self) -> &'static str {
        "args"
    }

    fn columns(&self) -> &'static [&'static str] {
        &["arg_set_id", "flat_key", "key", "int_value", "string_value", "real_value", "value_type"]
    }

    fn rows(&self) -> usize {
        self.args.len()
    }

    fn value<'t>(&'t self, row: usize, column: usize, strings: &'t Strings) -> Value<'t> {
        self.raw(row, column).value(strings)
    }

    fn doc(&self) -> &'static str {
        "Arguments in sets. Other tables name a set by its id."
    }

    fn column_info(&self, column: usize) -> Option<ColumnInfo> {
        let name = *self.columns().get(column)?;
        let (doc, kind, is_nullable) = match column {
            0 => ("The set: the row of its first argument.", Kind::Row, false),
            1 => ("Its name without positions in lists.", Kind::Text, false),
            2 => ("Its name.", Kind::Text, false),
            3 => ("Its value, if it is a number, a truth value or an address.", Kind::Int, true),
            4 => ("Its value, if it is a text.", Kind::Text, true),
            5 => ("Its value, if it is a floating point number.", Kind::Real, true),
            _ => ("`int`, `uint`, `bool`, `real`, `string`, `pointer`, `json` or `null`.", Kind::Text, false),
        };
        Some(ColumnInfo { name, doc, kind, is_nullable })
    }

    fn scan(&self, column: usize, rows: Rows<'_>, each: &mut dyn FnMut(RawValue)) {
        rows.for_each(|row| each(self.raw(row, column)));
    }
}

/// Returns the signed number of the same bits.
pub(crate) fn signed(v: u64) -> i64 {
    i64::from_ne_bytes(v.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_all_lengths_are_found() {
        let mut strings = Strings::default();
        let keys: Vec<Symbol> = (0..300).map(|number| strings.add_str(&format!("key{number}"))).collect();
        let mut table = ArgTable::default();
        let lengths = [1, 63, 64, 65, 1, 2, 128, 300, 62, 1, 1, 200, 3];
        let args = |number: usize, length: usize| -> Vec<Arg> {
            let value = ArgValue::Uint(number as u64);
            keys[..length].iter().map(|key| Arg::new(*key, value)).collect()
        };
        let ids: Vec<Row> =
            lengths.iter().enumerate().map(|(number, length)| table.add(&mut args(number, *length)).unwrap()).collect();
        let mut row = 0;
        for (number, (&length, &id)) in lengths.iter().zip(&ids).enumerate() {
            assert_eq!(id.index(), row, "a set begins behind the one before");
            assert_eq!(table.set(id), args(number, length));
            assert_eq!(table.add(&mut args(number, length)), Some(id), "a set is stored once");
            for row in row..row + length {
                assert_eq!(table.starts.set_of(row), Some(id), "row {row}");
            }
            row += length;
        }
        assert_eq!(table.rows(), row);
        // The beginning of a set is another set.
        let shorter = table.add(&mut args(3, 64)).unwrap();
        assert!(!ids.contains(&shorter));
    }
}
