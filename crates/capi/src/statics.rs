//! The data symbols (`docs/spec/c-abi.md` §3).
//!
//! Programs have copies of them, which the dynamic linker makes everybody use, this library included. So they are never linked directly
//! (`-Bsymbolic`).

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::category::CategoryImpl;

#[unsafe(no_mangle)]
static perfetto_atomic_false: AtomicBool = AtomicBool::new(false);

#[unsafe(no_mangle)]
static perfetto_te_any_categories: AtomicPtr<CategoryImpl> = AtomicPtr::new(ptr::null_mut());

#[unsafe(no_mangle)]
static perfetto_te_any_categories_enabled: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());

#[unsafe(no_mangle)]
static perfetto_te_process_track_uuid: AtomicU64 = AtomicU64::new(0);

/// Track events have begun.
pub(crate) fn publish_any_categories(any: &'static CategoryImpl) {
    perfetto_te_any_categories_enabled.store(any.flag().as_ptr().cast(), Ordering::Release);
    perfetto_te_any_categories.store(ptr::from_ref(any).cast_mut(), Ordering::Release);
}

pub(crate) fn is_any_published() -> bool {
    !perfetto_te_any_categories.load(Ordering::Acquire).is_null()
}

pub(crate) fn publish_process_uuid(uuid: u64) {
    perfetto_te_process_track_uuid.store(uuid, Ordering::Relaxed);
}

/// The flag of what is never enabled.
pub(crate) const fn always_false() -> *const AtomicBool {
    &raw const perfetto_atomic_false
}
