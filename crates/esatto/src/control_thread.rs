//! Entry points of the control thread for the rooms below `connection`.

use std::sync::OnceLock;
use std::time::Duration;

/// The functions of the entry points. `connection` sets them when it starts the control thread for
/// the first time.
pub(crate) struct Entry {
    pub(crate) is_current: fn() -> bool,
    pub(crate) wake: fn(),
    pub(crate) run: fn(Box<dyn FnOnce() + Send>),
    pub(crate) await_services: fn(Duration) -> Option<bool>,
}

static ENTRY: OnceLock<Entry> = OnceLock::new();

/// Sets the functions. Only the first call has an effect.
pub(crate) fn set_entry(entry: Entry) {
    let _ = ENTRY.set(entry);
}

/// Returns whether the caller is the control thread, which must not wait for itself.
pub(crate) fn is_current() -> bool {
    ENTRY.get().is_some_and(|entry| (entry.is_current)())
}

/// Wakes the control thread, if it runs. It then tells the services which categories and data
/// sources have changed.
pub(crate) fn wake() {
    if let Some(entry) = ENTRY.get() {
        (entry.wake)();
    }
}

/// Calls a function on the control thread, or on this thread if there is no control thread.
pub(crate) fn run(function: Box<dyn FnOnce() + Send>) {
    match ENTRY.get() {
        Some(entry) => (entry.run)(function),
        None => function(),
    }
}

/// Tells the system's services which data sources there are, and waits until the instances that
/// they want at present have started. Returns whether a service has answered, or will not: it
/// refuses this process. `None`: the time is over first.
pub(crate) fn await_services(timeout: Duration) -> Option<bool> {
    let entry = ENTRY.get().filter(|_| !is_current())?;
    (entry.await_services)(timeout)
}
