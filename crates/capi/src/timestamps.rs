//! The clock of the trace, for programs that encode timestamps (`docs/spec/c-abi.md` §§5, 10).

use esatto::raw;

use crate::abi::Timestamp;
use crate::panic_guard::{Fallback, guard};

impl Fallback for Timestamp {
    const FALLBACK: Self = Self { clock_id: 0, value: 0 };
}

fn now() -> Timestamp {
    Timestamp { clock_id: raw::clock_id(), value: esatto::now_ns() }
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoDsGetDefaultClockId() -> u32 {
    guard(raw::clock_id)
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoDsGetTimestamp() -> Timestamp {
    guard(now)
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTeGetTimestamp() -> Timestamp {
    guard(now)
}
