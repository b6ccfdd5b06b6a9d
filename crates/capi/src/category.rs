//! Categories, and what track events have in common (`docs/spec/c-abi.md` §10).

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use esatto::Category;
use esatto::raw::{self, Foreign, Role, StaticMutex};

use crate::abi::{CategoryDescriptor, Timestamp};
use crate::guard::{guard, guard_or};
use crate::producer::require_init;
use crate::tracer::Argument;
use crate::{statics, text};

type Callback = unsafe extern "C-unwind" fn(*const CategoryImpl, u32, bool, bool, *mut c_void);

/// Dynamic categories that are remembered. Others are looked up in the configs for each event.
const MAX_DYNAMIC: usize = 4096;

/// `PerfettoTeCategoryImpl`. Never freed: threads may still look at one that was destroyed. An equal one takes its place.
#[derive(Debug)]
pub(crate) struct CategoryImpl {
    enabled: AtomicBool,
    role: Role,
    category: OnceLock<Category>,
    told: Mutex<Told>,
    /// The thread that is in the callback, or [`NOBODY`].
    caller: AtomicU32,
}

/// Whom to tell of switches, and what he knows.
#[derive(Debug, Default)]
struct Told {
    callback: Option<(Callback, Argument)>,
    /// The instances that the category is on in, as far as the callback was told.
    instances: u32,
}

/// What makes categories equal: name, description, tags.
type Key = (String, String, Vec<String>);

impl CategoryImpl {
    fn make(role: Role, (name, description, tags): Key) -> &'static Self {
        let made: &'static Self = Box::leak(Box::new(Self {
            enabled: AtomicBool::new(false),
            role,
            category: OnceLock::new(),
            told: Mutex::default(),
            caller: AtomicU32::new(0),
        }));
        let tags: Vec<&'static str> = tags.into_iter().map(|tag| &*tag.leak()).collect();
        let category = Category::foreign(name.leak(), made).with_description(description.leak()).with_tags(tags.leak());
        let _ = made.category.set(category);
        made
    }

    pub(crate) fn category(&'static self) -> &'static Category {
        self.category.get().expect("set when it was made")
    }

    /// The flag that trace points look at.
    pub(crate) const fn flag(&self) -> &AtomicBool {
        &self.enabled
    }

    /// Of whoever has [`TELLING`] locked.
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over where the category is on, and tells the callback what it does not know yet, one by one. If a thread is about it already, that one does it.
    fn tell(&'static self) {
        let mut telling = TELLING.lock();
        loop {
            let now = self.category().instances();
            self.enabled.store(now != 0, Ordering::Release);
            if self.caller.load(Ordering::Relaxed) != NOBODY {
                return;
            }
            let Some(Call { callback, argument, slot, is_on, is_global }) = self.told().next(now) else { return };
            self.caller.store(raw::tid(), Ordering::Relaxed);
            drop(telling);
            let called = Called(self);
            // SAFETY: the contract of the callback. Nothing is locked, and no second one of this category is called meanwhile.
            unsafe { callback(self, slot, is_on, is_global, argument.0) };
            drop(called);
            telling = TELLING.lock();
        }
    }

    /// Waits for a call that is under way on another thread, which may not be called again afterwards.
    fn set_callback(&'static self, callback: Option<(Callback, Argument)>) {
        let mut telling = TELLING.lock();
        while self.caller.load(Ordering::Relaxed) != NOBODY {
            if self.caller.load(Ordering::Relaxed) == raw::tid() {
                drop(telling);
                text::say("a category's callback cannot set another one");
                return;
            }
            telling = telling.wait(&TOLD);
        }
        *self.told() = Told { callback, instances: 0 };
        drop(telling);
        self.tell();
    }
}

/// Locked by whoever looks at what a callback was told, not while it is called: it may use the library.
static TELLING: StaticMutex<()> = StaticMutex::new(());

/// Notified when a callback has returned.
static TOLD: Condvar = Condvar::new();

/// Of [`CategoryImpl::caller`].
const NOBODY: u32 = 0;

