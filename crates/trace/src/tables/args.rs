//! Table of arguments: named values in sets, each set stored once.

use core::hash::{BuildHasher as _, Hash as _, Hasher as _};

use hashbrown::{DefaultHashBuilder, HashTable};

use super::{Row, Table, Value};
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

    fn same(self, other: Self) -> bool {
        core::mem::discriminant(&self) == core::mem::discriminant(&other) && self.bits() == other.bits()
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
    set_of: Vec<Row>,
    sets: HashTable<Row>,
    /// Keys of the hashes: an author of a trace cannot make sets with the same hash.
    keys: DefaultHashBuilder,
}

impl ArgTable {
    /// Adds a set, and returns its id; `None` for the empty set. If two arguments have the same
    /// key, the last one counts.
    pub(crate) fn add(&mut self, args: &mut Vec<Arg>) -> Option<Row> {
        args.sort_by_key(|arg| arg.key);
        args.reverse();
        args.dedup_by_key(|arg| arg.key);
        args.reverse();
        self.add_sorted(args)
    }

    fn add_sorted(&mut self, args: &[Arg]) -> Option<Row> {
        if args.is_empty() {
            return None;
        }
        let hash = hash_of(args, &self.keys);
        let Self { args: list, set_of, sets, keys } = self;
        let same = |(a, b): (&Arg, &Arg)| a.key == b.key && a.flat_key == b.flat_key && a.value.same(b.value);
        let equal = |set: &Row| {
            let (start, end) = (set.index(), set.index() + args.len());
            let is_end = set_of.get(end).is_none_or(|next| next != set);
            is_end
                && list.get(start..end).is_some_and(|there| set_of[end - 1] == *set && there.iter().zip(args).all(same))
        };
        if let Some(&set) = sets.find(hash, equal) {
            return Some(set);
        }
        let set = Row::new(list.len());
        list.extend(args);
        set_of.resize(list.len(), set);
        sets.insert_unique(hash, set, |set| hash_of(set_at(list, set_of, *set), keys));
        Some(set)
    }

    /// Adds a set that has further arguments.
    pub(crate) fn extend(&mut self, set: Option<Row>, more: &[Arg]) -> Option<Row> {
        let mut args = set.map_or(Vec::new(), |set| self.set(set).to_vec());
        args.extend(more);
        self.add(&mut args)
    }

    /// Returns the arguments of a set.
    pub fn set(&self, set: Row) -> &[Arg] {
        set_at(&self.args, &self.set_of, set)
    }
}

fn set_at<'t>(args: &'t [Arg], set_of: &[Row], set: Row) -> &'t [Arg] {
    let start = set.index();
    let length = set_of[start..].iter().take_while(|id| **id == set).count();
    &args[start..start + length]
}

fn hash_of(args: &[Arg], keys: &DefaultHashBuilder) -> u64 {
    let mut hasher = keys.build_hasher();
    for arg in args {
        (arg.key.number(), arg.flat_key.number(), arg.value.type_name(), arg.value.bits()).hash(&mut hasher);
    }
    hasher.finish()
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
        let arg = &self.args[row];
        let text = |symbol: Symbol| Value::Text(strings.get(symbol));
        match (column, arg.value) {
            (0, _) => Value::Int(i64::from(self.set_of[row].number()) - 1),
            (1, _) => text(arg.flat_key),
            (2, _) => text(arg.key),
            (3, ArgValue::Int(v)) => Value::Int(v),
            (3, ArgValue::Uint(v) | ArgValue::Pointer(v)) => Value::Int(signed(v)),
            (3, ArgValue::Bool(v)) => Value::Int(i64::from(v)),
            (4, ArgValue::Text(v)) => v.map_or(Value::Null, text),
            (4, ArgValue::Json(v)) => text(v),
            (5, ArgValue::Real(v)) => Value::Real(v),
            (6, value) => Value::Text(value.type_name()),
            _ => Value::Null,
        }
    }
}

/// Returns the signed number of the same bits.
pub(crate) fn signed(v: u64) -> i64 {
    i64::from_ne_bytes(v.to_ne_bytes())
}
