//! The data symbols (`docs/spec/c-abi.md` §3).
//!
//! Programs have copies of them. The dynamic linker makes every object use the program's copy, this
//! library included. So the library must never be linked with `-Bsymbolic`.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::abi::TeCategoryImpl;

#[unsafe(no_mangle)]
static perfetto_atomic_false: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
static perfetto_te_any_categories: AtomicPtr<TeCategoryImpl> = AtomicPtr::new(ptr::null_mut());

#[unsafe(no_mangle)]
static perfetto_te_any_categories_enabled: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

#[unsafe(no_mangle)]
static perfetto_te_process_track_uuid: AtomicU64 = AtomicU64::new(0);

/// Publishes the category that stands for all categories, and its flag.
pub(crate) fn publish_any_category(category: *const TeCategoryImpl, is_enabled: &'static AtomicBool) {
    perfetto_te_any_categories_enabled.store(ptr::from_ref(is_enabled).cast_mut(), Ordering::Release);
    perfetto_te_any_categories.store(category.cast_mut(), Ordering::Release);
}

pub(crate) fn is_any_category_published() -> bool {
    !perfetto_te_any_categories.load(Ordering::Acquire).is_null()
}

pub(crate) fn publish_process_uuid(uuid: u64) {
    perfetto_te_process_track_uuid.store(uuid, Ordering::Relaxed);
}

/// Returns the flag of things that are never enabled.
pub(crate) const fn always_false() -> *const AtomicBool {
    &raw const perfetto_atomic_false
}
