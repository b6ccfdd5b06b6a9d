//! The child's side: the tools that a scenario needs beside the SDK.

use std::fmt::Display;
use std::path::PathBuf;

use esatto::schema::TraceConfig;
use esatto::{Builder, Category, Session, Tracing};

use super::Backend;
use crate::{Harness, wait_until};

/// The trace that is judged if no other is asked for.
pub(super) const TRACE: &str = "trace";
/// Tells that the child has come this far.
pub(super) const STARTED: &str = "started";
/// Files by which the child asks for something; they go when it is done.
pub(super) const STOP_SERVICE: &str = "stop-service";
pub(super) const START_SERVICE: &str = "start-service";

/// Where a scenario runs: the backend, and the folder that it shares with the check.
#[derive(Debug)]
pub struct Recorder {
    backend: Backend,
    harness: Harness,
}

impl Recorder {
    pub(super) const fn new(backend: Backend, harness: Harness) -> Self {
        Self { backend, harness }
    }

    /// Which service records.
    #[must_use]
    pub const fn on(&self) -> Backend {
        self.backend
    }

    /// The same as the SDK names it.
    #[must_use]
    pub const fn backend(&self) -> esatto::Backend {
        match self.backend {
            Backend::InProcess => esatto::Backend::InProcess,
            Backend::Ours | Backend::Theirs => esatto::Backend::System,
        }
    }

    /// A connection to the backend, to be changed before it is started.
    pub fn builder(&self) -> Builder {
        match self.backend {
            Backend::InProcess => Tracing::builder().in_process(),
            Backend::Ours | Backend::Theirs => Tracing::builder().system(),
        }
    }

    /// Connects, and waits until the service knows that this process has track events.
    ///
    /// # Panics
    ///
    /// It does not get to know.
    pub fn connect(&self, categories: &[&'static Category]) -> Tracing {
        let tracing = self.builder().categories(categories).start().expect("the control thread starts");
        self.wait_for_data_source("track_event");
        tracing
    }

    /// Waits until a producer has registered the data source `name` with the service. With the
    /// service in this process it returns at once, because sessions start after all earlier
    /// requests.
    pub fn wait_for_data_source(&self, name: &str) {
        if self.backend != Backend::InProcess {
            self.harness.wait_for_data_source(name);
        }
    }

    /// Starts a session in the backend.
    ///
    /// # Panics
    ///
    /// It does not start.
    #[must_use]
    pub fn start(&self, config: TraceConfig) -> Session {
        Session::start(self.backend(), config).unwrap_or_else(|error| panic!("the session starts: {error}"))
    }

    /// Stops a session and leaves its trace to the check.
    ///
    /// # Panics
    ///
    /// It does not stop in good order.
    pub fn finish(&self, session: Session) {
        self.finish_as(TRACE, session);
    }

    /// As [`finish`](Self::finish), as one trace of several: see
    /// [`Trace::other`](super::Trace::other).
    ///
    /// # Panics
    ///
    /// It does not stop in good order.
    pub fn finish_as(&self, name: &str, session: Session) {
        let trace = session.stop().unwrap_or_else(|error| panic!("the session stops: {error}"));
        self.save(name, trace);
    }

    /// Leaves a trace, or anything else, for the check. [`TRACE`](Self::trace) is judged first.
    ///
    /// # Panics
    ///
    /// It cannot be written.
    pub fn save(&self, name: &str, content: impl AsRef<[u8]>) {
        self.harness.write(name, content);
    }

    /// The file of the trace that is judged first, for scenarios that write it themselves.
    #[must_use]
    pub fn trace(&self) -> PathBuf {
        self.harness.path(TRACE)
    }

    /// A file in the shared folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.harness.path(name)
    }

    /// Tells the check a fact: see [`Trace::fact`](super::Trace::fact).
    pub fn note(&self, name: &str, value: impl Display) {
        self.save(&format!("{name}.fact"), value.to_string());
    }

    /// The harness: private sockets, other programs, the state of the service.
    #[must_use]
    pub const fn harness(&self) -> &Harness {
        &self.harness
    }

    /// Kills the service.
    ///
    /// # Panics
    ///
    /// There is no daemon.
    pub fn stop_service(&self) {
        self.request(STOP_SERVICE);
    }

    /// Starts the service again and waits until it takes connections.
    ///
    /// # Panics
    ///
    /// There is no daemon.
    pub fn start_service(&self) {
        self.request(START_SERVICE);
    }

    fn request(&self, what: &str) {
        assert_ne!(self.backend, Backend::InProcess, "there is no daemon");
        self.save(what, "");
        wait_until(what, || (!self.path(what).exists()).then_some(()));
    }
}
