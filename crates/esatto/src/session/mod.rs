//! Sessions that the program itself controls (`docs/spec/client-library.md` §13).

mod config;
#[cfg(feature = "in-process")]
pub(crate) mod losses;
pub(crate) mod named_file;
pub(crate) mod own_connection;
mod service_choice;
mod startup_tracing;
mod trace_file;
#[cfg(feature = "in-process")]
mod unmatched_patterns;

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use esatto_protozero::{Owned, ProtoString};
use esatto_schema::{
    ChangeTraceConfigRequest, CloneSessionRequest, CloneSessionResponse, EnableTracingRequest, GetTraceStatsResponse,
    QueryCapabilitiesResponse, QueryServiceStateRequest, QueryServiceStateResponse, TraceConfig, TraceStats,
    TracingServiceCapabilities, TracingServiceState,
};

pub use crate::backend::Backend;
#[cfg(feature = "in-process")]
use crate::category::known;
use crate::connection::{self, Command, LiveSession, ReadSink, SessionCommand, SessionConnection, SessionId, SetUp};
use crate::error::Error;
use crate::lifecycle;
use crate::os::OwnedFd;
pub use config::{SessionConfig, track_events};
use named_file::NamedFile;
#[cfg(feature = "in-process")]
pub(crate) use service_choice::IN_PROCESS;
pub(crate) use service_choice::{NO_SYSTEM_SESSIONS, Policy, SYSTEM, connected, is_connected, set_policy};
pub use startup_tracing::{Startup, StartupTracing};

pub use crate::connection::consumer::Chunks;
pub use crate::connection::pending_operation::Pending;
use crate::connection::pending_operation::{Completer, Listener};

/// A recording that this program controls, in a service of its choice.
///
/// In the simplest case, [`start`](Self::start) waits until everything records, and
/// [`stop`](Self::stop) returns the trace:
///
/// ```
/// esatto::categories! { static APP = "app"; }
///
/// let _tracing = esatto::Tracing::builder().in_process().categories(CATEGORIES).start()?;
/// let session = esatto::Session::start(esatto::Backend::InProcess, esatto::track_events(1024))?;
/// esatto::instant!(APP, "hello", answer = 42);
/// let trace = session.stop()?;
/// assert!(trace.windows(5).any(|bytes| bytes == b"hello"));
/// # Ok::<(), esatto::Error>(())
/// ```
///
/// For more control there is a method for each step. Steps may be requested at once, in order, even
/// before the connection is established. Each returns a [`Pending`]: the program waits for it,
/// awaits it in any runtime or none, or passes a function:
///
/// ```
/// use esatto::{Backend, Session, SessionConfig, Tracing};
///
/// esatto::categories! { static APP = "app"; }
///
/// # async fn record() -> Result<(), esatto::Error> {
/// let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
/// let session = Session::open(Backend::InProcess)?;
/// session.on_stop(|result| println!("stopped: {result:?}"));
/// session.record(SessionConfig::new().categories(["app"])).await?;
/// esatto::instant!(APP, "hello");
/// session.flush(None).await?;
/// let stats = session.stats().await?;
/// # assert_eq!(stats.buffer_stats.len(), 1);
/// session.stop_recording().await?;
/// let mut chunks = session.chunks();
/// while let Some(chunk) = chunks.next_chunk().await {
///     println!("{} bytes", chunk?.len());
/// }
/// # Ok(())
/// # }
/// # let mut future = std::pin::pin!(record());
/// # struct Unpark(std::thread::Thread);
/// # impl std::task::Wake for Unpark { fn wake(self: std::sync::Arc<Self>) { self.0.unpark(); } }
/// # let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
/// # let mut context = std::task::Context::from_waker(&waker);
/// # loop {
/// #     match std::future::Future::poll(future.as_mut(), &mut context) {
/// #         std::task::Poll::Ready(result) => break result.unwrap(),
/// #         std::task::Poll::Pending => std::thread::park(),
/// #     }
/// # }
/// ```
///
/// A session has its own connection. After it has stopped it can be set up and started again.
/// Dropping it ends the session and discards the unread data. If it [writes into a
/// file](SessionConfig::write_into), the drop stops it first, and waits up to a second.
#[doc(alias = "record", alias = "recording", alias = "capture", alias = "consumer")]
pub struct Session {
    id: SessionId,
    backend: Backend,
    /// The file that this process has created for the session.
    file: Mutex<Option<Arc<NamedFile>>>,
    /// The service writes the trace into a file.
    writes_file: AtomicBool,
    #[cfg(feature = "in-process")]
    patterns: unmatched_patterns::Patterns,
}

