//! Table that stores each string of a trace once.

use core::hash::{Hash as _, Hasher as _};
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::sync::Arc;

/// A string of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Symbol(u32);

/// The strings of a trace. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Default)]
pub(crate) struct Strings {
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
        let symbol = Symbol(u32::try_from(self.list.len()).expect("a trace has less than 2^32 strings"));
        let text: Arc<str> = text.into();
        self.list.push((Arc::clone(&text), hash_of(&text)));
        self.ids.insert(text, symbol);
        symbol
    }

    pub(crate) fn get(&self, symbol: Symbol) -> &str {
        &self.list[symbol.0 as usize].0
    }

    /// Returns [`hash_of`] its text.
    pub(crate) fn hash(&self, symbol: Symbol) -> u64 {
        self.list[symbol.0 as usize].1
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
