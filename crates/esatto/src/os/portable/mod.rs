//! Systems where only the service inside the process is supported: everything with the standard
//! library.

mod address;
pub(crate) mod at_fork;
pub(crate) mod connect_error;
#[cfg(feature = "in-process")]
mod files;
mod wait;

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use std::fs::File;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use esatto_shm::{Memory, PrivateRegion};

pub(crate) use address::{Address, AddressError, CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME, TransportError};
#[cfg(feature = "in-process")]
pub(crate) use files::{READS_BESIDE_WRITES, read_at, reader, to_path};
pub(crate) use wait::{DirectoryWatch, Interest, Waker, wait};

/// An open file.
pub(crate) type OwnedFd = File;

/// An open file of another process, which does not exist here.
pub(crate) type ForeignFd = Address;

/// Memory that no other process can map.
pub(crate) type Shared = PrivateRegion;

const NO_SHARING: &str = "memory cannot be shared with other processes on this system";

pub(crate) fn create_shared(_: usize) -> Result<Arc<Shared>, String> {
    Err(NO_SHARING.to_owned())
}

pub(crate) const fn descriptor(_: &Shared) -> Option<OwnedFd> {
    None
}

pub(crate) fn map_shared(_: ForeignFd, _: bool) -> Result<Arc<dyn Memory>, String> {
    Err(NO_SHARING.to_owned())
}

/// The clocks of Linux. Here all clocks that only run forward are the same one, and the run time of
/// threads is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "not every set of features reads them all")]
pub(crate) enum ClockId {
    Boottime,
    Monotonic,
    MonotonicCoarse,
    MonotonicRaw,
    Realtime,
    RealtimeCoarse,
    ThreadCPUTime,
}

pub(crate) fn read_clock(clock: ClockId) -> u64 {
    match clock {
        ClockId::Realtime | ClockId::RealtimeCoarse => since_epoch_ns(),
        ClockId::ThreadCPUTime => 0,
        _ => {
            // An `Instant` has no number. The first one gets that of the wall clock, so that traces
            // of several programs are roughly aligned.
            static ANCHOR: OnceLock<(Instant, u64)> = OnceLock::new();
            let (start, start_ns) = *ANCHOR.get_or_init(|| (Instant::now(), since_epoch_ns()));
            start_ns.saturating_add(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
        }
    }
}

fn since_epoch_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns nothing: only the standard library's source of random numbers is known here.
pub(crate) const fn system_random() -> Option<u64> {
    None
}

/// Returns a number of the calling thread that no other thread of this process has or had.
pub(crate) fn tid() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static TID: Cell<u32> = const { Cell::new(0) };
    }
    TID.with(|tid| {
        if tid.get() == 0 {
            // The first thread that asks is usually the main one, which on Linux has the number of
            // the process.
            tid.set(std::process::id().wrapping_add(LAST.fetch_add(1, Ordering::Relaxed)).max(1));
        }
        tid.get()
    })
}

#[cfg(feature = "in-process")]
pub(crate) const fn uid() -> i32 {
    0
}
