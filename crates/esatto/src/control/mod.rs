//! The control thread: every connection, every command of the service and every session of the program lives on it.
//!
//! Threads that trace never wait for it. They leave finished chunks with the arbiter, which wakes it.

mod answers;
mod call;
mod consumer;
mod endpoint;
#[cfg(feature = "in-process")]
mod files;
mod link;
#[cfg(feature = "in-process")]
mod local;
mod pace;
mod producer;
mod producer_link;
mod session_link;
mod sink;
mod startup;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use esatto_map::Map;
use esatto_shm::FlushCallback;

use answers::Answer;
pub(crate) use answers::answers;
pub(crate) use consumer::{Command as SessionCommand, SetUp, Sink as ReadSink};
pub(crate) use endpoint::Identity;
pub(crate) use pace::COLLECTION_INTERVAL;
use pace::Pace;
use producer_link::ProducerLink;
pub(crate) use session_link::{LiveSession, SessionLink};
pub(crate) use startup::{StartupId, StartupRequest};

/// For links of all kinds.
pub(crate) use {
    call::{Call, Reply, SharedMemory},
    link::LinkEvent,
};

/// For producers that the program drives itself.
#[cfg(all(any(target_os = "linux", target_os = "android"), not(esatto_portable)))]
pub(crate) mod low_level {
    pub use super::endpoint::Event;
    pub(crate) use super::endpoint::{Endpoint, Identity, Tag};
    pub(crate) use super::link::LinkEvent;
    pub(crate) use crate::platform::{SocketLink, Waker};
}

use crate::data_source::Completion;
use crate::error::Error;
use crate::platform::{self, Address, Waker};
use crate::session::{Backend, Completer};

/// Name of the control thread.
const THREAD_NAME: &str = "esatto";

/// Where a service is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Behind a socket.
    Socket(Address),
    /// In this process. Started by a pointer, so that programs which never ask for it do not contain it.
    #[cfg(feature = "in-process")]
    Here(StartService),
}

#[cfg(feature = "in-process")]
pub(crate) type StartService = fn() -> Box<dyn local::InProcess>;

impl Place {
    /// The address of the socket, if it is one.
    pub(crate) const fn address(&self) -> Option<&Address> {
        match self {
            Self::Socket(address) => Some(address),
            #[cfg(feature = "in-process")]
            Self::Here(_) => None,
        }
    }

    /// What kind of service that is.
    pub(crate) const fn backend(&self) -> Backend {
        match self {
            Self::Socket(_) => Backend::System,
            #[cfg(feature = "in-process")]
            Self::Here(_) => Backend::InProcess,
        }
    }

    /// The service in this process.
    #[cfg(feature = "in-process")]
    pub(crate) fn here() -> Self {
        Self::Here(local::start)
    }

