//! An instance of a data source, and the registered type that it belongs to.

use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use esatto::raw::{self, StaticMutex};
use esatto::{DataSource, Flush, Setup, Source, Stop};

use super::settings::Settings;
use crate::abi::DsImpl;
use crate::ffi::Argument;
use crate::program_state::{CustomState, IncrementalState};

/// A type of data source that is registered. It lives for ever.
pub(super) struct Registered {
    /// The program's pointer to the type.
    pub(super) ds: Argument<DsImpl>,
    pub(super) source: &'static Source<Instance>,
    /// The settings at the time of registration. They do not change any more.
    pub(super) settings: Settings,
    /// The flag that trace points read: there are instances.
    pub(super) is_enabled: &'static AtomicBool,
}

/// The registered types. An instance finds its own by the index, which is the tag of the SDK's
/// source.
///
/// A thread that reads or changes the settings of a type that is not registered has this locked.
pub(super) static REGISTERED: StaticMutex<Vec<&'static Registered>> = StaticMutex::new(Vec::new());

/// One instance of a type, with the context that the program has made for it.
pub(super) struct Instance {
    pub(super) registered: &'static Registered,
    pub(super) slot: u32,
    pub(super) context: Argument,
    lock: Mutex<Lock>,
    unlocked: Condvar,
}

/// A lock that one thread may take several times.
struct Lock {
    owner: u32,
    depth: u32,
    /// Set if the instance ends when it is unlocked.
    stop: Option<Stop>,
    /// True if the instance ends. No thread can lock it any more.
    is_over: bool,
}

/// `PerfettoDsOnStopArgs`.
pub(super) struct StopArgs {
    pub(super) stop: Option<Stop>,
    pub(super) instance: *const Instance,
}

/// `PerfettoDsOnFlushArgs`.
pub(crate) struct FlushArgs {
    pub(crate) flush: Option<Flush>,
}

impl DataSource for Instance {
    /// The program gets the bytes of the config.
    type Config = ();
    type ThreadState = CustomState;
    type IncrementalState = IncrementalState;

    const STATE_IS_BOUND: bool = true;

    fn setup(setup: &Setup<'_, ()>) -> Self {
        let registered = REGISTERED.lock()[setup.tag()];
        #[expect(clippy::cast_possible_truncation, reason = "a data source has 8 slots")]
        let slot = setup.instance() as u32;
        let mut instance = Self {
            registered,
            slot,
            context: Argument(ptr::null_mut()),
            lock: Mutex::new(Lock { owner: 0, depth: 0, stop: None, is_over: false }),
            unlocked: Condvar::new(),
        };
        let settings = &registered.settings;
        if let Some(on_setup) = settings.on_setup {
            let config = setup.config_bytes();
            let (begin, len) = (config.as_ptr().cast(), config.len());
            // SAFETY: the contract of the callback. The config exists during the call.
            let context = unsafe { on_setup(registered.ds.0, slot, begin, len, settings.user_arg.0, ptr::null_mut()) };
            instance.context = Argument(context);
        }
        registered.is_enabled.store(true, Ordering::Release);
        instance
    }

    fn start(&self) {
        // Another instance that ended meanwhile may have cleared the flag.
        self.update_enabled();
        let settings = &self.registered.settings;
        if let Some(on_start) = settings.on_start {
            // SAFETY: the contract of the callback.
            unsafe {
                on_start(self.registered.ds.0, self.slot, settings.user_arg.0, self.context.0, ptr::null_mut());
            };
        }
    }

    fn stop(&self, stop: Stop) {
        let settings = &self.registered.settings;
        let mut args = StopArgs { stop: Some(stop), instance: self };
        if let Some(on_stop) = settings.on_stop {
            let pointer = (&raw mut args).cast();
            // SAFETY: the contract of the callback. The arguments exist during the call.
            unsafe { on_stop(self.registered.ds.0, self.slot, settings.user_arg.0, self.context.0, pointer) };
        }
        drop(args.stop.and_then(|stop| self.let_end(stop)));
    }

    fn ended(&self) {
        // Also if `stop` was not called, because tracing as a whole ends.
        self.locked().is_over = true;
        self.unlocked.notify_all();
        self.update_enabled();
    }

    fn clear_incremental_state(state: &mut IncrementalState) {
        state.clear_later();
    }
}

impl Instance {
    pub(super) fn flush(&self, flush: Flush) {
        let settings = &self.registered.settings;
        let mut args = FlushArgs { flush: Some(flush) };
        if let Some(on_flush) = settings.on_flush {
            let pointer = (&raw mut args).cast();
            // SAFETY: the contract of the callback. The arguments exist during the call.
            unsafe { on_flush(self.registered.ds.0, self.slot, settings.user_arg.0, self.context.0, pointer) };
        }
    }

    /// Tells the program whether there are instances that record. A thread that starts or stops one
    /// calls this afterwards.
    fn update_enabled(&self) {
        let Registered { source, is_enabled: flag, .. } = self.registered;
        loop {
            let is_enabled = source.recording() != 0;
            // Acquires the changes that the last thread has seen that did this. So of two threads,
            // the later one sees both changes.
            flag.swap(is_enabled, Ordering::AcqRel);
            if (source.recording() != 0) == is_enabled {
                return;
            }
        }
    }

    /// Lets the instance end: no thread can lock it any more, and it gets no more turns.
    ///
    /// Returns the stop if it must be completed now. If a thread has locked the instance, that
    /// thread completes the stop when it unlocks.
    #[must_use]
    pub(super) fn let_end(&self, stop: Stop) -> Option<Stop> {
        stop.close();
        self.update_enabled();
        let mut lock = self.locked();
        lock.is_over = true;
        let is_locked = lock.depth != 0;
        let complete = if is_locked {
            lock.stop = Some(stop);
            None
        } else {
            Some(stop)
        };
        drop(lock);
        self.unlocked.notify_all();
        complete
    }

    /// Locks the instance for this thread. Returns false if the instance has ended.
    pub(super) fn acquire(&self) -> bool {
        let tid = raw::tid();
        let lock = self.locked();
        let is_busy = |lock: &mut Lock| lock.depth != 0 && lock.owner != tid && !lock.is_over;
        let mut lock = self.unlocked.wait_while(lock, is_busy).unwrap_or_else(PoisonError::into_inner);
        if lock.is_over {
            return false;
        }
        lock.owner = tid;
        lock.depth += 1;
        true
    }

    /// Unlocks the instance. Returns the stop if it must be completed now.
    #[must_use]
    pub(super) fn release(&self) -> Option<Stop> {
        let mut lock = self.locked();
        lock.depth -= 1;
        if lock.depth != 0 {
            return None;
        }
        let stop = lock.stop.take();
        drop(lock);
        self.unlocked.notify_all();
        stop
    }

    fn locked(&self) -> MutexGuard<'_, Lock> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let settings = &self.registered.settings;
        if let Some(on_destroy) = settings.on_destroy {
            // SAFETY: the contract of the callback.
            unsafe { on_destroy(self.registered.ds.0, settings.user_arg.0, self.context.0) };
        }
    }
}

/// Switches all types off in the child of a fork, where no instance exists.
pub(super) fn forked() {
    for registered in REGISTERED.lock().iter() {
        registered.is_enabled.store(false, Ordering::Release);
    }
}
