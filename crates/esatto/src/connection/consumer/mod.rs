//! Sessions that the program controls, as consumers of a service.

mod chunks;
mod protocol;
mod session_connection;

pub use chunks::Chunks;
pub(crate) use protocol::{Command as SessionCommand, SetUp, Sink as ReadSink};
pub(crate) use session_connection::{LiveSession, SessionConnection};
