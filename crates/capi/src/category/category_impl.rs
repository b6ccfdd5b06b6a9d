//! A category, and the callback that learns when it is switched.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use esatto::Category;
use esatto::raw::{self, Foreign, Role, StaticMutex};

use super::descriptor::Key;
use crate::abi::{TeCategoryImpl, TeOnCategory};
use crate::diagnostics;
use crate::ffi::Argument;

/// `PerfettoTeCategoryImpl`. Never freed, because threads may still read one that was destroyed.
#[derive(Debug)]
pub(crate) struct CategoryImpl {
    enabled: AtomicBool,
    role: Role,
    category: OnceLock<Category>,
    listener: Mutex<Listener>,
    /// The thread that runs the callback, or [`NO_CALLER`].
    caller: AtomicU32,
}

/// The callback of a category, and its knowledge.
#[derive(Debug, Default)]
struct Listener {
    callback: Option<(TeOnCategory, Argument)>,
    /// The instances in which the category is on, as far as the callback was told. One bit each.
    instances: u32,
}

/// Locked while a thread reads or changes a [`Listener`], but not during the callback, because that
/// may use the library.
static LISTENERS: StaticMutex<()> = StaticMutex::new(());

/// Notified when a callback has returned.
static RETURNED: Condvar = Condvar::new();

/// Value of [`CategoryImpl::caller`] while no callback runs.
const NO_CALLER: u32 = 0;

impl CategoryImpl {
    pub(super) fn make(role: Role, key: Key) -> &'static Self {
        let made: &'static Self = Box::leak(Box::new(Self {
            enabled: AtomicBool::new(false),
            role,
            category: OnceLock::new(),
            listener: Mutex::default(),
            caller: AtomicU32::new(NO_CALLER),
        }));
        let tags: Vec<&'static str> = key.tags.into_iter().map(|tag| &*tag.leak()).collect();
        let category =
            Category::foreign(key.name.leak(), made).with_description(key.description.leak()).with_tags(tags.leak());
        let _ = made.category.set(category);
        made
    }

    pub(crate) fn category(&'static self) -> &'static Category {
        self.category.get().expect("set when it was made")
    }

    /// Returns the instances that record it, for a trace point that found the flag set.
    pub(crate) fn reached(&'static self) -> u32 {
        let instances = self.category().instances();
        if instances == 0 {
            raw::reached_in_child(self.category());
        }
        instances
    }

    /// Returns the flag that trace points read.
    pub(super) const fn is_enabled(&self) -> &AtomicBool {
        &self.enabled
    }

    /// Returns true if `PerfettoTeCategoryImplCreate` has made it.
    pub(super) fn is_listed(&self) -> bool {
        self.role == Role::Listed
    }

    pub(super) const fn as_abi(&self) -> *const TeCategoryImpl {
        ptr::from_ref(self).cast()
    }

    /// Locks the listener. The caller holds [`LISTENERS`].
    fn listener(&self) -> MutexGuard<'_, Listener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the flag, and tells the callback about each change since the last call. If another
    /// thread is in the callback, that thread handles these changes afterwards.
    fn tell(&'static self) {
        let mut listeners = LISTENERS.lock();
        loop {
            let now = self.category().instances();
            self.enabled.store(now != 0, Ordering::Release);
            if self.caller.load(Ordering::Relaxed) != NO_CALLER {
                return;
            }
            let Some(Call { callback, argument, slot, is_on, is_global }) = self.listener().next(now) else { return };
            self.caller.store(raw::tid(), Ordering::Relaxed);
            drop(listeners);
            let running = Running(self);
            // SAFETY: the contract of the callback. Nothing is locked, and no second call for this
            // category runs meanwhile.
            unsafe { callback(self.as_abi(), slot, is_on, is_global, argument.0) };
            drop(running);
            listeners = LISTENERS.lock();
        }
    }

    /// Sets the callback. If the old one runs on another thread, waits until it has returned: it is
    /// never called after this.
    pub(super) fn set_callback(&'static self, callback: Option<(TeOnCategory, Argument)>) {
        let mut listeners = LISTENERS.lock();
        while self.caller.load(Ordering::Relaxed) != NO_CALLER {
            if self.caller.load(Ordering::Relaxed) == raw::tid() {
                drop(listeners);
                diagnostics::say("a category's callback cannot set another one");
                return;
            }
            listeners = listeners.wait(&RETURNED);
        }
        *self.listener() = Listener { callback, instances: 0 };
        drop(listeners);
        self.tell();
    }
}

/// Exists while a callback runs.
struct Running(&'static CategoryImpl);

impl Drop for Running {
    fn drop(&mut self) {
        let _listeners = LISTENERS.lock();
        self.0.caller.store(NO_CALLER, Ordering::Relaxed);
        RETURNED.notify_all();
    }
}

/// Arguments of the next call of a callback.
struct Call {
    callback: TeOnCategory,
    argument: Argument,
    slot: u32,
    is_on: bool,
    is_global: bool,
}

impl Listener {
    /// Returns the call for one of the differences to `now`, and counts that one as told.
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
        // The flag stays as it is until a trace point calls `reached_in_child`.
        // A caller on another thread does not exist in the child. The thread that forked has
        // returned from its callback or will, without another call.
        self.caller.store(NO_CALLER, Ordering::Relaxed);
        // No thread holds the lock, because this thread holds those that come before it.
        if let Ok(mut listener) = self.listener.try_lock() {
            listener.instances = 0;
        }
    }

    fn switch_off(&self) {
        self.enabled.store(false, Ordering::Release);
    }
}