/// The session to clone: see [`Session::clone_session`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloneOf {
    /// The session with this [name](SessionConfig::name).
    Name(String),
    /// The session with this number, as in [`Session::service_state`].
    Id(u64),
}

/// The result of a clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cloned {
    /// The uuid of this trace. Its lower half is that of the cloned session. 0 if the service is
    /// too old to report it.
    pub uuid: u128,
}

impl Session {
    /// Starts recording and waits until all connected data sources have started, also those of this
    /// process.
    ///
    /// # Errors
    ///
    /// If the service cannot be reached, refuses the configuration, or does not start in time; or
    /// in a callback.
    pub fn start(backend: Backend, config: impl Into<SessionConfig>) -> Result<Self, Error> {
        let session = Self::open(backend)?;
        session.record(config).wait()?;
        Ok(session)
    }

    /// Ends the recording, waits for the last data and returns the unread data.
    ///
    /// If events are missing in a session inside this process, a
    /// [notice](crate::Builder::notices) says so: see [`SessionConfig::stall`].
    ///
    /// The result is in memory as a whole: for large traces use
    /// [`stop_recording`](Self::stop_recording) and [`chunks`](Self::chunks).
    ///
    /// # Errors
    ///
    /// If the session had failed, or the service goes away or does not stop in time; or in a
    /// callback.
    pub fn stop(self) -> Result<Vec<u8>, Error> {
        self.stop_recording().wait()?;
        self.read().wait()
    }

