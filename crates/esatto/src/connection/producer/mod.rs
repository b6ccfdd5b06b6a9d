//! Connections to services as a producer: the protocol, the instances that a service wants, and the
//! renewal of lost connections.

mod commit_schedule;
mod flushes;
mod losses;
mod memory;
mod protocol;
mod reconnect;
mod service_instances;
mod startup_instances;
mod triggers;

pub use losses::{Losses, losses};
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub use protocol::Event;
pub(crate) use protocol::Identity;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) use protocol::{Endpoint, Tag};
pub(super) use reconnect::ReconnectingProducer;
pub(crate) use service_instances::Unreached;
pub(crate) use startup_instances::{StartupId, StartupRequest, startups};
