//! Instances that a thread has locked.

use core::cell::RefCell;
use core::ffi::c_void;
use core::ptr;
use std::sync::Arc;

use super::instance::{Instance, Registered};
use super::source_type::DataSourceType;
use crate::ffi::Ref;
use crate::panic_guard::guard_uncancelled;

thread_local! {
    /// The instances that this thread has locked.
    static LOCKED: RefCell<Vec<Hold>> = const { RefCell::new(Vec::new()) };
}

/// Keeps an instance locked. A thread that ends releases all of its locks.
struct Hold(Option<Arc<Instance>>);

impl Hold {
    fn is_of(&self, registered: &Registered, slot: u32) -> bool {
        self.0.as_ref().is_some_and(|instance| ptr::eq(instance.registered, registered) && instance.slot == slot)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let stop = self.0.as_ref().and_then(|instance| instance.release());
        // In this order for the same reason as in `PerfettoDsStopDone`.
        drop(self.0.take());
        drop(stop);
    }
}

/// Forgets the locks in the child of a fork, on the thread that forked, because the instances are
/// the parent's.
pub(super) fn forked() {
    let _ = LOCKED
        .try_with(|locked| locked.try_borrow_mut().map(|mut locked| core::mem::forget(core::mem::take(&mut *locked))));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplGetInstanceLocked(
    ds_impl: Ref<'static, DataSourceType>,
    inst_id: u32,
) -> *mut c_void {
    guard_uncancelled(|| {
        let registered = ds_impl.get().and_then(DataSourceType::registered);
        let Some(instance) = registered.and_then(|registered| registered.source.instance(inst_id as usize)) else {
            return ptr::null_mut();
        };
        let context = instance.context.0;
        if context.is_null() || !instance.acquire() {
            return ptr::null_mut();
        }
        let hold = Hold(Some(instance));
        // If the thread is ending, this fails and unlocks at once.
        let is_kept = LOCKED.try_with(|locked| locked.try_borrow_mut().map(|mut locked| locked.push(hold)).is_ok());
        if is_kept == Ok(true) { context } else { ptr::null_mut() }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplReleaseInstanceLocked(ds_impl: Ref<'static, DataSourceType>, inst_id: u32) {
    guard_uncancelled(|| {
        let Some(registered) = ds_impl.get().and_then(DataSourceType::registered) else { return };
        let hold = LOCKED.try_with(|locked| {
            let mut locked = locked.borrow_mut();
            locked.iter().rposition(|hold| hold.is_of(registered, inst_id)).map(|at| locked.remove(at))
        });
        // Not while the list is borrowed, because this may destroy the instance, which calls the
        // program.
        drop(hold);
    });
}