/// A callback is being called.
struct Called(&'static CategoryImpl);

impl Drop for Called {
    fn drop(&mut self) {
        let _telling = TELLING.lock();
        self.0.caller.store(NOBODY, Ordering::Relaxed);
        TOLD.notify_all();
    }
}

/// What a callback is to be told.
struct Call {
    callback: Callback,
    argument: Argument,
    slot: u32,
    is_on: bool,
    is_global: bool,
}

impl Told {
    /// The next difference to where the category is on now, which counts as told from now on.
    fn next(&mut self, now: u32) -> Option<Call> {
        let Some((callback, argument)) = self.callback else {
            self.instances = now;
            return None;
        };
        let different = self.instances ^ now;
        if different == 0 {
            return None;
        }
        let slot = different.trailing_zeros();
        let before = self.instances;
        self.instances ^= 1 << slot;
        let is_global = before == 0 || self.instances == 0;
        Some(Call { callback, argument, slot, is_on: now & 1 << slot != 0, is_global })
    }
}

impl Foreign for CategoryImpl {
    fn role(&self) -> Role {
        self.role
    }

    fn switched(&'static self) {
        if self.category.get().is_some() {
            self.tell();
        }
    }

    fn forked(&self) {
        self.enabled.store(false, Ordering::Release);
        // Who called is not there, or calls no more.
        self.caller.store(NOBODY, Ordering::Relaxed);
        // Nobody has it locked, as this thread has what comes before.
        if let Ok(mut told) = self.told.try_lock() {
            told.instances = 0;
        }
    }
}

/// What the descriptor of a program says.
///
/// # Safety
///
/// Null, or valid, with strings that end with NUL.
unsafe fn key(desc: *const CategoryDescriptor) -> Key {
    // SAFETY: the caller's promise.
    let Some(desc) = (unsafe { desc.as_ref() }) else { return Key::default() };
    let tags = (0..if desc.tags.is_null() { 0 } else { desc.num_tags }).map(|i| {
        // SAFETY: the caller's promise: there are `num_tags`.
        let tag = unsafe { *desc.tags.add(i) };
        // SAFETY: as above.
        unsafe { text::owned(tag) }
    });
    // SAFETY: as above.
    let (name, description) = unsafe { (text::owned(desc.name), text::owned(desc.desc)) };
    (name, description, tags.collect())
}

/// Is made without anything of the process.
type ByKey<V> = HashMap<Key, V, BuildHasherDefault<DefaultHasher>>;

/// Categories that were destroyed, to be used again.
static DESTROYED: StaticMutex<ByKey<Vec<&'static CategoryImpl>>> =
    StaticMutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// Categories that came with events.
static DYNAMIC: StaticMutex<ByKey<&'static CategoryImpl>> =
    StaticMutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// Dynamic categories that a thread finds without a lock.
const NEAR: usize = 16;

thread_local! {
    /// By the address of the descriptor.
    static NEAR_DYNAMIC: [Cell<Option<&'static CategoryImpl>>; NEAR] = const { [const { Cell::new(None) }; NEAR] };
}

/// The category that stands for all, on and published when this returns.
fn any() -> &'static CategoryImpl {
    static ANY: StaticMutex<Option<&'static CategoryImpl>> = StaticMutex::new(None);
    let any = *ANY.lock().get_or_insert_with(|| CategoryImpl::make(Role::Any, Key::default()));
    // Also if another thread has made it, which may not be as far.
    if !statics::is_any_published() {
        raw::register(any.category());
        statics::publish_any_categories(any);
    }
    any
}

/// In which instances a dynamic category is on. Takes a lock where this thread has not seen it lately.
///
/// # Safety
///
/// Null, or valid, with strings that end with NUL.
pub(crate) unsafe fn dynamic_instances(desc: *const CategoryDescriptor) -> u32 {
    let place = (desc.addr() / align_of::<CategoryDescriptor>()) % NEAR;
    let near = NEAR_DYNAMIC.with(|near| near[place].get());
    // SAFETY: the caller's promise.
    if let Some(category) = near.filter(|near| unsafe { is(near.category(), desc) }) {
        return category.category().instances();
    }
    let known = |category: &'static CategoryImpl| NEAR_DYNAMIC.with(|near| near[place].set(Some(category)));
    // SAFETY: as above.
    unsafe { dynamic_instances_by_content(desc, known) }
}

/// Whether a descriptor describes a category.
///
/// # Safety
///
/// Null, or valid, with strings that end with NUL.
unsafe fn is(category: &Category, desc: *const CategoryDescriptor) -> bool {
    // SAFETY: the caller's promise.
    let Some(desc) = (unsafe { desc.as_ref() }) else { return false };
    // SAFETY: as above.
    let equal = |text: &str, string| text.as_bytes() == unsafe { text::bytes(string) }.unwrap_or_default();
    let num_tags = if desc.tags.is_null() { 0 } else { desc.num_tags };
    equal(category.name(), desc.name)
        && equal(category.description(), desc.desc)
        && category.tags().len() == num_tags
        // SAFETY: as above: there are as many.
        && category.tags().iter().enumerate().all(|(i, tag)| equal(tag, unsafe { *desc.tags.add(i) }))
}

/// # Safety
///
/// As [`dynamic_instances`].
#[cold]
unsafe fn dynamic_instances_by_content(
    desc: *const CategoryDescriptor,
    found: impl FnOnce(&'static CategoryImpl),
) -> u32 {
    // Signal handlers do not come in between: there is a lock, and memory is allocated.
    let _closed = raw::close();
    // SAFETY: the caller's promise.
    let key = unsafe { key(desc) };
    let known = DYNAMIC.lock();
    if let Some(&category) = known.get(&key) {
        found(category);
        return category.category().instances();
    }
    let is_full = known.len() >= MAX_DYNAMIC;
    drop(known);
    if !is_full {
        // Before others find it: they would take it for switched off.
        let made = CategoryImpl::make(Role::Unlisted, key.clone());
        raw::register(made.category());
        let category = *DYNAMIC.lock().entry(key).or_insert(made);
        if !ptr::eq(category, made) {
            raw::unregister(made.category());
        }
        found(category);
        return category.category().instances();
    }
    let (name, _, tags) = key;
    let tags: Vec<&str> = tags.iter().map(|tag| &**tag).collect();
    let instances = any().category().instances();
    (0..u32::BITS)
        .filter(|slot| instances & 1 << slot != 0 && raw::is_enabled(*slot as usize, &name, &tags))
        .fold(0, |mask, slot| mask | 1 << slot)
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTeInit() {
    guard(|| {
        require_init("PerfettoTeInit");
        statics::publish_process_uuid(raw::process_uuid());
        any();
        raw::publish();
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplCreate(desc: *const CategoryDescriptor) -> *const CategoryImpl {
    guard(|| {
        any();
        // SAFETY: the contract.
        let key = unsafe { key(desc) };
        let mut destroyed = DESTROYED.lock();
        let used = destroyed.get_mut(&key).and_then(Vec::pop);
        drop(destroyed);
        let category = used.unwrap_or_else(|| CategoryImpl::make(Role::Listed, key));
        raw::register(category.category());
        ptr::from_ref(category)
    })
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTePublishCategories() {
    guard(|| {
        raw::publish();
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplGetEnabled(cat: *const CategoryImpl) -> *const AtomicBool {
    // A program reads what this points to.
    guard_or(
        || {
            // SAFETY: the contract: from create.
            unsafe { cat.as_ref() }.map_or_else(statics::always_false, |category| ptr::from_ref(category.flag()))
        },
        statics::always_false,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplSetCallback(
    cat: *const CategoryImpl,
    callback: Option<Callback>,
    user_arg: *mut c_void,
) {
    guard(|| {
        // SAFETY: the contract: from create.
        if let Some(category) = unsafe { cat.as_ref() } {
            category.set_callback(callback.map(|callback| (callback, Argument(user_arg))));
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplGetIid(cat: *const CategoryImpl) -> u64 {
    guard(|| {
        // SAFETY: the contract: from create; categories live for ever.
        let category: Option<&'static CategoryImpl> = unsafe { cat.as_ref() };
        category.map_or(0, |category| category.category().iid().into())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplDestroy(cat: *const CategoryImpl) {
    guard(|| {
        // SAFETY: the contract: from create; categories live for ever.
        let category: Option<&'static CategoryImpl> = unsafe { cat.as_ref() };
        let Some(destroyed) = category.filter(|category| category.role == Role::Listed) else { return };
        destroyed.set_callback(None);
        let category = destroyed.category();
        raw::unregister(category);
        let tags = category.tags().iter().map(|&tag| tag.to_owned()).collect();
        let key = (category.name().to_owned(), category.description().to_owned(), tags);
        let mut all = DESTROYED.lock();
        let equal = all.entry(key).or_default();
        // Who destroys twice does nothing the second time.
        if !equal.iter().any(|other| ptr::eq(*other, destroyed)) {
            equal.push(destroyed);
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTeGetTimestamp() -> Timestamp {
    guard(|| Timestamp { clock_id: raw::clock_id(), value: raw::now_ns() })
}
