//! The life of an instance.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::Ordering;
use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use esatto::data_source::FlushReason;
use esatto::{DataSource, Flush, Setup, Stop, raw};

use super::state::{CustomState, IncrementalState};
use super::{DataSourceType, Registered, TYPES};
use crate::guard::guard;
use crate::tracer::Argument;

/// One instance of a type, with the context that the program has made for it.
pub(crate) struct Instance {
    ds: &'static DataSourceType,
    slot: u32,
    context: Argument,
    lock: Mutex<Lock>,
    unlocked: Condvar,
}

/// A lock that a thread may take several times, and others wait for.
struct Lock {
    owner: u32,
    depth: u32,
    /// The instance ends when it is unlocked.
    stop: Option<Stop>,
    /// It ends: nobody can lock it any more.
    is_over: bool,
}

impl DataSource for Instance {
    /// The bytes.
    type Config = ();
    type ThreadState = CustomState;
    type IncrementalState = IncrementalState;

    const STATE_IS_BOUND: bool = true;

    fn setup(setup: &Setup<'_, ()>) -> Self {
        let ds = TYPES.lock()[setup.tag()];
        let slot = setup.instance() as u32;
        let mut instance = Self {
            ds,
            slot,
            context: Argument(ptr::null_mut()),
            lock: Mutex::new(Lock { owner: 0, depth: 0, stop: None, is_over: false }),
            unlocked: Condvar::new(),
        };
        let settings = &instance.registered().settings;
        if let Some(on_setup) = settings.on_setup {
            let config = setup.config_bytes();
            // SAFETY: the contract of the callback; the config is there during the call.
            let context = unsafe {
                on_setup(ds, slot, config.as_ptr().cast(), config.len(), settings.user_arg.0, ptr::null_mut())
            };
            instance.context = Argument(context);
        }
        ds.enabled.store(true, Ordering::Release);
        instance
    }

    fn start(&self) {
        // Another instance that ended meanwhile may have cleared it.
        self.update_enabled();
        let settings = &self.registered().settings;
        if let Some(on_start) = settings.on_start {
            // SAFETY: the contract of the callback.
            unsafe { on_start(self.ds, self.slot, settings.user_arg.0, self.context.0, ptr::null_mut()) };
        }
    }

    fn stop(&self, stop: Stop) {
        let settings = &self.registered().settings;
        let mut args = OnStopArgs { stop: Some(stop), instance: self };
        if let Some(on_stop) = settings.on_stop {
            // SAFETY: the contract of the callback; the arguments are there during the call.
            unsafe { on_stop(self.ds, self.slot, settings.user_arg.0, self.context.0, &raw mut args) };
        }
        drop(args.stop.and_then(|stop| self.let_end(stop)));
    }

    fn ended(&self) {
        // Also where nobody was asked, because tracing ends as a whole.
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
        let settings = &self.registered().settings;
        let mut args = OnFlushArgs { flush: Some(flush) };
        if let Some(on_flush) = settings.on_flush {
            // SAFETY: the contract of the callback; the arguments are there during the call.
            unsafe { on_flush(self.ds, self.slot, settings.user_arg.0, self.context.0, &raw mut args) };
        }
    }

    fn registered(&self) -> &'static Registered {
        self.ds.registered.get().expect("only registered types have instances")
    }

    /// Tells the program whether there are instances that record. Whoever starts or stops one calls
    /// this afterwards, on any thread.
    fn update_enabled(&self) {
        let source = self.registered().source;
        loop {
            let is_enabled = source.recording() != 0;
            // Acquires what the last thread that did this had seen. So of two threads, the later
            // one sees both changes.
            self.ds.enabled.swap(is_enabled, Ordering::AcqRel);
            if (source.recording() != 0) == is_enabled {
                return;
            }
        }
    }

    /// The instance ends: nobody can lock it any more, and it has no more turns. Returns what has
    /// to be completed now. If a thread has it locked, that thread completes the stop when it
    /// unlocks.
    #[must_use]
    fn let_end(&self, stop: Stop) -> Option<Stop> {
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

    /// Locks. `false`: the instance has ended.
    fn acquire(&self) -> bool {
        let tid = raw::tid();
        let lock = self.locked();
        let others = |lock: &mut Lock| lock.depth != 0 && lock.owner != tid && !lock.is_over;
        let mut lock = self.unlocked.wait_while(lock, others).unwrap_or_else(PoisonError::into_inner);
        if lock.is_over {
            return false;
        }
        lock.owner = tid;
        lock.depth += 1;
        true
    }

    /// Unlocks, and returns what has to be completed now.
    #[must_use]
    fn release(&self) -> Option<Stop> {
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
        let settings = &self.registered().settings;
        if let Some(on_destroy) = settings.on_destroy {
            // SAFETY: the contract of the callback.
            unsafe { on_destroy(self.ds, settings.user_arg.0, self.context.0) };
        }
    }
}

/// `PerfettoDsOnStopArgs`.
pub(crate) struct OnStopArgs {
    stop: Option<Stop>,
    instance: *const Instance,
}

