//! What can go wrong.

use core::fmt;
use std::io;

use esatto_ipc::AddressError;

/// Why something could not be set up, or how a session failed.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Address(AddressError),
    Thread(io::Error),
    Session(String),
    Disconnected(String),
    TimedOut(&'static str),
    DataSource { name: &'static str, why: &'static str },
    Startup(&'static str),
}

impl Error {
    pub(crate) const fn address(error: AddressError) -> Self {
        Self { kind: Kind::Address(error) }
    }

    pub(crate) const fn thread(error: io::Error) -> Self {
        Self { kind: Kind::Thread(error) }
    }

    pub(crate) const fn session(why: String) -> Self {
        Self { kind: Kind::Session(why) }
    }

    pub(crate) const fn disconnected(why: String) -> Self {
        Self { kind: Kind::Disconnected(why) }
    }

    pub(crate) const fn timed_out(what: &'static str) -> Self {
        Self { kind: Kind::TimedOut(what) }
    }

    pub(crate) const fn data_source(name: &'static str, why: &'static str) -> Self {
        Self { kind: Kind::DataSource { name, why } }
    }

    pub(crate) const fn startup(why: &'static str) -> Self {
        Self { kind: Kind::Startup(why) }
    }

    /// True if the service could not be reached or went away.
    #[must_use]
    pub const fn is_disconnected(&self) -> bool {
        matches!(self.kind, Kind::Disconnected(_))
    }

    /// True if the service did not answer in time.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        matches!(self.kind, Kind::TimedOut(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Address(error) => write!(f, "cannot use the address of the tracing service: {error}"),
            Kind::Thread(error) => write!(f, "cannot start the control thread: {error}"),
            Kind::Session(why) => write!(f, "the tracing session failed: {why}"),
            Kind::Disconnected(why) => write!(f, "no connection to the tracing service: {why}"),
            Kind::TimedOut(what) => write!(f, "the tracing service did not {what} in time"),
            Kind::DataSource { name, why } => write!(f, "the data source `{name}` {why}"),
            Kind::Startup(why) => write!(f, "startup tracing {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Address(error) => Some(error),
            Kind::Thread(error) => Some(error),
            Kind::Session(_)
            | Kind::Disconnected(_)
            | Kind::TimedOut(_)
            | Kind::DataSource { .. }
            | Kind::Startup(_) => None,
        }
    }
}
