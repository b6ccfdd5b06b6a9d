//! Connecting to services (`docs/spec/c-abi.md` §4).

use core::ffi::c_char;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use esatto::raw::{self, StaticMutex};
use esatto::{Builder, Tracing};

use crate::guard::guard;
use crate::tracer::Tracer;
use crate::{data_source, text};

/// `PerfettoProducerBackendInitArgs`.
#[derive(Default)]
pub(crate) struct InitArgs {
    shmem_size_hint_kb: u32,
    machine_id: u32,
}

/// Never dropped: what is left at the end of the process is handed over by the SDK.
static TRACING: StaticMutex<Option<Tracing>> = StaticMutex::new(None);

/// In the child of a fork, where tracing is off: what is the library's is, too.
fn forked() {
    Tracer::forked();
    data_source::forked();
}

/// A backend was initialised, in this process or in that which forked it.
static IS_INITIALISED: AtomicBool = AtomicBool::new(false);

/// Ends the process unless a backend was initialised. In the child of a fork, where none is any more, there is nothing to record, but no reason to end it either.
pub(crate) fn require_init(what: &str) {
    if !IS_INITIALISED.load(Ordering::Relaxed) {
        text::die(format_args!("{what} needs PerfettoProducerInProcessInit or PerfettoProducerSystemInit before"));
    }
}

fn init(args: *const InitArgs, backend: impl FnOnce(Builder) -> Builder) {
    // SAFETY: the contract: from create, and not destroyed; null means defaults.
    let size_kb = unsafe { args.as_ref() }.map_or(0, |args| args.shmem_size_hint_kb);
    raw::in_child(forked);
    // Also if it fails: the program has done what it can.
    IS_INITIALISED.store(true, Ordering::Relaxed);
    match backend(Tracing::builder().shared_memory(size_kb, 0)).start() {
        Ok(tracing) => core::mem::forget(TRACING.lock().replace(tracing)),
        Err(error) => text::say(error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoProducerBackendInitArgsCreate() -> *mut InitArgs {
    guard(|| Box::into_raw(Box::default()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerBackendInitArgsSetShmemSizeHintKb(args: *mut InitArgs, size: u32) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(args) = unsafe { args.as_mut() } {
            args.shmem_size_hint_kb = size;
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerBackendInitArgsSetMachineId(args: *mut InitArgs, machine_id: u32) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(args) = unsafe { args.as_mut() } {
            args.machine_id = machine_id;
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerBackendInitArgsDestroy(args: *mut InitArgs) {
    guard(|| {
        if !args.is_null() {
            // SAFETY: the contract: from create, and not destroyed.
            drop(unsafe { Box::from_raw(args) });
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerInProcessInit(args: *const InitArgs) {
    guard(|| {
        // SAFETY: as in `init`.
        if let Some(args) = unsafe { args.as_ref() } {
            raw::set_machine_id(args.machine_id);
        }
        init(args, Builder::in_process);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerSystemInit(args: *const InitArgs) {
    guard(|| {
        init(args, Builder::system);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerActivateTriggers(trigger_names: *const *const c_char, ttl_ms: u32) {
    guard(|| {
        require_init("PerfettoProducerActivateTriggers");
        // SAFETY: the contract: an array of strings that ends with null.
        let names = unsafe { text::pointers(trigger_names) };
        // SAFETY: as above.
        let names: Vec<String> = names.map(|name| unsafe { text::owned(name) }).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        if let Some(tracing) = &*TRACING.lock() {
            tracing.activate_triggers(&names, Duration::from_millis(ttl_ms.into()));
        }
    })
}
