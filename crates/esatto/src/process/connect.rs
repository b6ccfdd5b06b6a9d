//! Connects this process to tracing services.

use core::any::Any;
use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};
use std::env;
use std::time::{Duration, Instant};

use super::unread_variable;
use crate::category::{Category, registry};
use crate::clock::Clock;
use crate::connection::{self, Command, Identity, Place, SocketFactory, SocketPlace, SocketRequest};
use crate::data_source::{self, Awaited, BufferExhausted};
use crate::error::Error;
use crate::event::track::announcement;
use crate::os::process_info;
use crate::session::{self, Backend};
use crate::{control_thread, diagnostics, lifecycle, start_times, track_uuid};

/// How long to wait for a session of the system's service, in milliseconds.
const WAIT_VARIABLE: &str = "ESATTO_WAIT_MS";
/// The event to wait for: a session that may start later, or the service, whose sessions run
/// already.
const AWAITED_VARIABLE: &str = "ESATTO_WAIT_FOR";

/// How long [`Tracing::activate_triggers`] waits until they are sent.
const TRIGGER_PATIENCE: Duration = Duration::from_millis(100);

/// Size of the memory that this process shares with its own service. It is enough that ordinary
/// loads of several threads lose nothing while the control thread has no processor.
const OWN_MEMORY_KB: u32 = 4 * 1024;

/// The services to connect to, and the options; made by [`Tracing::builder`].
#[derive(Default)]
#[must_use = "nothing is connected before `start`"]
pub struct Builder {
    categories: Vec<&'static Category>,
    system: bool,
    #[cfg(feature = "in-process")]
    in_process: Option<Place>,
    socket: Option<String>,
    socket_factory: Option<SocketFactory>,
    name: Option<String>,
    shm_size_hint_kb: u32,
    shm_page_size_hint_kb: u32,
    batch_delay: Option<Duration>,
    direct_patching: bool,
    process_uuid: Option<u64>,
    exhausted: Option<BufferExhausted>,
    no_system_sessions: bool,
    policy: Option<session::Policy>,
    listener: Option<diagnostics::Listener>,
    clock: Option<Clock>,
    /// A function, so that programs without it do not contain the service.
    #[cfg(feature = "in-process")]
    pub(super) file: Option<fn() -> Result<Guard, Error>>,
}