/// `PerfettoDsAsyncStopper`.
pub(crate) struct AsyncStopper {
    stop: Stop,
    instance: Arc<Instance>,
    process: u32,
}

/// `PerfettoDsOnFlushArgs`.
pub(crate) struct OnFlushArgs {
    flush: Option<Flush>,
}

impl OnFlushArgs {
    /// Why the flush is asked for; for v59.
    #[allow(dead_code, reason = "not in v58")]
    pub(crate) fn reason(&self) -> u64 {
        self.flush.as_ref().map_or(0, |flush| match flush.reason() {
            FlushReason::Periodic => 1,
            FlushReason::TraceStop => 2,
            FlushReason::TraceClone => 3,
            FlushReason::Explicit => 4,
            _ => 0,
        })
    }
}

/// `PerfettoDsAsyncFlusher`.
pub(crate) struct AsyncFlusher(Flush);

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnStopArgsPostpone(args: *mut OnStopArgs) -> *mut AsyncStopper {
    guard(|| {
        // SAFETY: the contract: in the callback that has them.
        let Some(args) = (unsafe { args.as_mut() }) else { return ptr::null_mut() };
        // SAFETY: as above: the instance is calling.
        let instance = unsafe { &*args.instance };
        let shared = instance.registered().source.instance(instance.slot as usize);
        match (shared, args.stop.take()) {
            (Some(instance), Some(stop)) => {
                Box::into_raw(Box::new(AsyncStopper { stop, instance, process: raw::forks() }))
            }
            (_, stop) => {
                args.stop = stop;
                ptr::null_mut()
            }
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsStopDone(stopper: *mut AsyncStopper) {
    guard(|| {
        if !stopper.is_null() {
            // SAFETY: the contract: from postpone, and this is the first time.
            let stopper = unsafe { Box::from_raw(stopper) };
            if stopper.process != raw::forks() {
                // Of the parent's, whose other threads may have it locked for ever.
                core::mem::forget(stopper);
                return;
            }
            let AsyncStopper { stop, instance, .. } = *stopper;
            let stop = instance.let_end(stop);
            // First: so it is the control thread that destroys the instance, before it tells the session.
            drop(instance);
            drop(stop);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsOnFlushArgsPostpone(args: *mut OnFlushArgs) -> *mut AsyncFlusher {
    guard(|| {
        // SAFETY: the contract: in the callback that has them.
        let flush = unsafe { args.as_mut() }.and_then(|args| args.flush.take());
        flush.map_or(ptr::null_mut(), |flush| Box::into_raw(Box::new(AsyncFlusher(flush))))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsFlushDone(flusher: *mut AsyncFlusher) {
    guard(|| {
        if !flusher.is_null() {
            // SAFETY: the contract: from postpone, and this is the first time.
            unsafe { Box::from_raw(flusher) }.0.complete();
        }
    })
}

thread_local! {
    /// What this thread has locked.
    static LOCKED: RefCell<Vec<Hold>> = const { RefCell::new(Vec::new()) };
}

/// Has an instance locked; a thread that ends lets go of all.
struct Hold(Option<Arc<Instance>>);

impl Hold {
    fn is_of(&self, ds: *const DataSourceType, slot: u32) -> bool {
        self.0.as_ref().is_some_and(|instance| ptr::eq(instance.ds, ds) && instance.slot == slot)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let stop = self.0.as_ref().and_then(|instance| instance.release());
        // First: see `PerfettoDsStopDone`.
        drop(self.0.take());
        drop(stop);
    }
}

/// In the child of a fork, of the thread that forked: what it has locked is the parent's.
pub(super) fn forked() {
    let _ = LOCKED
        .try_with(|locked| locked.try_borrow_mut().map(|mut locked| core::mem::forget(core::mem::take(&mut *locked))));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplGetInstanceLocked(ds_impl: *const DataSourceType, inst_id: u32) -> *mut c_void {
    guard(|| {
        // SAFETY: the contract: from create, and registration has not failed.
        let registered = unsafe { ds_impl.as_ref() }.and_then(|ds| ds.registered.get());
        let Some(instance) = registered.and_then(|registered| registered.source.instance(inst_id as usize)) else {
            return ptr::null_mut();
        };
        let context = instance.context.0;
        if context.is_null() || !instance.acquire() {
            return ptr::null_mut();
        }
        let hold = Hold(Some(instance));
        // Otherwise this thread ends, and lets go at once.
        let is_kept = LOCKED.try_with(|locked| locked.try_borrow_mut().map(|mut locked| locked.push(hold)).is_ok());
        if is_kept == Ok(true) { context } else { ptr::null_mut() }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplReleaseInstanceLocked(ds_impl: *const DataSourceType, inst_id: u32) {
    guard(|| {
        let hold = LOCKED.try_with(|locked| {
            let mut locked = locked.borrow_mut();
            locked.iter().rposition(|hold| hold.is_of(ds_impl, inst_id)).map(|at| locked.remove(at))
        });
        // Not while the list is borrowed: it may destroy the instance, which calls the program.
        drop(hold);
    });
}
