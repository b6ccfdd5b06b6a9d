//! [`Probes`]: the producer with all data sources of the machine.

use core::time::Duration;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crate::control::{Control, Observer};
use crate::sources;

/// Options of [`Probes`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// Address of the service's socket for producers, by default the one that
    /// `PERFETTO_PRODUCER_SOCK_NAME` names, or the standard one.
    pub socket: Option<String>,
}

/// The producer with all data sources of the machine.
///
/// It connects to the service, again and again if need be, and records what sessions ask for. What
/// it changes in the system, such as the settings of ftrace, lasts as long as sessions need it.
#[derive(Debug)]
pub struct Probes {
    options: Options,
}

/// Probes that run on threads of their own. They end when this is dropped.
#[derive(Debug)]
pub struct ProbesHandle {
    stop: UnixStream,
    thread: Option<JoinHandle<io::Result<()>>>,
    registered: Arc<Registered>,
}

/// True if the service knows all data sources.
#[derive(Debug, Default)]
struct Registered {
    is_so: Mutex<bool>,
    changed: Condvar,
}

impl Probes {
    /// Prepares the producer.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self { options }
    }

    /// Serves on a thread of its own, and on one more for each kind of data source that records.
    ///
    /// # Errors
    ///
    /// If threads or descriptors cannot be made.
    pub fn spawn_thread(self) -> io::Result<ProbesHandle> {
        let (stop, stopped) = UnixStream::pair()?;
        let stopped = OwnedFd::from(stopped);
        let registered = Arc::<Registered>::default();
        let quiet = Quiet(registered.clone());
        let thread = Builder::new().name("probes-control".into()).spawn(move || self.run(&stopped, quiet))?;
        Ok(ProbesHandle { stop, thread: Some(thread), registered })
    }

    /// Returns the names of all data sources.
    #[must_use]
    pub fn data_sources() -> Vec<String> {
        let groups = sources::all();
        let all = groups.iter().flat_map(|group| &group.sources);
        all.map(|source| crate::worker::name_of(source.as_ref())).collect()
    }

    pub(crate) fn run(self, stop: &OwnedFd, observer: impl Observer) -> io::Result<()> {
        Control::new(sources::all(), self.options.socket, observer)?.run(stop)
    }
}

impl ProbesHandle {
    /// Waits until the service knows the data sources, for at most `timeout`. Returns whether it
    /// does.
    #[must_use]
    pub fn wait_registered(&self, timeout: Duration) -> bool {
        let is_so = self.registered.is_so.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.registered.changed.wait_timeout_while(is_so, timeout, |is_so| !*is_so);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Tears down all instances, and ends.
    ///
    /// # Errors
    ///
    /// The reason for which the probes have ended before.
    pub fn stop(mut self) -> io::Result<()> {
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        // It fails only if the thread has ended.
        let _ = self.stop.write_all(b"1");
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the control thread of the probes has panicked")))
    }
}

impl Drop for ProbesHandle {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Observer of probes inside a program.
struct Quiet(Arc<Registered>);

impl Observer for Quiet {
    fn registered(&mut self) {
        *self.0.is_so.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }

    fn disconnected(&mut self, why: &str) {
        log::debug!("the probes are not connected: {why}");
    }
}
