//! The functions of categories.

use core::hash::BuildHasherDefault;
use core::ptr;
use core::sync::atomic::AtomicBool;
use std::collections::HashMap;

use esatto::raw::{self, Role, StaticMutex};

use super::any::any;
use super::category_impl::CategoryImpl;
use super::descriptor::{ByKey, Key};
use crate::abi::{CategoryDescriptor, TeOnCategory};
use crate::data_symbols;
use crate::ffi::{Argument, Ref};
use crate::initialised::require_initialised;
use crate::panic_guard::{guard_or, guard_uncancelled};

/// Categories that programs have destroyed. An equal one is used again.
static DESTROYED: StaticMutex<ByKey<Vec<&'static CategoryImpl>>> =
    StaticMutex::new(HashMap::with_hasher(BuildHasherDefault::new()));

#[unsafe(no_mangle)]
extern "C" fn PerfettoTeInit() {
    guard_uncancelled(|| {
        require_initialised("PerfettoTeInit");
        data_symbols::publish_process_uuid(raw::process_uuid());
        any();
        raw::publish();
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplCreate(desc: Ref<'_, CategoryDescriptor<'_>>) -> *const CategoryImpl {
    guard_uncancelled(|| {
        any();
        let key = Key::of_descriptor(desc.get());
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
    guard_uncancelled(|| {
        raw::publish();
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplGetEnabled(cat: Ref<'static, CategoryImpl>) -> *const AtomicBool {
    // The program reads what this points to, so it must not be null.
    guard_or(
        || cat.get().map_or_else(data_symbols::always_false, |category| ptr::from_ref(category.is_enabled())),
        data_symbols::always_false,
    )
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplSetCallback(
    cat: Ref<'static, CategoryImpl>,
    callback: Option<TeOnCategory>,
    user_arg: Argument,
) {
    guard_uncancelled(|| {
        if let Some(category) = cat.get() {
            category.set_callback(callback.map(|callback| (callback, user_arg)));
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplGetIid(cat: Ref<'static, CategoryImpl>) -> u64 {
    guard_uncancelled(|| cat.get().map_or(0, |category| category.category().iid().into()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeCategoryImplDestroy(cat: Ref<'static, CategoryImpl>) {
    guard_uncancelled(|| {
        let Some(destroyed) = cat.get().filter(|category| category.is_listed()) else { return };
        destroyed.set_callback(None);
        let category = destroyed.category();
        raw::unregister(category);
        let mut all = DESTROYED.lock();
        let equal = all.entry(Key::of_category(category)).or_default();
        // A second destroy does nothing.
        if !equal.iter().any(|other| ptr::eq(*other, destroyed)) {
            equal.push(destroyed);
        }
    })
}