    /// Connects, without waiting for the outcome. If the service cannot be reached, each operation
    /// fails and says so.
    ///
    /// # Errors
    ///
    /// If an address does not parse or no thread can be started.
    pub fn open(backend: Backend) -> Result<Self, Error> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let place = backend.place()?;
        let control = lifecycle::start().map_err(Error::thread)?;
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        own_connection::opened();
        control.send(Command::OpenSession {
            id,
            open: Box::new(move |around| -> Box<dyn LiveSession> {
                Box::new(match place {
                    Ok(place) => SessionConnection::open(&place, around),
                    Err(error) => SessionConnection::refused(error),
                })
            }),
        });
        Ok(Self {
            id,
            backend,
            file: Mutex::default(),
            writes_file: AtomicBool::new(false),
            #[cfg(feature = "in-process")]
            patterns: unmatched_patterns::Patterns::default(),
        })
    }

    /// Sets up and starts. It is complete when all connected data sources have started, or, if the
    /// configuration waits for a trigger, when the service does. If this process has begun to
    /// connect to the system's service ([`Builder::system`](crate::Builder::system)), it also waits
    /// for its own data sources, at most a second.
    pub fn record(&self, config: impl Into<SessionConfig>) -> Pending<()> {
        let (pending, done) = Pending::new(nothing);
        let (set_up, ready) = Pending::new(nothing);
        match self.to_set_up(config.into()) {
            Ok(config) => {
                self.send(SessionCommand::SetUp(config, ready));
                self.send(SessionCommand::Start(done));
            }
            Err(error) => done.complete(Err(error)),
        }
        drop(set_up);
        self.and_this_process(pending)
    }

    /// Sets what to record. The start sends it to the service. With a [deferred
    /// start](SessionConfig::deferred_start), this method sends it.
    pub fn set_up(&self, config: impl Into<SessionConfig>) -> Pending<()> {
        let (pending, done) = Pending::new(nothing);
        match self.to_set_up(config.into()) {
            Ok(config) => self.send(SessionCommand::SetUp(config, done)),
            Err(error) => done.complete(Err(error)),
        }
        pending
    }

    /// Starts the session after the set-up. It is complete when all connected data sources have
    /// started, as for [`record`](Self::record).
    pub fn start_recording(&self) -> Pending<()> {
        self.and_this_process(self.ask(nothing, SessionCommand::Start))
    }

    /// See [`own_connection::and_this_process`]. A service inside this process knows it at once.
    fn and_this_process(&self, started: Pending<()>) -> Pending<()> {
        #[cfg(feature = "in-process")]
        if self.backend.is_in_process() {
            return started;
        }
        own_connection::and_this_process(started)
    }

    /// Stops recording. It is complete when the service has the last data. If a start is in
    /// progress, the stop waits for it. Stopping twice is no error. Fails if the session had
    /// failed.
    ///
    /// Hands over the earlier events of this thread. If events are missing in a session inside this
    /// process, a [notice](crate::Builder::notices) says so: see [`SessionConfig::stall`]. Fails
    /// also if the session [writes into a file](SessionConfig::write_into), and another program has
    /// removed, replaced or emptied it.
    pub fn stop_recording(&self) -> Pending<()> {
        let stopped = self.stop_and_explain();
        // A forked child may find it locked.
        let file = self.file.try_lock().ok().and_then(|file| file.clone());
        let Some(file) = file else { return stopped };
        let (pending, done) = Pending::new(nothing);
        stopped.then(move |stopped| {
            let result = stopped.and_then(|()| file.require_trace());
            file.release();
            done.complete(result.map(|()| Vec::new()));
        });
        pending
    }

    /// Stops. If the session is inside this process, reports why events may be missing.
    fn stop_and_explain(&self) -> Pending<()> {
        #[cfg(feature = "in-process")]
        {
            service_choice::notice_if_unconnected(&self.backend);
            if self.backend.is_in_process() {
                self.patterns.explain();
                return self.stop_and_tell_losses();
            }
        }
        self.stop_explained()
    }

    /// Returns the categories that only their tags leave out, if none is on in this session.
    #[cfg(feature = "in-process")]
    pub(crate) fn left_out_by_tags(&self) -> Option<known::LeftOut> {
        self.patterns.left_out_by_tags()
    }

    /// Stops, and then reports, once, whether events are missing.
    #[cfg(feature = "in-process")]
    fn stop_and_tell_losses(&self) -> Pending<()> {
        let (pending, done) = Pending::new(nothing);
        let id = self.id;
        self.stop_explained().then(move |stopped| {
            let stats = ask(id, decode_stats, SessionCommand::Stats);
            stats.then(move |stats| {
                if let Ok(stats) = stats {
                    losses::explain(&stats);
                }
                done.complete(stopped.map(|()| Vec::new()));
            });
        });
        pending
    }

    /// As [`stop_recording`](Self::stop_recording), after the user was told why there may be no
    /// event.
    pub(crate) fn stop_explained(&self) -> Pending<()> {
        crate::record::flush();
        self.ask(nothing, SessionCommand::Stop)
    }

    /// Asks all data sources to hand over their recorded data, so that it can be read afterwards.
    /// `None` waits as long as the configuration says, or else 5 s.
    pub fn flush(&self, timeout: Option<Duration>) -> Pending<()> {
        crate::record::flush();
        self.ask(nothing, |done| SessionCommand::Flush { timeout, done })
    }

    /// Changes the configuration of a session that was set up. Services accept only further
    /// `producer_name_filter`s and ignore the rest.
    pub fn change_config(&self, config: TraceConfig) -> Pending<()> {
        let request = ChangeTraceConfigRequest { trace_config: Some(Box::new(config)), ..Default::default() };
        self.ask(nothing, |done| SessionCommand::ChangeConfig { request: request.encode(), done })
    }

    /// Reads the data that has arrived so far into memory, as the bytes of a trace file. This
    /// removes it from the service's buffers: the results of several calls make up one file. Only
    /// one read at a time is possible. A session that writes into a file has nothing to read.
    pub fn read(&self) -> Pending<Vec<u8>> {
        self.ask(Ok, |done| SessionCommand::Read(ReadSink::Answer(Vec::new()), done))
    }

    /// As [`read`](Self::read), chunk by chunk, in bounded memory, for an iterator or a task.
    #[must_use = "nothing is read before the first chunk is requested"]
    pub fn chunks(&self) -> Chunks {
        let id = self.id;
        Chunks::new(move |sender| {
            // The reader learns about the end in another way.
            let (_, done) = Pending::new(nothing);
            send(id, SessionCommand::Read(ReadSink::Queue(sender), done));
        })
    }

    /// As [`read`](Self::read), chunk by chunk, for a function that the control thread calls. It
    /// must not take long.
    pub fn read_with(&self, function: impl FnMut(&[u8]) + Send + 'static) -> Pending<()> {
        self.ask(nothing, |done| SessionCommand::Read(ReadSink::Function(Box::new(function)), done))
    }

    /// As [`read`](Self::read), into a file, which is replaced if it exists. Returns the number of
    /// bytes.
    ///
    /// # Errors
    ///
    /// If the service goes away, or the file cannot be written; or in a callback.
    pub fn read_to_file(&self, path: impl AsRef<Path>) -> Result<u64, Error> {
        let path = path.as_ref();
        let file = std::fs::File::create(path).map_err(|error| Error::create_file(path, error))?;
        self.chunks().write_to(file)
    }

    /// Queries the statistics of the service: bytes, chunks and losses of each buffer.
    pub fn stats(&self) -> Pending<TraceStats> {
        self.ask(decode_stats, SessionCommand::Stats)
    }

    /// Queries the state of the service: its clients, their data sources, and the sessions. Needs
    /// no recording.
    pub fn service_state(&self) -> Pending<TracingServiceState> {
        let decode = |bytes: Vec<u8>| {
            // The concatenation of several answers is one message: fields are merged.
            let response = QueryServiceStateResponse::decode(&bytes).map_err(|_| bad_answer())?;
            Ok(response.service_state.map(|state| *state).unwrap_or_default())
        };
        let request = QueryServiceStateRequest::default().encode();
        self.ask(decode, |done| SessionCommand::ServiceState { request, done })
    }

    /// Queries the capabilities of the service. Needs no recording.
    pub fn capabilities(&self) -> Pending<TracingServiceCapabilities> {
        let decode = |bytes: Vec<u8>| {
            let response = QueryCapabilitiesResponse::decode(&bytes).map_err(|_| bad_answer())?;
            Ok(response.capabilities.unwrap_or_default())
        };
        self.ask(decode, SessionCommand::Capabilities)
    }

    /// Makes this session a snapshot of another one, which continues. The snapshot can only be
    /// read. Only sessions of the same user can be cloned.
    #[doc(alias = "snapshot")]
    pub fn clone_session(&self, of: CloneOf) -> Pending<Cloned> {
        self.clone_into(of, None)
    }

    /// Like [`clone_session`](Self::clone_session), for a session that writes into a file: the
    /// trace in that file is copied into this one. The file of the cloned session must be open for
    /// reading and writing.
    pub fn clone_session_into(&self, of: CloneOf, file: impl Into<OwnedFd>) -> Pending<Cloned> {
        self.clone_into(of, Some(file.into()))
    }

    /// Calls `function` on the control thread when all data sources have started, or when it is
    /// certain that they will not.
    pub fn on_start(&self, function: impl FnOnce(Result<(), Error>) + Send + 'static) {
        self.send(SessionCommand::OnStart(Listener::new(function)));
    }

    /// Calls `function` on the control thread when the session is over: stopped, timed out, or
    /// failed.
    pub fn on_stop(&self, function: impl FnOnce(Result<(), Error>) + Send + 'static) {
        self.send(SessionCommand::OnStop(Listener::new(function)));
    }

    /// Calls `function` on the control thread when the session fails or the service goes away,
    /// before the functions of [`on_start`](Self::on_start) and [`on_stop`](Self::on_stop).
    pub fn on_error(&self, function: impl FnOnce(Error) + Send + 'static) {
        let function = move |result: Result<(), Error>| {
            if let Err(error) = result {
                function(error);
            }
        };
        self.send(SessionCommand::OnError(Listener::new(function)));
    }

    fn clone_into(&self, of: CloneOf, file: Option<OwnedFd>) -> Pending<Cloned> {
        let decode = |bytes: Vec<u8>| {
            let response = CloneSessionResponse::decode(&bytes).map_err(|_| bad_answer())?;
            let half = |half: Option<i64>| u128::from(half.unwrap_or(0) as u64);
            Ok(Cloned { uuid: half(response.uuid_msb) << 64 | half(response.uuid_lsb) })
        };
        let (session_id, unique_session_name) = match of {
            CloneOf::Name(name) => (None, Some(ProtoString::from(name))),
            CloneOf::Id(id) => (Some(id), None),
        };
        let request = CloneSessionRequest { session_id, unique_session_name, ..Default::default() }.encode();
        self.ask(decode, |done| SessionCommand::Clone { request, file, done })
    }

    /// Sends a command whose answer `decode` reads.
    fn ask<T>(
        &self,
        decode: fn(Vec<u8>) -> Result<T, Error>,
        command: impl FnOnce(Completer) -> SessionCommand,
    ) -> Pending<T> {
        ask(self.id, decode, command)
    }

    /// Encodes on the caller's thread.
    fn to_set_up(&self, config: SessionConfig) -> Result<Box<SetUp>, Error> {
        // It may be the file of an attempt that has failed.
        if let Some(earlier) = self.file.try_lock().ok().and_then(|mut file| file.take()) {
            earlier.release();
        }
        let (config, file, named) = config.open(&self.backend)?;
        if let Ok(mut kept) = self.file.try_lock() {
            *kept = named.map(Arc::new);
        }
        self.writes_file.store(file.is_some(), Ordering::Relaxed);
        #[cfg(feature = "in-process")]
        self.patterns.set(&config);
        let (flush_timeout, stop_timeout) = config::timeouts(&config);
        let is_deferred = config.deferred_start.unwrap_or(false);
        let is_armed = config::is_armed(&config);
        let request = EnableTracingRequest { trace_config: Some(Box::new(config)), ..Default::default() }.encode();
        Ok(Box::new(SetUp { request, file, is_deferred, is_armed, flush_timeout, stop_timeout }))
    }

    fn send(&self, command: SessionCommand) {
        send(self.id, command);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The file would lack the events since the last write.
        if self.writes_file.load(Ordering::Relaxed) && connection::handle().is_some() {
            let _ = self.stop_explained().wait_timeout(lifecycle::PATIENCE);
        }
        own_connection::closed();
        if let Some(control) = connection::handle() {
            control.send(Command::CloseSession(self.id));
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", &self.id).finish_non_exhaustive()
    }
}

fn send(id: SessionId, command: SessionCommand) {
    if let Some(control) = connection::handle() {
        control.send(Command::Session(id, command));
    }
}

fn ask<T>(
    id: SessionId,
    decode: fn(Vec<u8>) -> Result<T, Error>,
    command: impl FnOnce(Completer) -> SessionCommand,
) -> Pending<T> {
    let (pending, done) = Pending::new(decode);
    send(id, command(done));
    pending
}

fn decode_stats(bytes: Vec<u8>) -> Result<TraceStats, Error> {
    let response = GetTraceStatsResponse::decode(&bytes).map_err(|_| bad_answer())?;
    response.trace_stats.map(|stats| *stats).ok_or_else(bad_answer)
}

fn nothing(_: Vec<u8>) -> Result<(), Error> {
    Ok(())
}

fn bad_answer() -> Error {
    Error::session("the service's answer cannot be decoded")
}
