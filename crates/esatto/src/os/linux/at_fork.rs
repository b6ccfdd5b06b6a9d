//! Hooks around forks, and descriptors that a child must not keep.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::catch_unwind;

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

/// The functions to call, as addresses: before, after in the parent, after in the child, and then
/// the function of another library.
static HOOKS: [AtomicUsize; 4] = [const { AtomicUsize::new(0) }; 4];

/// Calls `before` when the process is about to fork, and afterwards one of the other functions on
/// each side, on the thread that forks. To be called once.
pub(crate) fn watch(before: fn(), in_parent: fn(), in_child: fn()) {
    for (hook, function) in HOOKS.iter().zip([before, in_parent, in_child]) {
        hook.store(function as usize, Ordering::Relaxed);
    }
    // SAFETY: three functions that live as long as the program, and take care of their panics. A
    // library that is unloaded would take them with it: one that uses a Rust standard library
    // cannot be unloaded safely anyhow. Fails without memory only: then forks are not noticed.
    let failed = unsafe { pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    WATCHED.store(failed == 0, Ordering::Relaxed);
}

/// Sets a function that is called when the child is ready, for libraries above this one. There is
/// one for the whole process.
pub(crate) fn in_child(function: fn()) {
    HOOKS[3].store(function as usize, Ordering::Relaxed);
}

pub(crate) fn tell_child() {
    call(3);
}

/// Gives the child its own copy of the memory that is shared with services.
pub(crate) fn copy_memory() {
    #[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
    // SAFETY: called in a child, whose only thread this is. The regions keep their descriptors
    // open, which are not among those that children close.
    unsafe {
        esatto_shm::MappedRegion::copy_in_child();
    }
}

/// Returns whether forks are noticed.
pub(crate) fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed)
}

static WATCHED: AtomicBool = AtomicBool::new(false);

extern "C" fn prepare() {
    call(0);
}

extern "C" fn parent() {
    call(1);
}

extern "C" fn child() {
    call(2);
}

fn call(hook: usize) {
    let function = HOOKS[hook].load(Ordering::Relaxed);
    if function != 0 {
        // SAFETY: a `fn()` was stored there as an address.
        let function = unsafe { core::mem::transmute::<usize, fn()>(function) };
        // The caller is C code.
        let _ = catch_unwind(function);
    }
}

/// Descriptors that are closed in children of a fork. If there are more, the rest stays open there.
static DESCRIPTORS: [AtomicI32; 32] = [const { AtomicI32::new(-1) }; 32];

/// A descriptor that children of a fork do not keep, for as long as this exists.
#[derive(Debug)]
pub(crate) struct OwnedByParent(Option<&'static AtomicI32>);

impl OwnedByParent {
    #[inline(never)]
    pub(crate) fn new(fd: BorrowedFd<'_>) -> Self {
        let fd = fd.as_raw_fd();
        let free = |slot: &&AtomicI32| slot.compare_exchange(-1, fd, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        Self(DESCRIPTORS.iter().find(free))
    }
}

#[cfg(feature = "in-process")]
impl OwnedByParent {
    /// As [`new`](Self::new), for a file.
    pub(crate) fn of(file: &std::fs::File) -> Self {
        Self::new(std::os::fd::AsFd::as_fd(file))
    }
}

impl Drop for OwnedByParent {
    fn drop(&mut self) {
        if let Some(slot) = self.0 {
            slot.store(-1, Ordering::Relaxed);
        }
    }
}

/// Closes the descriptors, in a child.
pub(crate) fn close_descriptors() {
    for slot in &DESCRIPTORS {
        let fd = slot.swap(-1, Ordering::Relaxed);
        if fd >= 0 {
            // SAFETY: it is open, because its owner takes it off the list before closing it. Its
            // owner is on the control thread, which does not exist in the child, or forgets it
            // there. So no code uses it or closes it again.
            unsafe { rustix::io::close(fd) };
        }
    }
}
