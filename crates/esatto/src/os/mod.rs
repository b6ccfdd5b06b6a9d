//! The operating system: everything that differs between systems, and all unsafe code of the crate.
//!
//! Linux and Android support everything. On other systems there is only the service inside the
//! process. A connection to another process is then a type without values, so that the rest of the
//! crate needs no conditions.
//!
//! | item | what it is |
//! | --- | --- |
//! | `Address`, `PRODUCER_SOCK_NAME`, `CONSUMER_SOCK_NAME` | addresses of services, and the variables that name them |
//! | `TransportError`, `connect_error` | why a connection fails or ends |
//! | `OwnedFd` | an open file that is sent with a call |
//! | `ForeignFd` | an open file that a service passed |
//! | `Shared`, `create_shared`, `descriptor`, `map_shared` | memory that another process can map |
//! | `Waker`, `Interest`, `wait` | what the control thread sleeps on |
//! | `DirectoryWatch` | notices a socket file that appears |
//! | `ClockId`, `read_clock`, `cpu_counter` | clocks of the system, in nanoseconds, and the processor's counter |
//! | `random` | numbers that children of a fork do not repeat |
//! | `tid`, `uid`, `process_info` | ids and names of the process, its threads and its user |
//! | `to_path`, `read_at`, `reader`, `file_id`, `file_lock` | files |
//! | `fork`, `exit`, `signals`, `block_signals`, `spawn` | forks, the end of the process, signals, threads |

#![allow(unsafe_code)]

pub(crate) mod cpu_counter;
pub(crate) mod exit;
pub(crate) mod file_id;
#[cfg(feature = "in-process")]
pub(crate) mod file_lock;
pub(crate) mod fork;
#[cfg(any(target_os = "linux", target_os = "android"))]
#[cfg_attr(
    any(esatto_portable, not(feature = "in-process")),
    allow(dead_code, reason = "what only some of it asks for")
)]
pub(crate) mod kernel;
pub(crate) mod leaked;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod linux;
mod memory_file;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
mod portable;
pub(crate) mod process_info;
#[cfg(unix)]
pub(crate) mod signals;
mod threads;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use linux::*;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
pub(crate) use portable::*;
pub(crate) use threads::{block_signals, spawn};

/// Returns a number of the system's random source. If that has none, the number is made of the
/// process, the time and [`random`](crate::random::random), which the child of a fork repeats.
pub(crate) fn random() -> u64 {
    system_random().unwrap_or_else(|| {
        let time = read_clock(ClockId::Realtime);
        crate::random::random() ^ time.rotate_left(32) ^ u64::from(std::process::id())
    })
}
