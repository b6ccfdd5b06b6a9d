//! Connections to services, and the thread that owns them.

pub(crate) mod consumer;
#[cfg(feature = "in-process")]
mod in_process;
mod mailbox;
mod pause;
pub(crate) mod pending_operation;
pub(crate) mod producer;
mod reclaiming;
mod service_address;
mod thread;
mod thread_handle;
pub(crate) mod transport;
mod wait_group;
mod wakeups;

pub(crate) use consumer::{LiveSession, ReadSink, SessionCommand, SessionConnection, SetUp};
#[cfg(feature = "in-process")]
pub(crate) use in_process::set_machine_id;
pub(crate) use pause::Pause;
pub(crate) use producer::{Identity, StartupId, StartupRequest, startups};
pub(crate) use service_address::Place;
pub(crate) use thread::{Command, SessionId};
pub(crate) use thread_handle::{Handle, deliver_socket, forget_thread, handle, pause, start, stop};
pub use transport::SocketRequest;
pub(crate) use transport::{SocketFactory, SocketPlace};
pub(crate) use wait_group::answers;
pub(crate) use wakeups::COLLECTION_INTERVAL;
