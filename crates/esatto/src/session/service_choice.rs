//! The service in which a session runs, and the program's policy for sessions.

use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

use crate::backend::Backend;
use crate::connection::{Place, SocketPlace};
#[cfg(feature = "in-process")]
use crate::diagnostics;
use crate::error::Error;
use crate::os::{Address, CONSUMER_SOCK_NAME};

impl Backend {
    /// Returns where the service is. The inner result is the error with which the session fails if
    /// it may not or cannot run.
    pub(super) fn place(&self) -> Result<Result<Place, Error>, Error> {
        if !policy_allows(self) {
            return Ok(Err(Error::disconnected("the program does not allow this session")));
        }
        let place = match self {
            Self::System => Address::consumer_default()
                .map(|address| SocketPlace::standard(address, CONSUMER_SOCK_NAME))
                .map(Place::Socket)
                .map_err(Error::address)?,
            Self::Socket(address) => {
                Address::parse(address).map(SocketPlace::named).map(Place::Socket).map_err(Error::address)?
            }
            #[cfg(feature = "in-process")]
            Self::InProcess => Place::here(),
            Self::Any => match Self::first_connected() {
                Some(backend) => return backend.place(),
                None => return Ok(Err(Error::disconnected("this process is not connected to any service"))),
            },
        };
        Ok(Ok(place))
    }

    /// Returns whether sessions of this backend now run in the service inside this process.
    #[cfg(feature = "in-process")]
    pub(super) fn is_in_process(&self) -> bool {
        match self {
            Self::Any => Self::first_connected().is_some_and(|backend| backend == Self::InProcess),
            backend => *backend == Self::InProcess,
        }
    }

    fn first_connected() -> Option<Self> {
        let connected = CONNECTED.load(Ordering::Acquire);
        if connected & (SYSTEM | NO_SYSTEM_SESSIONS) == SYSTEM {
            return Some(Self::System);
        }
        #[cfg(feature = "in-process")]
        if connected & IN_PROCESS != 0 {
            return Some(Self::InProcess);
        }
        None
    }
}

/// Bits: the services to which this process is connected as a producer.
static CONNECTED: AtomicU8 = AtomicU8::new(0);
pub(crate) const SYSTEM: u8 = 1;
#[cfg(feature = "in-process")]
pub(crate) const IN_PROCESS: u8 = 2;
/// [`Backend::Any`] excludes the system's service.
pub(crate) const NO_SYSTEM_SESSIONS: u8 = 4;

pub(crate) fn connected(bits: u8) {
    CONNECTED.fetch_or(bits, Ordering::AcqRel);
}

/// Returns whether this process is connected to a service as a producer.
pub(crate) fn is_connected() -> bool {
    CONNECTED.load(Ordering::Acquire) & !NO_SYSTEM_SESSIONS != 0
}

/// Reports, once, if a session inside this process stops that could not record anything because
/// nothing was connected to its service.
#[cfg(feature = "in-process")]
pub(super) fn notice_if_unconnected(backend: &Backend) {
    if *backend == Backend::InProcess && CONNECTED.load(Ordering::Acquire) & IN_PROCESS == 0 {
        let what = "a session inside this process has recorded nothing";
        diagnostics::say_once(format!("{what}: call `Tracing::builder().in_process().start()` first"));
    }
}

/// A function of the program that decides whether a session may run.
pub(crate) type Policy = Box<dyn Fn(&Backend) -> bool + Send + Sync>;

static POLICY: OnceLock<Policy> = OnceLock::new();

/// Sets the policy. The first one of the process stays.
pub(crate) fn set_policy(policy: Policy) {
    let _ = POLICY.set(policy);
}

fn policy_allows(backend: &Backend) -> bool {
    POLICY.get().is_none_or(|policy| policy(backend))
}