impl Builder {
    /// Announces categories (the `CATEGORIES` of [`categories!`](crate::categories)), so that
    /// services can list them before they are first used.
    pub fn categories(mut self, categories: &[&'static Category]) -> Self {
        self.categories.extend_from_slice(categories);
        self
    }

    /// Connects to the tracing service of the system, and waits for it in the background if it does
    /// not run.
    ///
    /// The address is in `PERFETTO_PRODUCER_SOCK_NAME`, or else it is the standard one
    /// (`docs/spec/wire-protocol.md` §1).
    ///
    /// A program is recorded only some milliseconds after it has connected. A short-lived program
    /// may end before that. If the environment variable `ESATTO_WAIT_MS` is set,
    /// [`start`](Self::start) waits until a session records this program, at most this many
    /// milliseconds, and says on stderr if none did. Then all data sources that the session wants
    /// have started: track events, and each [`Source`](crate::Source) that is registered. With
    /// `ESATTO_WAIT_FOR=service`, it waits only for the service and its running sessions, and not
    /// for a service that refuses this process.
    /// `esatto record` sets both for the program that it runs. The program itself can call
    /// [`Tracing::wait_until_enabled`] or
    /// [`Source::wait_until_enabled`](crate::Source::wait_until_enabled), or record from the
    /// beginning with [`StartupTracing`](crate::StartupTracing).
    pub fn system(mut self) -> Self {
        self.system = true;
        self
    }

    /// Makes events available to sessions of this process ([`Session`](crate::Session)), without a
    /// daemon (feature `in-process`).
    #[cfg(feature = "in-process")]
    pub fn in_process(mut self) -> Self {
        self.in_process = Some(Place::here());
        self
    }

    /// Uses another address for the system's service: a path, `@name` or `host:port`.
    pub fn socket(mut self, address: impl Into<String>) -> Self {
        self.socket = Some(address.into());
        self.system()
    }

    /// Connects to the system's service with sockets that another process connects, for processes
    /// that may not do so themselves. The control thread calls `ask` for each socket; the answer
    /// may come later.
    ///
    /// ```no_run
    /// use std::os::unix::net::UnixStream;
    ///
    /// let tracing = esatto::Tracing::builder()
    ///     .socket_factory(|request| {
    ///         std::thread::spawn(move || match UnixStream::connect("/run/perfetto/traced-producer.sock") {
    ///             Ok(socket) => request.deliver(socket),
    ///             Err(_) => drop(request), // asks again later
    ///         });
    ///     })
    ///     .start()?;
    /// # Ok::<(), esatto::Error>(())
    /// ```
    pub fn socket_factory(mut self, ask: impl Fn(SocketRequest) + Send + Sync + 'static) -> Self {
        self.socket_factory = Some(SocketFactory::new(ask, connection::deliver_socket));
        self
    }

    /// Sets the name of this process at the service. The default is the program's name.
    pub fn producer_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Requests a size for the shared memory buffer, in KiB. 0 leaves the choice to the service
    /// (256 KiB in pages of 4); with a service inside this process, it is 4 MiB.
    ///
    /// Pages are 4, 8, 16 or 32 KiB. Each thread that traces holds one.
    pub fn shared_memory(mut self, size_kb: u32, page_size_kb: u32) -> Self {
        self.shm_size_hint_kb = size_kb;
        self.shm_page_size_hint_kb = page_size_kb;
        self
    }

    /// Sets how long finished chunks of shared memory may wait for further ones before the program
    /// tells the service: 5 ms by default. Waiting saves wake-ups of both. Commits that a caller
    /// waits for, and those that free a quarter of the memory, are sent at once.
    pub fn batch_commits(mut self, delay: Duration) -> Self {
        self.batch_delay = Some(delay);
        self
    }

    /// Fills the lengths of nested messages into chunks that wait to be sent, instead of sending
    /// them later, if the service allows it. Useful only with
    /// [`batch_commits`](Self::batch_commits).
    pub fn direct_patching(mut self) -> Self {
        self.direct_patching = true;
        self
    }

    /// Sets the id of this process's track in traces, for programs whose other parts use it. The
    /// default is derived from the system's data about the process. Has no effect after something
    /// was recorded.
    pub fn process_uuid(mut self, uuid: u64) -> Self {
        self.process_uuid = Some(uuid);
        self
    }

    /// Sets what track events do when shared memory is full, unless a session's config says
    /// otherwise. By default they are dropped.
    pub fn buffer_exhausted(mut self, exhausted: BufferExhausted) -> Self {
        self.exhausted = Some(exhausted);
        self
    }

    /// Keeps the tracks of this process's threads apart from the tracks of the operating system's
    /// events for the same threads. By default readers draw them together.
    pub fn apart_from_system_tracks(self) -> Self {
        announcement::keep_apart_from_system_tracks();
        self
    }

    /// Asks `policy` for each [`Session`](crate::Session) of this process whether it may run. If
    /// not, the session fails as without a service. The first policy of a process stays.
    pub fn session_policy(mut self, policy: impl Fn(&Backend) -> bool + Send + Sync + 'static) -> Self {
        self.policy = Some(Box::new(policy));
        self
    }

    /// Passes to `listener` the messages of the library that no [`Error`] can carry, for instance
    /// that this user may not use the service's socket. Each line is reported once per process;
    /// without a listener, on stderr. The first listener of a process stays. It is called on the
    /// thread that reports, and must not trace.
    pub fn notices(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// Excludes the system's service from [`Backend::Any`]. A session that names the system's
    /// service still uses it.
    pub fn without_system_sessions(mut self) -> Self {
        self.no_system_sessions = true;
        self
    }

    /// Sets the clock for timestamps. Call it before the first session: if the events of a trace
    /// have different clocks, their order is wrong.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Starts the control thread, if this is the first call in the process, and adds the backends
    /// that are new.
    ///
    /// Returns at once, unless the environment says [otherwise](Self::system), or sessions of this
    /// process run already: it waits until they record it, at most a second. The connection is made
    /// later, and may fail then.
    ///
    /// # Errors
    ///
    /// If no backend is chosen and this process has none from an earlier call, unless the builder
    /// only sets options of the process, such as [`notices`](Self::notices), and announces no
    /// categories. If an address does not parse, a variable has a value that is not allowed, the
    /// file of [`file_from_env`](Self::file_from_env) cannot be created, or no thread can be
    /// started.
    #[doc(alias = "init", alias = "initialize", alias = "install", alias = "connect")]
    pub fn start(self) -> Result<Tracing, Error> {
        if !self.has_purpose() {
            return Err(Error::no_backend());
        }
        let identity = Identity {
            name: self.name.unwrap_or_else(process_info::name),
            shm_size_hint_bytes: self.shm_size_hint_kb.saturating_mul(1024),
            page_size_hint_bytes: self.shm_page_size_hint_kb.saturating_mul(1024),
            batch_delay: self.batch_delay.unwrap_or(connection::COLLECTION_INTERVAL),
            direct_patching: self.direct_patching,
        };
        let patience = if self.system { patience()? } else { None };
        let awaited = awaited()?;
        let is_of_system = self.system || self.socket_factory.is_some();
        if is_of_system {
            start_times::connecting();
        }
        let mut places = Vec::new();
        if let Some(listener) = self.listener {
            diagnostics::listen(listener);
        }
        if let Some(policy) = self.policy {
            session::set_policy(policy);
        }
        if self.no_system_sessions {
            session::connected(session::NO_SYSTEM_SESSIONS);
        }
        if let Some(factory) = self.socket_factory {
            session::connected(session::SYSTEM);
            places.push(Place::Delivered(factory));
        }
        if self.system {
            session::connected(session::SYSTEM);
            places.push(Place::Socket(SocketPlace::of_producers(self.socket.as_deref())?));
        }
        #[cfg(feature = "in-process")]
        if let Some(place) = self.in_process {
            session::connected(session::IN_PROCESS);
            places.push(place);
        }
        if let Some(clock) = self.clock {
            clock.choose();
        }
        if let Some(uuid) = self.process_uuid {
            track_uuid::set_process_uuid(uuid);
        }
        if let Some(exhausted) = self.exhausted {
            data_source::set_buffer_exhausted(exhausted);
        }
        registry::register(&self.categories);
        let control = lifecycle::start().map_err(Error::thread)?;
        for place in places {
            let mut identity = identity.clone();
            if place.backend() != Backend::System && identity.shm_size_hint_bytes == 0 {
                identity.shm_size_hint_bytes = OWN_MEMORY_KB * 1024;
            }
            control.send(Command::Produce { place, identity });
        }
        session::own_connection::await_earlier_sessions(control);
        if let Some(patience) = patience.filter(|_| !control_thread::is_current()) {
            if !data_source::wait(awaited, patience) && !patience.is_zero() {
                let what = match awaited {
                    Awaited::Session => "no session recorded this program",
                    Awaited::Service => "the tracing service did not answer this program",
                };
                let ms = patience.as_millis();
                diagnostics::say_once(format!("{what} within the {ms} ms of {WAIT_VARIABLE}; it continues without"));
            }
        }
        // After the wait, which would end with this session.
        #[cfg(feature = "in-process")]
        let file = self.file.map(|start| start()).transpose()?;
        #[cfg(not(feature = "in-process"))]
        let file = None;
        unread_variable::watch(control);
        if is_of_system {
            start_times::ready();
        }
        Ok(Tracing { _file: file })
    }
}

impl Builder {
    /// Returns whether a start has an effect: it adds a backend, there is one already, or it sets
    /// options of the process, which sessions in other processes' services also use.
    fn has_purpose(&self) -> bool {
        #[cfg(feature = "in-process")]
        let is_local = self.in_process.is_some() || self.file.is_some();
        #[cfg(not(feature = "in-process"))]
        let is_local = false;
        let has_backend = is_local || self.system || self.socket_factory.is_some();
        let sets_options = self.listener.is_some()
            || self.policy.is_some()
            || self.no_system_sessions
            || self.clock.is_some()
            || self.process_uuid.is_some()
            || self.exhausted.is_some();
        has_backend || session::is_connected() || (sets_options && self.categories.is_empty())
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder").field("system", &self.system).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Returns how long the environment wants programs to wait for a session.
fn patience() -> Result<Option<Duration>, Error> {
    let Some(text) = env::var_os(WAIT_VARIABLE) else { return Ok(None) };
    match text.to_str().and_then(|text| text.trim().parse().ok()) {
        Some(ms) => Ok(Some(Duration::from_millis(ms))),
        None => Err(Error::variable(WAIT_VARIABLE, &text.to_string_lossy(), "a number of milliseconds")),
    }
}

/// Returns what the environment wants programs to wait for.
fn awaited() -> Result<Awaited, Error> {
    match env::var_os(AWAITED_VARIABLE) {
        None => Ok(Awaited::Session),
        Some(text) if text == "session" => Ok(Awaited::Session),
        Some(text) if text == "service" => Ok(Awaited::Service),
        Some(text) => Err(Error::variable(AWAITED_VARIABLE, &text.to_string_lossy(), "`session` or `service`")),
    }
}

/// The connection of this process to tracing; keep it until the end of `main`.
///
/// Dropping it hands over the recorded data and waits for the service, at most a second. Afterwards
/// other threads can still trace.
///
/// ```no_run
/// esatto::categories! { static APP = "app"; }
///
/// fn main() -> Result<(), esatto::Error> {
///     let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start()?;
///     let _slice = esatto::slice!(APP, "main");
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "dropping it flushes: keep it until the end of `main`"]
pub struct Tracing {
    /// The recording of [`Builder::file_from_env`].
    _file: Option<Guard>,
}

/// Something that ends when it is dropped. Its type is not known here, because programs without it
/// must not contain the code that ends it.
pub(super) struct Guard {
    _guard: Box<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>,
}

#[cfg(feature = "in-process")]
impl Guard {
    pub(super) fn new(guard: impl Any + Send + Sync + UnwindSafe + RefUnwindSafe) -> Self {
        Self { _guard: Box::new(guard) }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl Tracing {
    /// Returns a builder.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Hands everything that has been recorded to the services, except the unfinished chunks of
    /// threads that are in a trace point right now. Waits until the services have it. Returns false
    /// if they did not in time, or if nothing is connected.
    ///
    /// Must not be called inside a trace point.
    pub fn flush(&self, timeout: Duration) -> bool {
        lifecycle::flush(timeout)
    }

    /// Activates triggers: names of happenings for which sessions may wait to start, to stop or to
    /// be cloned.
    ///
    /// Returns when the control thread has sent them, or after 100 ms, so the end of the process
    /// that follows, even by `abort`, does not lose them. A [flush](Self::flush) waits until the
    /// service knows the triggers, and so does the drop of this value. A service that connects
    /// later learns of them then, unless `patience` is over; this call does not wait for it.
    pub fn activate_triggers(&self, names: &[&str], patience: Duration) {
        let Some(control) = connection::handle() else { return };
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let until = Instant::now() + patience;
        let (sent, answers) = connection::answers();
        control.send(Command::With(Box::new(move |control| {
            control.activate_triggers(&names, until);
            // After the connections have done their work.
            control.call_after(Duration::ZERO, move || sent.give());
        })));
        if !control_thread::is_current() {
            answers.wait(TRIGGER_PATIENCE);
        }
    }

    /// Waits until a session records `category`, for programs that must not miss the beginning.
    /// Returns false if the time is over first.
    pub fn wait_until_enabled(&self, category: &'static Category, timeout: Duration) -> bool {
        let is_enabled = registry::wait_until(timeout, || category.instances() != 0, category);
        start_times::waited();
        is_enabled
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        self.flush(lifecycle::PATIENCE);
    }
}
