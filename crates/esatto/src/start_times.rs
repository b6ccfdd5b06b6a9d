//! Times at which this process began to connect and could begin to record, and a session began to
//! record it. They are in the trace, so that its reader sees which events are missing.

use core::sync::atomic::{AtomicU64, Ordering};

use esatto_protozero::Message;
use esatto_schema::{BuiltinClock, START_TIMES_FIELD, start_times};

use crate::clock;

/// When the program first connected to the system's service; 0: never.
static CONNECTED: AtomicU64 = AtomicU64::new(0);
/// When [`Builder::start`](crate::Builder::start), or a wait after it, returned to the program.
static READY: AtomicU64 = AtomicU64::new(0);

/// Returns the time as in these statics.
pub(crate) fn now() -> u64 {
    clock::now_ns().max(1)
}

/// Notes that the program connects to the system's service.
pub(crate) fn connecting() {
    let _ = CONNECTED.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Notes that the program is about to record.
pub(crate) fn ready() {
    let _ = READY.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Notes that the program has waited for a session before it records.
pub(crate) fn waited() {
    READY.store(now(), Ordering::Relaxed);
}

/// Forgets all times: in the child of a fork, which connects by itself, and at the end of tracing.
pub(crate) fn forget() {
    CONNECTED.store(0, Ordering::Relaxed);
    READY.store(0, Ordering::Relaxed);
}

/// Adds the times to the descriptor of the process. `enabled` is when the session began to record.
pub(crate) fn write(enabled: u64, descriptor: &mut Message<'_>) {
    let connected = CONNECTED.load(Ordering::Relaxed);
    if connected == 0 || clock::trace_clock_id() != BuiltinClock::BUILTIN_CLOCK_BOOTTIME.0 as u32 {
        return;
    }
    let mut times = descriptor.begin(START_TIMES_FIELD);
    times.varint(start_times::CONNECTED_NS, connected);
    for (field, ns) in [(start_times::READY_NS, READY.load(Ordering::Relaxed)), (start_times::ENABLED_NS, enabled)] {
        if ns != 0 {
            times.varint(field, ns);
        }
    }
}
