//! Sessions that the program itself controls.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use esatto_ipc::Address;
use esatto_schema::{DataSourceConfig, TraceConfig, TrackEventConfig, trace_config};

use crate::control::{self, Command, Place, SessionCommand, SessionEvent, SessionId};
use crate::error::Error;

/// How long a session may take to start and to end, beyond what its configuration says.
const PATIENCE: Duration = Duration::from_secs(15);

/// Which tracing service a session runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The service of the system, over its consumer socket (`PERFETTO_CONSUMER_SOCK_NAME` or the standard one).
    System,
    /// A service inside this process.
    #[cfg(feature = "in-process")]
    InProcess,
}

/// A recording that this program started.
///
/// Dropping it ends the session and discards what was not read.
///
/// ```
/// esatto::categories! { static APP = "app"; }
///
/// let _tracing = esatto::Tracing::builder().in_process().categories(CATEGORIES).start()?;
/// let mut session = esatto::Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
/// esatto::instant!(APP, "hello", answer = 42);
/// let trace = session.stop()?;
/// assert!(trace.windows(5).any(|bytes| bytes == b"hello"));
/// # Ok::<(), esatto::Error>(())
/// ```
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    events: Receiver<SessionEvent>,
    ended: bool,
}

/// A configuration that records all track events into one ring buffer of this many KiB.
#[must_use]
pub fn track_events(buffer_size_kb: u32) -> TraceConfig {
    let categories = TrackEventConfig { enabled_categories: vec!["*".into()], ..Default::default() };
    let source = DataSourceConfig {
        name: Some("track_event".into()),
        track_event_config: Some(Box::new(categories)),
        ..Default::default()
    };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(buffer_size_kb), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    }
}

impl Session {
    /// Starts recording and waits until all data sources that are connected have started.
    ///
    /// # Errors
    ///
    /// If the service cannot be reached, refuses the configuration, or does not start in time.
    pub fn start(backend: Backend, config: TraceConfig) -> Result<Self, Error> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let place = match backend {
            Backend::System => Place::Socket(Address::consumer_default().map_err(Error::address)?),
            #[cfg(feature = "in-process")]
            Backend::InProcess => Place::here(),
        };
        let control = control::start().map_err(Error::thread)?;
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::channel();
        control.send(Command::OpenSession { id, place, events: sender });
        let mut session = Self { id, events, ended: false };
        session.send(SessionCommand::Start(Box::new(config)));
        session.wait(PATIENCE, "start", |event| matches!(event, SessionEvent::Started))?;
        if session.ended {
            return Err(Error::session("it ended before it started".into()));
        }
        Ok(session)
    }

    /// Asks all data sources to hand over what they have recorded.
    ///
    /// # Errors
    ///
    /// If one of them does not in time, or the session is over.
    pub fn flush(&mut self, timeout: Duration) -> Result<(), Error> {
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        self.send(SessionCommand::Flush { timeout_ms });
        match self.wait(timeout + PATIENCE, "flush", |event| matches!(event, SessionEvent::Flushed(_)))? {
            Some(SessionEvent::Flushed(true)) => Ok(()),
            _ => Err(Error::timed_out("flush")),
        }
    }

    /// Reads what has arrived so far, as the bytes of a trace file. What was read is gone from the service's buffers; the results of
    /// several calls make up one file.
    ///
    /// # Errors
    ///
    /// If the service goes away.
    pub fn read(&mut self) -> Result<Vec<u8>, Error> {
        self.send(SessionCommand::Read);
        let mut trace = Vec::new();
        self.wait(PATIENCE, "deliver the trace", |event| match event {
            SessionEvent::Data(bytes) => {
                trace.append(bytes);
                false
            }
            SessionEvent::ReadDone => true,
            _ => false,
        })?;
        Ok(trace)
    }

    /// Ends the recording, waits for the last data and returns what was not read yet.
    ///
    /// # Errors
    ///
    /// If the session had failed, or the service goes away or does not stop in time.
    pub fn stop(mut self) -> Result<Vec<u8>, Error> {
        crate::thread::flush();
        if !self.ended {
            self.send(SessionCommand::Stop);
            self.wait(PATIENCE, "stop", |event| matches!(event, SessionEvent::Ended(_)))?;
        }
        self.read()
    }

    fn send(&self, command: SessionCommand) {
        if let Some(control) = control::handle() {
            control.send(Command::Session(self.id, command));
        }
    }

    /// Takes events until `wanted` says so; that event, or `None` if the session ended.
    fn wait(
        &mut self,
        patience: Duration,
        what: &'static str,
        mut wanted: impl FnMut(&mut SessionEvent) -> bool,
    ) -> Result<Option<SessionEvent>, Error> {
        loop {
            // Counts from the last sign of life: a large trace takes its time.
            let mut event = match self.events.recv_timeout(patience) {
                Ok(event) => event,
                Err(RecvTimeoutError::Timeout) => return Err(Error::timed_out(what)),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::disconnected("it was closed".into())),
            };
            let done = wanted(&mut event);
            match &event {
                SessionEvent::Disconnected(why) => return Err(Error::disconnected(why.clone())),
                SessionEvent::Ended(Some(why)) => {
                    self.ended = true;
                    return Err(Error::session(why.clone()));
                }
                SessionEvent::Ended(None) => self.ended = true,
                _ => {}
            }
            if done {
                return Ok(Some(event));
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(control) = control::handle() {
            control.send(Command::CloseSession(self.id));
        }
    }
}
