//! Table that stores each string of a trace once.

use core::hash::{Hash as _, Hasher as _};
use core::num::NonZeroU32;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::sync::Arc;

/// A string of a trace. It is a number; [`Strings`] has the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(NonZeroU32);

impl Symbol {
    fn new(index: usize) -> Self {
        let number = u32::try_from(index + 1).ok().and_then(NonZeroU32::new);
        Self(number.expect("a trace has less than 2^32 strings"))
    }

    fn index(self) -> usize {
        self.0.get() as usize - 1
    }

    pub(crate) fn number(self) -> u32 {
        self.0.get()
    }

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(Self)
    }
}

/// The strings of a trace. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Default)]
pub struct Strings {
    ids: HashMap<Arc<str>, Symbol>,
    /// The strings with their hashes, because the hash of a long string may be needed often.
    list: Vec<(Arc<str>, u64)>,
}

impl Strings {
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Symbol {
        self.add_str(&String::from_utf8_lossy(bytes))
    }

    pub(crate) fn add_str(&mut self, text: &str) -> Symbol {
        if let Some(&symbol) = self.ids.get(text) {
            return symbol;
        }
        let symbol = Symbol::new(self.list.len());
        let text: Arc<str> = text.into();
        self.list.push((Arc::clone(&text), hash_of(&text)));
        self.ids.insert(text, symbol);
        symbol
    }

    /// Returns the text of a string.
    pub fn get(&self, symbol: Symbol) -> &str {
        &self.list[symbol.index()].0
    }

    /// Returns [`hash_of`] its text.
    pub(crate) fn hash(&self, symbol: Symbol) -> u64 {
        self.list[symbol.index()].1
    }

    pub(crate) fn owned(&self, symbol: Symbol) -> String {
        self.get(symbol).to_owned()
    }
}

/// Returns a number for a text: equal texts have equal numbers.
pub(crate) fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
