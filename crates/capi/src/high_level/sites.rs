//! The trace points of the SDK that stand for those of the program: one for each category, kind, name and names of annotations.
//!
//! They are found by content, because strings of C may change under one address.

use core::cell::Cell;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use std::collections::HashMap;

use esatto::raw::StaticRwLock;
use esatto::{Category, Kind, Name, Site};

use crate::category::CategoryImpl;

/// Trace points that are remembered. Names beyond them, which then are made at run time, are written in full.
const MAX_SITES: usize = 16384;

/// Trace points that a thread finds without a lock.
const CACHE: usize = 256;

/// A trace point, or one that stands in for others of its kind.
#[derive(Clone, Copy)]
pub(super) struct Known {
    pub(super) site: &'static Site,
    /// It knows its name and those of its annotations.
    pub(super) is_named: bool,
}

/// What a trace point is found by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'a> {
    /// Address of the category; 0: it comes with the event.
    category: usize,
    kind: u8,
    name: Option<&'a str>,
    args: &'a [&'a str],
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    key: Key<'static>,
    site: &'static Site,
}

thread_local! {
    static NEAR: [Cell<Option<&'static Entry>>; CACHE] = const { [const { Cell::new(None) }; CACHE] };
}

static ALL: StaticRwLock<HashMap<Key<'static>, &'static Entry, BuildHasherDefault<QuickHasher>>> =
    StaticRwLock::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// The trace point for an event. `None`: there can be no more of them, not even without names.
pub(super) fn find(
    category: &'static CategoryImpl,
    has_category: bool,
    kind: Kind,
    name: Option<&str>,
    args: &[&str],
) -> Option<Known> {
    let address = if has_category { core::ptr::from_ref(category).addr() } else { 0 };
    let key = Key { category: address, kind: kind as u8, name, args };
    let category = if has_category { category.category() } else { Category::of_argument() };
    if let Some(site) = near(&key, || far(&key, category, kind, MAX_SITES)) {
        return Some(Known { site, is_named: true });
    }
    let key = Key { name: None, args: &[], ..key };
    // As many as there are categories and kinds.
    let site = near(&key, || far(&key, category, kind, usize::MAX))?;
    Some(Known { site, is_named: false })
}

/// Looks where this thread has looked before.
fn near(key: &Key<'_>, far: impl FnOnce() -> Option<&'static Entry>) -> Option<&'static Site> {
    let hash = quick_hash(key);
    let place = (hash >> 32) as usize % CACHE;
    let known = NEAR.with(|near| near[place].get());
    if let Some(entry) = known.filter(|entry| entry.hash == hash && entry.key == *key) {
        return Some(entry.site);
    }
    let entry = far()?;
    NEAR.with(|near| near[place].set(Some(entry)));
    Some(entry.site)
}

fn far(key: &Key<'_>, category: &'static Category, kind: Kind, max: usize) -> Option<&'static Entry> {
    if let Some(entry) = ALL.read().get(key) {
        return Some(entry);
    }
    let mut all = ALL.write();
    if let Some(entry) = all.get(key) {
        return Some(entry);
    }
    if all.len() >= max {
        return None;
    }
    let leak = |text: &str| -> &'static str { text.to_owned().leak() };
    let name = key.name.map(leak);
    let args: &'static [&'static str] = key.args.iter().map(|name| leak(name)).collect::<Vec<_>>().leak();
    let names: &'static [Name] = args.iter().map(|name| Name::new(name)).collect::<Vec<_>>().leak();
    let site: &'static Site = Box::leak(Box::new(Site::new(category, kind, name, names)));
    let owned = Key { category: key.category, kind: key.kind, name, args };
    let entry: &'static Entry = Box::leak(Box::new(Entry { hash: quick_hash(&owned), key: owned, site }));
    all.insert(owned, entry);
    Some(entry)
}

/// A hash that takes a nanosecond or two; what it finds is compared.
fn quick_hash(key: &Key<'_>) -> u64 {
    let mut hasher = QuickHasher(0);
    key.hash(&mut hasher);
    hasher.finish()
}

#[derive(Default)]
struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in words.by_ref() {
            self.write_u64(u64::from_le_bytes(word.try_into().expect("eight bytes")));
        }
        let rest = words.remainder();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(last) ^ (rest.len() as u64) << 56);
    }

    fn write_u8(&mut self, v: u8) {
        self.write_u64(v.into());
    }

    fn write_u64(&mut self, v: u64) {
        // An odd number whose bits look random: 2^64 / φ.
        const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0.rotate_left(23) ^ v).wrapping_mul(MULTIPLIER);
    }

    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
