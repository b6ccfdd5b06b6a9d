//! System calls: non-blocking sockets, descriptor passing, peer credentials, and waiting.
//!
//! This is the only module of the crate with `unsafe`. rustix covers everything except three
//! things: the address of a vsock socket, peer credentials whose pid may be 0, and descriptors of
//! which only the number is known. (The pid is 0 for a process of an invisible pid namespace, which
//! rustix's `Pid` cannot represent.) Waiting for descriptors is here because rustix's version takes
//! long to compile. The cycle counter is here because it is an instruction. The signal that
//! interrupts one thread is also here.

#![allow(unsafe_code)]

mod connect_attempt;
mod credentials;
mod cycle_counter;
#[cfg(feature = "host")]
mod inherited_fd;
#[cfg(feature = "host")]
mod listener;
mod poll;
mod socket;
mod stream;
#[cfg(feature = "host")]
mod thread_interrupt;
mod vsock;
#[cfg(feature = "rpc")]
mod wake_fd;

pub use self::connect_attempt::ConnectAttempt;
pub use self::credentials::Credentials;
pub(crate) use self::credentials::own_users;
pub use self::cycle_counter::cycles;
#[cfg(feature = "host")]
pub use self::inherited_fd::inherited;
#[cfg(feature = "host")]
pub use self::listener::Listener;
pub use self::poll::{PollFd, poll};
pub use self::stream::{Received, Stream};
#[cfg(feature = "host")]
pub use self::thread_interrupt::{ThreadId, current_thread, interrupt};
#[cfg(feature = "rpc")]
pub use self::wake_fd::WakeFd;
