//! Sockets: non-blocking listeners and streams, descriptor passing and peer credentials.
//!
//! The only module of this crate with `unsafe`: rustix covers everything but a few corners of the
//! kernel's interface, the address of a vsock socket, peer credentials whose pid may be 0 (a
//! process of a pid namespace that we cannot see, which rustix's `Pid` cannot represent), and
//! descriptors of which only the number is known. Waiting for descriptors is here, too, because
//! rustix's takes long to compile. The cycle counter, which is an instruction, is here for the same
//! reason, and so is the signal that interrupts one thread.

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
