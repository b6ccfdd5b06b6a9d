//! The trace points of the SDK that stand for those of the program: one for each category, kind, name and names of annotations.
//!
//! They are found by content, because strings of C may change under one address. A thread looks first where it has found the trace point for strings at these
//! addresses, and compares; then where it has found one for such strings; then in the list of all, which is locked.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int};
use core::hash::{BuildHasherDefault, Hash, Hasher};
use core::ptr;
use std::collections::HashMap;

use esatto::raw::StaticRwLock;
use esatto::{Category, Kind, Name, Site, raw};

use crate::category::CategoryImpl;

/// Trace points with names that are remembered.
const MAX_SITES: usize = 16384;

/// Places in which a thread finds trace points without a lock.
const CACHE: usize = 256;

/// What a trace point is looked for by.
pub(super) struct Wanted<'a> {
    /// `None`: it comes with the event.
    pub(super) category: Option<&'static CategoryImpl>,
    pub(super) kind: Kind,
    /// Null: it has none.
    pub(super) name: *const c_char,
    /// The names of its annotations; none of them is null.
    pub(super) args: &'a [*const c_char],
}

/// What a trace point is known by.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key<'a> {
    /// Address of the category, or 0.
    category: usize,
    kind: u8,
    name: Option<&'a CStr>,
    args: &'a [&'a CStr],
}

struct Entry {
    key: Key<'static>,
    site: &'static Site,
}

thread_local! {
    static NEAR: [Cell<Option<&'static Entry>>; CACHE] = const { [const { Cell::new(None) }; CACHE] };
}

static ALL: StaticRwLock<HashMap<Key<'static>, &'static Entry, BuildHasherDefault<QuickHasher>>> =
    StaticRwLock::new(HashMap::with_hasher(BuildHasherDefault::new()));

unsafe extern "C" {
    fn strcmp(a: *const c_char, b: *const c_char) -> c_int;
}

/// The trace point for an event. `None`: there can be no more with names (of those without there are as many as categories and kinds), or the thread is
/// closed.
///
/// # Safety
///
/// All strings are null or end with NUL.
#[inline(always)]
pub(super) unsafe fn find(wanted: &Wanted<'_>) -> Option<&'static Site> {
    NEAR.with(|near| {
        let place = &near[wanted.place_by_address()];
        match place.get() {
            // SAFETY: the caller's promise.
            Some(entry) if unsafe { wanted.is(&entry.key) } => Some(entry.site),
            _ => {
                // SAFETY: as above.
                let entry = unsafe { find_by_content(near, wanted) }?;
                place.set(Some(entry));
                Some(entry.site)
            }
        }
    })
}

/// # Safety
///
/// As [`find`].
#[cold]
#[inline(never)]
unsafe fn find_by_content(near: &[Cell<Option<&'static Entry>>; CACHE], wanted: &Wanted<'_>) -> Option<&'static Entry> {
    // SAFETY: the caller's promise.
    let place = &near[unsafe { wanted.place_by_content() }];
    // SAFETY: as above.
    if let Some(entry) = place.get().filter(|entry| unsafe { wanted.is(&entry.key) }) {
        return Some(entry);
    }
    // SAFETY: as above.
    let entry = unsafe { find_in_all(wanted) }?;
    place.set(Some(entry));
    Some(entry)
}

/// # Safety
///
/// As [`find`].
unsafe fn find_in_all(wanted: &Wanted<'_>) -> Option<&'static Entry> {
    // A signal handler may have interrupted this very function where it holds the lock: then the thread is closed.
    if !raw::is_open() {
        return None;
    }
    // What is allocated here, none interrupts.
    let _closed = raw::close();
    // SAFETY: the caller's promise; not null.
    let text = |string: &*const c_char| unsafe { CStr::from_ptr(*string) };
    let args: Vec<&CStr> = wanted.args.iter().map(text).collect();
    let name = (!wanted.name.is_null()).then(|| text(&wanted.name));
    let key = Key { category: wanted.category_address(), kind: wanted.kind as u8, name, args: &args };
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

/// A text as ours are.
fn lossy(text: &'static CStr) -> &'static str {
    text.to_str().unwrap_or_else(|_| text.to_string_lossy().into_owned().leak())
}

impl Wanted<'_> {
    fn category_address(&self) -> usize {
        self.category.map_or(0, |category| ptr::from_ref(category).addr())
    }

    /// Different for most trace points of a program, as their strings are; and known without looking at the strings.
    #[inline(always)]
    fn place_by_address(&self) -> usize {
        let argument = self.args.first().map_or(0, |name| name.addr());
        let what = self.category_address().rotate_left(40) ^ argument.rotate_left(20) ^ self.name.addr();
        place((what as u64 ^ (self.kind as u64) << 56).wrapping_mul(MULTIPLIER))
    }

    /// # Safety
    ///
    /// As [`find`].
    unsafe fn place_by_content(&self) -> usize {
        let mut hasher = QuickHasher(self.category_address() as u64 ^ (self.kind as u64) << 56);
        for &string in [self.name].iter().chain(self.args).filter(|string| !string.is_null()) {
            // SAFETY: the caller's promise.
            unsafe { CStr::from_ptr(string) }.hash(&mut hasher);
        }
        place(hasher.finish())
    }

    /// # Safety
    ///
    /// As [`find`].
    #[inline(always)]
    unsafe fn is(&self, key: &Key<'static>) -> bool {
        // SAFETY: both end with NUL.
        let equal = |string: *const c_char, text: &CStr| unsafe { strcmp(string, text.as_ptr()) } == 0;
        let is_name = match key.name {
            Some(name) => !self.name.is_null() && equal(self.name, name),
            None => self.name.is_null(),
        };
        is_name
            && key.category == self.category_address()
            && key.kind == self.kind as u8
            && key.args.len() == self.args.len()
            && self.args.iter().zip(key.args).all(|(&string, text)| equal(string, text))
    }
}

impl Key<'_> {
    fn leak(self) -> Key<'static> {
        let leak = |text: &CStr| -> &'static CStr { Box::leak(text.to_owned().into_boxed_c_str()) };
        let args: &[&CStr] = self.args.iter().map(|name| leak(name)).collect::<Vec<_>>().leak();
        Key { name: self.name.map(leak), args, category: self.category, kind: self.kind }
    }
}

/// An odd number whose bits look random: 2^64 / φ.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

const fn place(hash: u64) -> usize {
    (hash >> 32) as usize % CACHE
}

/// A hash that takes a few nanoseconds; what it finds is compared.
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

    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(23) ^ v).wrapping_mul(MULTIPLIER);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
