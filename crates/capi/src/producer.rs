//! Connections to services (`docs/spec/c-abi.md` §4).

use core::mem;
use core::time::Duration;

use esatto::raw::{self, StaticMutex};
use esatto::{Builder, Tracing};

use crate::ffi::{Array, Mut, Owned, Ref, Str};
use crate::initialised::{require_initialised, set_initialised};
use crate::panic_guard::guard_uncancelled;
use crate::tracer::Tracer;
use crate::{data_source, diagnostics};

/// `PerfettoProducerBackendInitArgs`.
#[derive(Default)]
struct InitArgs {
    shmem_size_hint_kb: u32,
    machine_id: u32,
}

/// The first one; all are alike. Never dropped, because the SDK hands over the last events itself
/// when the process ends.
static TRACING: StaticMutex<Option<&'static Tracing>> = StaticMutex::new(None);

/// Switches the library off in the child of a fork, where tracing is off.
fn forked() {
    Tracer::forked();
    data_source::forked();
}

fn init(args: Ref<'_, InitArgs>, backend: impl FnOnce(Builder) -> Builder) {
    let size_kb = args.get().map_or(0, |args| args.shmem_size_hint_kb);
    raw::in_child(forked);
    // Also if the start fails below, because the program has done its part.
    set_initialised();
    match backend(Tracing::builder().shared_memory(size_kb, 0)).start() {
        Ok(tracing) => match &mut *TRACING.lock() {
            Some(_) => mem::forget(tracing),
            first => *first = Some(Box::leak(Box::new(tracing))),
        },
        Err(error) => diagnostics::say(error),
    }
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoProducerBackendInitArgsCreate() -> Owned<InitArgs> {
    guard_uncancelled(|| Owned::new(InitArgs::default()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerBackendInitArgsSetShmemSizeHintKb(args: Mut<'_, InitArgs>, size: u32) {
    guard_uncancelled(|| {
        if let Some(args) = args.get() {
            args.shmem_size_hint_kb = size;
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerBackendInitArgsSetMachineId(args: Mut<'_, InitArgs>, machine_id: u32) {
    guard_uncancelled(|| {
        if let Some(args) = args.get() {
            args.machine_id = machine_id;
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerBackendInitArgsDestroy(args: Owned<InitArgs>) {
    guard_uncancelled(|| drop(args.take()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerInProcessInit(args: Ref<'_, InitArgs>) {
    guard_uncancelled(|| {
        if let Some(args) = args.get() {
            raw::set_machine_id(args.machine_id);
        }
        init(args, Builder::in_process);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerSystemInit(args: Ref<'_, InitArgs>) {
    guard_uncancelled(|| {
        init(args, Builder::system);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoProducerActivateTriggers(trigger_names: Array<'_, Str<'_>>, ttl_ms: u32) {
    guard_uncancelled(|| {
        require_initialised("PerfettoProducerActivateTriggers");
        let names: Vec<String> = trigger_names.iter().map(Str::to_string_lossy).collect();
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        // Without the lock: the call waits for the control thread, which may be here, too.
        let tracing = *TRACING.lock();
        if let Some(tracing) = tracing {
            tracing.activate_triggers(&names, Duration::from_millis(ttl_ms.into()));
        }
    })
}
