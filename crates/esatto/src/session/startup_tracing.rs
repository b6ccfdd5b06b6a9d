//! Startup tracing: recording before a session exists.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_protozero::Owned;
use esatto_schema::TraceConfig;

use super::{Backend, Pending};
use crate::connection::{self, Command, StartupId, StartupRequest};
use crate::error::Error;

/// How long to wait for a session, by default.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Records from now on for a session that starts later, so that the trace contains the start of the
/// program.
///
/// The data sources in the config start at once, without a service. Their packets stay in shared
/// memory, 256 KiB unless the [`Builder`](crate::Builder) says otherwise. When a session of the
/// system's service wants them with the same config, it gets these packets, and all later ones as
/// usual. (`docs/spec/client-library.md` §12 defines "the same".) When the memory is full, packets
/// are dropped.
///
/// If the program is already connected to a service but was never recorded, it connects again with
/// its own memory. If a service refuses this memory (over TCP, or before v4), the startup recording
/// ends, and later attempts begin none.
///
/// ```no_run
/// use esatto::{Backend, StartupTracing, Tracing};
///
/// let tracing = Tracing::builder().system().start()?;
/// let startup = StartupTracing::new(&esatto::track_events(1024))
///     .on_aborted(|| eprintln!("no later session took over the start"))
///     .start(Backend::System)?;
/// assert_eq!(startup.instances(), 1);
/// # Ok::<(), esatto::Error>(())
/// ```
#[must_use = "nothing is recorded before `start`"]
pub struct StartupTracing {
    configs: Vec<Arc<[u8]>>,
    timeout: Option<Duration>,
    on_adopted: Option<Box<dyn FnOnce() + Send>>,
    on_aborted: Option<Box<dyn FnOnce() + Send>>,
}

/// The recording that [`StartupTracing`] has begun. Dropping it changes nothing.
#[derive(Debug)]
pub struct Startup {
    id: StartupId,
    instances: usize,
}

impl StartupTracing {
    /// Takes the data sources of a config that this program has registered. The rest of the config
    /// does not matter.
    pub fn new(config: &TraceConfig) -> Self {
        let configs = config.data_sources.iter().filter_map(|source| Some(source.config.as_ref()?.encode().into()));
        Self { configs: configs.collect(), timeout: Some(TIMEOUT), on_adopted: None, on_aborted: None }
    }

    /// Gives up if not every instance belongs to a session after this time; by default 10 seconds.
    /// Zero: never.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = (!timeout.is_zero()).then_some(timeout);
        self
    }

    /// Calls `call` when all instances belong to sessions. On the control thread, at most once.
    pub fn on_adopted(mut self, call: impl FnOnce() + Send + 'static) -> Self {
        self.on_adopted = Some(Box::new(call));
        self
    }

    /// Calls `call` when the instances that no session took over have ended: they timed out, were
    /// aborted, or the connection broke. A session that records this program already takes over
    /// nothing, and has the events all the same. On the control thread, at most once.
    pub fn on_aborted(mut self, call: impl FnOnce() + Send + 'static) -> Self {
        self.on_aborted = Some(Box::new(call));
        self
    }

    /// Starts, and waits until trace points record, which takes a few system calls of the control
    /// thread.
    ///
    /// # Errors
    ///
    /// If the backend is not the system's, the program is not [connecting](crate::Builder::system)
    /// to it, or a callback calls this: it would wait for its own thread.
    pub fn start(self, backend: Backend) -> Result<Startup, Error> {
        let (mut startup, set_up) = self.start_soon(backend)?;
        startup.instances = set_up.wait()?;
        Ok(startup)
    }

    /// Starts without waiting. The [`Pending`] returns the number of instances that then record.
    ///
    /// # Errors
    ///
    /// If the backend is not the system's, or nothing was [connected](crate::Builder::start) yet.
    pub fn start_soon(self, backend: Backend) -> Result<(Startup, Pending<usize>), Error> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        if backend != Backend::System {
            let why = "is for sessions of the system's service: those of this process can be started at once";
            return Err(Error::startup(why));
        }
        let Some(control) = connection::handle() else {
            return Err(Error::startup("needs a program that connects to the system's service"));
        };
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let (pending, done) = Pending::new(instances);
        let request = StartupRequest {
            id,
            keeper: connection::startups,
            configs: self.configs,
            deadline: self.timeout.map(|timeout| Instant::now() + timeout),
            done,
            on_adopted: self.on_adopted,
            on_aborted: self.on_aborted,
        };
        control.send(Command::With(Box::new(move |control| control.start_up(request))));
        Ok((Startup { id, instances: 0 }, pending))
    }
}

fn instances(answer: Vec<u8>) -> Result<usize, Error> {
    Ok(answer.try_into().map_or(0, usize::from_le_bytes))
}

impl Startup {
    /// Returns how many instances of data sources record. After
    /// [`start_soon`](StartupTracing::start_soon) it is 0: the [`Pending`] returns the number.
    #[must_use]
    pub const fn instances(&self) -> usize {
        self.instances
    }

    /// Ends the instances that do not belong to a session yet, and discards their packets. The
    /// [`Pending`] is complete when the data sources have been told.
    pub fn abort(&self) -> Pending<()> {
        let (pending, done) = Pending::new(|_| Ok(()));
        if let Some(control) = connection::handle() {
            let id = self.id;
            control.send(Command::With(Box::new(move |control| control.abort_startup(id, done))));
        }
        pending
    }
}

impl fmt::Debug for StartupTracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartupTracing")
            .field("data_sources", &self.configs.len())
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
