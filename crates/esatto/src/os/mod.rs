//! What differs between operating systems, and nothing else.
//!
//! Linux and Android have everything. Elsewhere there is the service inside the process only: what would be a connection to another process is
//! a type without values, so the rest of the crate needs no conditions.
//!
//! | item | what it is |
//! | --- | --- |
//! | `Address`, `AddressError`, `TransportError`, `SocketTransport` | a connection to another process |
//! | `OwnedFd` | an open file that travels along with a call |
//! | `ForeignFd` | an open file that a service passed |
//! | `Shared`, `create_shared`, `descriptor`, `map_shared` | memory that another process can map |
//! | `Waker`, `Interest`, `wait` | what the control thread sleeps on |
//! | `DirectoryWatch` | notices a socket file that appears |
//! | `ClockId`, `read_clock` | clocks of the system, in nanoseconds |
//! | `tid`, `uid` | who the kernel takes us for |
//! | `to_path`, `read_at`, `reopen` | files |

#![allow(unsafe_code)]

pub(crate) mod cpu_counter;
pub(crate) mod exit;
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
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
mod portable;
pub(crate) mod process_info;
mod signals;
mod threads;

#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use linux::*;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
pub(crate) use portable::*;
pub(crate) use threads::{block_signals, spawn};
