//! Categories, and what track events have in common (`docs/spec/c-abi.md` §10).

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use esatto::Category;
use esatto::raw::{self, Foreign, Role};

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
    /// The thread that is in the callback; 0: none.
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

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the callback what it does not know yet.
    fn tell(&self, told: &mut Told, now: u32) {
        let Some((callback, argument)) = told.callback else {
            told.instances = now;
            return;
        };
        self.caller.store(raw::tid(), Ordering::Relaxed);
        for slot in 0..u32::BITS {
            let bit = 1 << slot;
            if (told.instances ^ now) & bit == 0 {
                continue;
            }
            let before = told.instances;
            told.instances ^= bit;
            let is_global = before == 0 || told.instances == 0;
            // SAFETY: the contract of the callback.
            unsafe { callback(self, slot, now & bit != 0, is_global, argument.0) };
        }
        self.caller.store(0, Ordering::Relaxed);
    }

    fn set_callback(&self, callback: Option<(Callback, Argument)>) {
        if self.caller.load(Ordering::Relaxed) == raw::tid() {
            text::say("a category's callback cannot set another one");
            return;
        }
        let mut told = self.told();
        let now = core::mem::take(&mut told.instances);
        told.callback = callback;
        self.tell(&mut told, now);
    }
}

impl Foreign for CategoryImpl {
    fn role(&self) -> Role {
        self.role
    }

    fn switched(&self) {
        let Some(category) = self.category.get() else { return };
        let mut told = self.told();
        let now = category.instances();
        self.enabled.store(now != 0, Ordering::Release);
        self.tell(&mut told, now);
    }

    fn forked(&self) {
        self.enabled.store(false, Ordering::Release);
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

/// Categories that were destroyed, to be used again.
static DESTROYED: LazyLock<Mutex<HashMap<Key, Vec<&'static CategoryImpl>>>> = LazyLock::new(Mutex::default);

/// Categories that came with events.
static DYNAMIC: LazyLock<Mutex<HashMap<Key, &'static CategoryImpl>>> = LazyLock::new(Mutex::default);

/// Dynamic categories that a thread finds without a lock.
const NEAR: usize = 16;

thread_local! {
    /// By the address of the descriptor.
    static NEAR_DYNAMIC: [Cell<Option<&'static CategoryImpl>>; NEAR] = const { [const { Cell::new(None) }; NEAR] };
}

/// The category that stands for all.
fn any() -> &'static CategoryImpl {
    static ANY: OnceLock<&'static CategoryImpl> = OnceLock::new();
    ANY.get_or_init(|| {
        let any = CategoryImpl::make(Role::Any, Key::default());
        raw::register(any.category());
        statics::publish_any_categories(any);
        any
    })
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
    // SAFETY: the caller's promise.
    let key = unsafe { key(desc) };
    let _closed = raw::close();
    let mut known = DYNAMIC.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&category) = known.get(&key) {
        found(category);
        return category.category().instances();
    }
    if known.len() < MAX_DYNAMIC {
        let category = CategoryImpl::make(Role::Unlisted, key.clone());
        known.insert(key, category);
        drop(known);
        raw::register(category.category());
        found(category);
        return category.category().instances();
    }
    drop(known);
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
        let mut destroyed = DESTROYED.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut all = DESTROYED.lock().unwrap_or_else(PoisonError::into_inner);
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
