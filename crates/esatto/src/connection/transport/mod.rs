//! Connections to one service: they carry calls and replies over a socket or inside the process.

mod any_transport;
mod in_process_transport;
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
mod no_socket_transport;
mod rpc;
mod socket_place;
mod socket_request;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
mod socket_transport;

pub(crate) use any_transport::AnyTransport;
#[cfg(feature = "in-process")]
pub(super) use in_process_transport::Delivery;
pub(crate) use in_process_transport::{InProcess, InProcessService, InProcessTransport, Port};
#[cfg(any(not(any(target_os = "linux", target_os = "android")), esatto_portable))]
pub(crate) use no_socket_transport::SocketTransport;
pub(crate) use rpc::{CONSUMER_PORT, Call, PRODUCER_PORT, Reply, SharedMemory, TransportEvent, name_of};
pub(crate) use socket_place::SocketPlace;
pub(crate) use socket_request::SocketFactory;
pub use socket_request::SocketRequest;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use socket_transport::SocketTransport;
