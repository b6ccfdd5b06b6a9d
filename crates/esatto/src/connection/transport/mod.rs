//! A connection to one service: calls go out and replies come in, over a socket or inside of the process.

mod link;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
mod no_socket;
mod rpc;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod socket;
mod socket_request;

pub(crate) use link::{Link, LinkEvent};
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
pub(crate) use no_socket::SocketLink;
pub(crate) use rpc::{Call, Reply, SharedMemory};
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use socket::SocketLink;
pub(crate) use socket_request::SocketFactory;
pub use socket_request::SocketRequest;