    /// Whether both are the same service.
    fn is(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

/// Names a session on the control thread.
pub(crate) type SessionId = u64;

/// What other threads ask of the control thread.
pub(crate) enum Command {
    /// Serve a producer backend, unless there is one for this place already.
    Produce { place: Place, identity: Identity },
    /// Commit everything and tell each service's answer.
    Flush(Answer),
    /// Connect a consumer. By a function, so that what consumers are made of is only in programs that have some.
    OpenSession { id: SessionId, open: OpenSession },
    /// Do something with a session.
    Session(SessionId, SessionCommand),
    /// End a session and its connection.
    CloseSession(SessionId),
    /// The list of categories has grown.
    CategoriesChanged,
    /// Data sources were registered, or their descriptors changed.
    SourcesChanged,
    /// A data source has answered.
    Completed(Completion),
    /// Tell the services of triggers, for as long as that makes sense.
    Trigger { names: Vec<String>, until: Instant },
    /// Record before there is a session.
    Startup(Box<StartupRequest>),
    /// End that, as far as there is no session still.
    AbortStartup { id: StartupId, done: Completer },
    /// Call a function.
    Run(Box<dyn FnOnce() + Send>),
}

/// Makes a session, on the control thread.
pub(crate) type OpenSession = Box<dyn FnOnce(&mut Surroundings<'_>) -> Box<dyn LiveSession> + Send>;

/// The other threads' end of the control thread.
pub(crate) struct Handle {
    waker: Waker,
    commands: Arc<Mutex<Vec<Command>>>,
}

impl Handle {
    pub(crate) fn send(&self, command: Command) {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command);
        self.waker.wake();
    }
}

static HANDLE: OnceLock<Handle> = OnceLock::new();

/// The control thread, if it was started.
pub(crate) fn handle() -> Option<&'static Handle> {
    HANDLE.get()
}

/// The control thread, started now if it was not.
pub(crate) fn start() -> io::Result<&'static Handle> {
    /// Keeps two callers from starting two threads.
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = HANDLE.get() {
        return Ok(handle);
    }
    let waker = Waker::new()?;
    let commands: Arc<Mutex<Vec<Command>>> = Arc::default();
    let mut control = Control {
        waker: waker.clone(),
        commands: Arc::clone(&commands),
        producers: Vec::new(),
        sessions: Map::new(),
        pace: Pace::new(),
        #[cfg(feature = "in-process")]
        local: None,
    };
    thread::Builder::new().name(THREAD_NAME.into()).spawn(move || control.run())?;
    Ok(HANDLE.get_or_init(|| Handle { waker, commands }))
}

/// Whether this is the control thread, which must not wait for itself.
pub(crate) fn is_current_thread() -> bool {
    THREAD.get().is_some_and(|&id| id == thread::current().id())
}

/// Lets the control thread look for work.
pub(crate) fn wake() {
    if let Some(handle) = handle() {
        handle.waker.wake();
    }
}

/// Calls `function` on the control thread; here, if there is none.
pub(crate) fn run_there(function: Box<dyn FnOnce() + Send>) {
    match handle() {
        Some(handle) => handle.send(Command::Run(function)),
        None => function(),
    }
}

/// Calls a function of the user on the control thread, which outlives its panics: the panic hook has told of them.
pub(crate) fn shielded(function: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(function));
}

static THREAD: OnceLock<ThreadId> = OnceLock::new();

struct Control {
    waker: Waker,
    commands: Arc<Mutex<Vec<Command>>>,
    producers: Vec<ProducerLink>,
    sessions: Map<SessionId, Box<dyn LiveSession>>,
    pace: Pace,
    #[cfg(feature = "in-process")]
    local: Option<Box<dyn local::InProcess>>,
}

/// What a link needs of the thread that it lives on.
pub(crate) struct Surroundings<'c> {
    #[cfg(feature = "in-process")]
    pub(crate) local: &'c mut Option<Box<dyn local::InProcess>>,
    #[cfg(not(feature = "in-process"))]
    pub(crate) local: core::marker::PhantomData<&'c mut ()>,
}

