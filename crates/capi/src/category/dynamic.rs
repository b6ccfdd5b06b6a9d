//! Dynamic categories: a program passes their descriptor with an event.

use core::cell::Cell;
use core::hash::BuildHasherDefault;
use core::ptr;
use std::collections::HashMap;

use esatto::raw::{self, Role, StaticMutex};

use super::any::any;
use super::category_impl::CategoryImpl;
use super::descriptor::{ByKey, Key, describes};
use crate::abi::CategoryDescriptor;
use crate::ffi::Ref;

/// Dynamic categories that the library remembers. For each event of another one it looks the
/// category up in the configs.
const MAX_DYNAMIC: usize = 4096;

/// Dynamic categories that the library remembers.
static DYNAMIC: StaticMutex<ByKey<&'static CategoryImpl>> =
    StaticMutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

/// Dynamic categories that a thread finds without a lock.
const CACHED: usize = 16;

thread_local! {
    /// Found by the address of the descriptor.
    static CACHE: [Cell<Option<&'static CategoryImpl>>; CACHED] = const { [const { Cell::new(None) }; CACHED] };
}

/// Returns the instances in which a dynamic category is on, one bit each.
///
/// It takes a lock if the category is not in the thread's cache.
pub(crate) fn dynamic_instances(desc: Ref<'_, CategoryDescriptor<'_>>) -> u32 {
    let place = (desc.as_ptr().addr() / align_of::<CategoryDescriptor<'_>>()) % CACHED;
    let cached = CACHE.with(|cache| cache[place].get());
    if let Some(category) = cached.filter(|cached| describes(desc.get(), cached.category())) {
        return category.category().instances();
    }
    let found = |category: &'static CategoryImpl| CACHE.with(|cache| cache[place].set(Some(category)));
    dynamic_instances_by_content(desc.get(), found)
}

#[cold]
fn dynamic_instances_by_content(
    desc: Option<&CategoryDescriptor<'_>>,
    found: impl FnOnce(&'static CategoryImpl),
) -> u32 {
    // A lock is taken and memory allocated below. A trace point of a signal handler in between
    // would deadlock, so it does nothing while the thread is closed.
    let _closed = raw::close();
    let key = Key::of_descriptor(desc);
    let known = DYNAMIC.lock();
    if let Some(&category) = known.get(&key) {
        found(category);
        return category.category().instances();
    }
    let is_full = known.len() >= MAX_DYNAMIC;
    drop(known);
    if !is_full {
        // It is registered before other threads find it, because they would take it for switched
        // off.
        let made = CategoryImpl::make(Role::Unlisted, key.clone());
        raw::register(made.category());
        let category = *DYNAMIC.lock().entry(key).or_insert(made);
        if !ptr::eq(category, made) {
            raw::unregister(made.category());
        }
        found(category);
        return category.category().instances();
    }
    let tags: Vec<&str> = key.tags.iter().map(|tag| &**tag).collect();
    let instances = any().category().instances();
    (0..u32::BITS)
        .filter(|slot| instances & 1 << slot != 0 && raw::is_enabled(*slot as usize, &key.name, &tags))
        .fold(0, |mask, slot| mask | 1 << slot)
}
