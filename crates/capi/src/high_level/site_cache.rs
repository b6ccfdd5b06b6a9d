//! The SDK's trace points for events of the program: one per category, kind, name and names of
//! annotations.
//!
//! A search compares contents, because the string of C at one address may change. A thread looks in
//! three places:
//!
//! 1. in its cache, at the place for strings at these addresses;
//! 2. in its cache, at the place for strings with this content;
//! 3. in the map of all trace points, which is locked.

use core::cell::Cell;
use core::ffi::CStr;
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::ptr;
use std::collections::HashMap;

use esatto::raw::StaticRwLock;
use esatto::{Category, Kind, Name, Site, raw};

use crate::category::CategoryImpl;
use crate::ffi::Str;

/// Trace points with names that the library remembers.
const MAX_SITES: usize = 16384;

/// Trace points that a thread finds without a lock.
const CACHED: usize = 256;

/// Key of a trace point, as the program passes it.
pub(super) struct SiteKey<'a> {
    /// `None`: the event has its category.
    pub(super) category: Option<&'static CategoryImpl>,
    pub(super) kind: Kind,
    /// Null: the trace point has no name.
    pub(super) name: Str<'a>,
    /// Names of the annotations. None of them is null.
    pub(super) args: &'a [Str<'a>],
}

/// Key of a trace point, as the library keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StoredKey<'a> {
    /// Address of the category, or 0.
    category: usize,
    kind: u8,
    name: Option<&'a CStr>,
    args: &'a [&'a CStr],
}

struct Entry {
    key: StoredKey<'static>,
    site: &'static Site,
}

type Cache = [Cell<Option<&'static Entry>>; CACHED];

thread_local! {
    static CACHE: Cache = const { [const { Cell::new(None) }; CACHED] };
}

static ALL: StaticRwLock<HashMap<StoredKey<'static>, &'static Entry, BuildHasherDefault<FastHasher>>> =
    StaticRwLock::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// Returns the trace point for an event.
///
/// Returns `None` if the thread is closed, or if there are too many trace points with names. The
/// number of those without names is bounded by the number of categories and kinds.
#[inline(always)]
pub(super) fn find(key: &SiteKey<'_>) -> Option<&'static Site> {
    CACHE.with(|cache| {
        let place = &cache[key.place_by_address()];
        match place.get() {
            Some(entry) if key.equals(&entry.key) => Some(entry.site),
            _ => {
                let entry = find_by_content(cache, key)?;
                place.set(Some(entry));
                Some(entry.site)
            }
        }
    })
}

#[cold]
#[inline(never)]
fn find_by_content(cache: &Cache, key: &SiteKey<'_>) -> Option<&'static Entry> {
    let place = &cache[key.place_by_content()];
    if let Some(entry) = place.get().filter(|entry| key.equals(&entry.key)) {
        return Some(entry);
    }
    let entry = find_in_all(key)?;
    place.set(Some(entry));
    Some(entry)
}

fn find_in_all(wanted: &SiteKey<'_>) -> Option<&'static Entry> {
    // A signal handler may have interrupted this very function while it holds the lock. Then the
    // thread is closed.
    if !raw::is_open() {
        return None;
    }
    // Closed, so that no trace point of a signal handler runs while memory is allocated below.
    let _closed = raw::close();
    let args: Vec<&CStr> = wanted.args.iter().filter_map(|name| name.c_str()).collect();
    let name = wanted.name.c_str();
    let key = StoredKey { category: wanted.category_address(), kind: wanted.kind as u8, name, args: &args };
    if let Some(entry) = ALL.read().get(&key) {
        return Some(entry);
    }
    let mut all = ALL.write();
    if let Some(entry) = all.get(&key) {
        return Some(entry);
    }
    let has_names = name.is_some() || !args.is_empty();
    if has_names && all.len() >= MAX_SITES {
        return None;
    }
    let key = key.leak();
    let category = wanted.category.map_or(Category::of_argument(), CategoryImpl::category);
    let names: Vec<Name> = key.args.iter().map(|name| Name::new(lossy(name))).collect();
    let site = Box::leak(Box::new(Site::new(category, wanted.kind, key.name.map(lossy), names.leak())));
    let entry: &'static Entry = Box::leak(Box::new(Entry { key, site }));
    all.insert(key, entry);
    Some(entry)
}

/// Returns a string as UTF-8.
fn lossy(text: &'static CStr) -> &'static str {
    text.to_str().unwrap_or_else(|_| text.to_string_lossy().into_owned().leak())
}

impl SiteKey<'_> {
    fn category_address(&self) -> usize {
        self.category.map_or(0, |category| ptr::from_ref(category).addr())
    }

    /// Returns a place that differs for most trace points of a program, because their strings have
    /// different addresses. It does not read the strings.
    #[inline(always)]
    fn place_by_address(&self) -> usize {
        let argument = self.args.first().map_or(0, |name| name.addr());
        let addresses = self.category_address().rotate_left(40) ^ argument.rotate_left(20) ^ self.name.addr();
        place((addresses as u64 ^ (self.kind as u64) << 56).wrapping_mul(MULTIPLIER))
    }

    fn place_by_content(&self) -> usize {
        let mut hasher = FastHasher(self.category_address() as u64 ^ (self.kind as u64) << 56);
        for string in [self.name].iter().chain(self.args).filter_map(|string| string.c_str()) {
            string.hash(&mut hasher);
        }
        place(hasher.finish())
    }

    #[inline(always)]
    fn equals(&self, key: &StoredKey<'static>) -> bool {
        let has_name = match key.name {
            Some(name) => self.name.equals(name),
            None => self.name.is_null(),
        };
        has_name
            && key.category == self.category_address()
            && key.kind == self.kind as u8
            && key.args.len() == self.args.len()
            && self.args.iter().zip(key.args).all(|(string, text)| string.equals(text))
    }
}

impl StoredKey<'_> {
    fn leak(self) -> StoredKey<'static> {
        let leak = |text: &CStr| -> &'static CStr { Box::leak(text.to_owned().into_boxed_c_str()) };
        let args: &[&CStr] = self.args.iter().map(|name| leak(name)).collect::<Vec<_>>().leak();
        StoredKey { name: self.name.map(leak), args, category: self.category, kind: self.kind }
    }
}

/// An odd number whose bits look random: 2^64 / φ.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

const fn place(hash: u64) -> usize {
    (hash >> 32) as usize % CACHED
}

/// A hash that takes a few nanoseconds. Collisions are harmless, because keys are compared.
#[derive(Default)]
struct FastHasher(u64);

impl Hasher for FastHasher {
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

    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(23) ^ v).wrapping_mul(MULTIPLIER);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
