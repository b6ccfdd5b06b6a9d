//! Table that stores each string of a trace once.

use core::hash::BuildHasher as _;
use core::num::NonZeroU32;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A string of a trace. It is a number; [`Strings`] has the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(NonZeroU32);

impl Symbol {
    fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("a trace has less than 2^32 strings"))
    }

    /// Returns its position among the strings.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }
}

/// The strings of a trace, one after the other. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Default)]
pub struct Strings {
    text: String,
    /// The end of each string in `text`.
    ends: Vec<usize>,
    ids: HashTable<Symbol>,
    /// Keys of the hashes: an author of a trace cannot make strings with the same hash.
    keys: DefaultHashBuilder,
}

impl Strings {
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Symbol {
        self.add_str(&String::from_utf8_lossy(bytes))
    }

    pub(crate) fn add_str(&mut self, text: &str) -> Symbol {
        let Self { text: all, ends, ids, keys } = self;
        let hash = keys.hash_one(text);
        if let Some(&symbol) = ids.find(hash, |&symbol| string_at(all, ends, symbol) == text) {
            return symbol;
        }
        let symbol = Symbol::new(ends.len());
        all.push_str(text);
        ends.push(all.len());
        ids.insert_unique(hash, symbol, |&symbol| keys.hash_one(string_at(all, ends, symbol)));
        symbol
    }

    /// Returns the text of a string.
    pub fn get(&self, symbol: Symbol) -> &str {
        string_at(&self.text, &self.ends, symbol)
    }

    /// Returns the strings by position.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|index| string_at(&self.text, &self.ends, Symbol::new(index)))
    }

    pub(crate) fn owned(&self, symbol: Symbol) -> String {
        self.get(symbol).to_owned()
    }
}

fn string_at<'t>(text: &'t str, ends: &[usize], symbol: Symbol) -> &'t str {
    let index = symbol.index();
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    &text[start..ends[index]]
}