impl Control {
    fn run(&mut self) {
        THREAD.get_or_init(|| thread::current().id());
        loop {
            self.wait();
            let commands = core::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner));
            for command in commands {
                self.command(command);
            }
            self.pump();
            let now = Instant::now();
            self.pace.reclaim(now);
            if self.pace.collected(now) {
                self.pump();
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Produce { place, identity } => {
                if !self.producers.iter().any(|p| p.place().is(&place)) {
                    self.producers.push(ProducerLink::new(place, identity, self.waker.clone()));
                }
            }
            Command::Flush(done) => {
                for producer in &mut self.producers {
                    let done = done.clone();
                    let callback: FlushCallback = Box::new(move || done.give());
                    producer.flush(callback);
                }
            }
            Command::OpenSession { id, open } => {
                let (mut around, sessions) = self.split();
                sessions.insert(id, open(&mut around));
            }
            Command::Session(id, command) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.command(command, Instant::now());
                }
            }
            Command::CloseSession(id) => {
                let (mut around, sessions) = self.split();
                if let Some(session) = sessions.remove(&id) {
                    session.close(&mut around);
                }
            }
            // The producers look for themselves.
            Command::CategoriesChanged | Command::SourcesChanged => {}
            Command::Run(function) => shielded(function),
            Command::Completed(completion) => self.completed(completion),
            Command::Startup(request) => self.start_up(*request),
            Command::AbortStartup { id, done } => {
                for producer in &mut self.producers {
                    producer.producer().abort_startup(id);
                }
                done.complete(Ok(Vec::new()));
            }
            Command::Trigger { names, until } => {
                for producer in &mut self.producers {
                    producer.producer().activate_triggers(names.clone(), until);
                }
            }
        }
    }

    fn start_up(&mut self, request: StartupRequest) {
        #[cfg(feature = "in-process")]
        let mut around = Surroundings { local: &mut self.local };
        #[cfg(not(feature = "in-process"))]
        let mut around = Surroundings { local: core::marker::PhantomData };
        match self.producers.iter_mut().find(|producer| producer.place().backend() == Backend::System) {
            Some(producer) => producer.start_up(request, Instant::now(), &mut around),
            None => {
                let error = Error::startup("needs a program that connects to the system's service");
                request.done.complete(Err(error));
            }
        }
    }

    fn completed(&mut self, completion: Completion) {
        match completion {
            Completion::Told => {}
            Completion::Stopped { source, ticket } => {
                // The last of what threads have written for it.
                crate::thread::flush_all();
                source.end(ticket);
                for producer in &mut self.producers {
                    producer.producer().ended(ticket);
                }
            }
            Completion::Flushed { connection, request } => {
                for producer in &mut self.producers {
                    producer.producer().flushed(connection, request);
                }
            }
        }
    }

    fn split(&mut self) -> (Surroundings<'_>, &mut Map<SessionId, Box<dyn LiveSession>>) {
        #[cfg(feature = "in-process")]
        let around = Surroundings { local: &mut self.local };
        #[cfg(not(feature = "in-process"))]
        let around = Surroundings { local: core::marker::PhantomData };
        (around, &mut self.sessions)
    }

    /// Lets every link work until none has anything left to do.
    fn pump(&mut self) {
        #[cfg(feature = "in-process")]
        if let Some(local) = &mut self.local {
            local.work();
        }
        let now = Instant::now();
        loop {
            #[cfg(feature = "in-process")]
            let mut around = Surroundings { local: &mut self.local };
            #[cfg(not(feature = "in-process"))]
            let mut around = Surroundings { local: core::marker::PhantomData };
            let mut busy = false;
            for producer in &mut self.producers {
                // To the end: a session that is started next finds the data sources of this process registered.
                while producer.pump(now, &mut around) {
                    busy = true;
                }
            }
            for session in self.sessions.values_mut() {
                busy |= session.pump(now, &mut around);
            }
            if !busy {
                break;
            }
        }
    }

    /// Sleeps until a socket, another thread or a timer wants something.
    fn wait(&self) {
        let producers = self.producers.iter().filter_map(ProducerLink::interest);
        let sessions = self.sessions.values().filter_map(|session| session.interest());
        platform::wait(&self.waker, producers.chain(sessions), self.timeout());
        self.waker.clear();
    }

    fn timeout(&self) -> Option<Duration> {
        let now = Instant::now();
        let retry = self.producers.iter().filter_map(ProducerLink::deadline);
        let deadline = self.sessions.values().filter_map(|session| session.next_deadline());
        let next = retry.chain(deadline).min().map(|at| at.saturating_duration_since(now));
        #[cfg(feature = "in-process")]
        let timer = self.local.as_ref().and_then(|local| local.next_deadline());
        #[cfg(not(feature = "in-process"))]
        let timer = None;
        let look = self.pace.next().map(|at| at.saturating_duration_since(now));
        [next, timer, look].into_iter().flatten().min()
    }
}
