//! The control thread: every connection, every command of the service and every session of the program lives on it.
//!
//! Threads that trace never wait for it. They leave finished chunks with the arbiter, which wakes it.

pub(crate) mod consumer;
#[cfg(feature = "in-process")]
mod in_process;
pub(crate) mod pending;
pub(crate) mod producer;
mod thread_handle;
pub(crate) mod transport;
mod wait_group;
mod wakeups;

use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_map::Map;
use esatto_shm::FlushCallback;

pub(crate) use consumer::{LiveSession, ReadSink, SessionCommand, SessionLink, SetUp};
use producer::ProducerLink;
pub(crate) use producer::{Identity, StartupId, StartupRequest, startups};
use thread_handle::Commands;
pub(crate) use thread_handle::{Pause, handle, is_current_thread, pause, start, stop};
pub(crate) use transport::SocketFactory;
pub use transport::SocketRequest;
use wait_group::Answer;
pub(crate) use wait_group::answers;
pub(crate) use wakeups::COLLECTION_INTERVAL;
use wakeups::Pace;

use crate::callbacks::shielded;
use crate::connection::pending::Completer;
use crate::data_source::Completion;
use crate::error::Error;
use crate::os::{self, Address, OwnedFd, Waker};
use crate::session::Backend;

/// Where a service is.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// Behind a socket.
    Socket(SocketPlace),
    /// Behind sockets that somebody else connects.
    Delivered(SocketFactory),
    /// In this process. Started by a pointer, so that programs which never ask for it do not contain it.
    #[cfg(feature = "in-process")]
    Here(StartService),
}

/// Where a socket is, and how that is known.
#[derive(Clone, Debug)]
pub(crate) struct SocketPlace {
    pub(crate) address: Address,
    /// The program or its user has named the address, and so trusts whoever listens there.
    pub(crate) is_named: bool,
}

impl SocketPlace {
    /// An address that somebody has named.
    pub(crate) const fn named(address: Address) -> Self {
        Self { address, is_named: true }
    }

    /// The standard address, unless the variable names another one.
    pub(crate) fn standard(address: Address, variable: &str) -> Self {
        Self { address, is_named: std::env::var_os(variable).is_some() }
    }
}

#[cfg(feature = "in-process")]
pub(crate) type StartService = fn() -> Box<dyn in_process::InProcess>;

impl Place {
    /// The address of the socket, if it is one.
    pub(crate) const fn address(&self) -> Option<&Address> {
        match self {
            Self::Socket(socket) => Some(&socket.address),
            Self::Delivered(_) => None,
            #[cfg(feature = "in-process")]
            Self::Here(_) => None,
        }
    }

    /// What kind of service that is.
    pub(crate) const fn backend(&self) -> Backend {
        match self {
            Self::Socket(_) | Self::Delivered(_) => Backend::System,
            #[cfg(feature = "in-process")]
            Self::Here(_) => Backend::InProcess,
        }
    }

    /// The service in this process.
    #[cfg(feature = "in-process")]
    pub(crate) fn here() -> Self {
        Self::Here(in_process::start)
    }

    /// Whether both are the same service.
    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Socket(one), Self::Socket(other)) => one.address == other.address,
            (Self::Delivered(one), Self::Delivered(other)) => one.is(other),
            #[cfg(feature = "in-process")]
            (Self::Here(_), Self::Here(_)) => true,
            _ => false,
        }
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
    /// Do something that few programs ask for. By a function, so that it is only in those that do.
    With(Box<dyn FnOnce(&mut Control) + Send>),
    /// Call a function.
    Run(Box<dyn FnOnce() + Send>),
    /// Disconnect from everything and end.
    Shutdown,
}

/// Makes a session, on the control thread.
pub(crate) type OpenSession = Box<dyn FnOnce(&mut Surroundings<'_>) -> Box<dyn LiveSession> + Send>;

/// Lets the control thread look for work.
pub(crate) fn wake() {
    if let Some(handle) = handle() {
        handle.wake();
    }
}

/// Calls `function` on the control thread; here, if there is none.
pub(crate) fn run_there(function: Box<dyn FnOnce() + Send>) {
    match handle() {
        Some(handle) => handle.send(Command::Run(function)),
        None => function(),
    }
}

/// All that lives on the control thread.
pub(crate) struct Control {
    waker: Waker,
    commands: Arc<Commands>,
    producers: Vec<ProducerLink>,
    sessions: Map<SessionId, Box<dyn LiveSession>>,
    pace: Pace,
    is_over: bool,
    local: Local,
}

/// The service in this process, if it runs; where there is none, nothing.
#[cfg(feature = "in-process")]
type Local = Option<Box<dyn in_process::InProcess>>;
#[cfg(not(feature = "in-process"))]
type Local = ();

/// What a link needs of the thread that it lives on.
pub(crate) struct Surroundings<'c> {
    #[cfg_attr(not(feature = "in-process"), expect(dead_code, reason = "there is nothing in it"))]
    pub(crate) local: &'c mut Local,
}

impl Control {
    fn new(waker: Waker, commands: Arc<Commands>) -> Self {
        Self {
            waker,
            commands,
            producers: Vec::new(),
            sessions: Map::new(),
            pace: Pace::new(),
            is_over: false,
            local: Local::default(),
        }
    }

    fn run(&mut self) {
        while !self.is_over {
            self.wait();
            thread_handle::rest_if_wanted();
            for command in self.commands.take() {
                self.command(command);
            }
            self.pump();
            let now = Instant::now();
            self.pace.reclaim(now);
            if self.pace.collected(now) {
                self.pump();
            }
        }
        self.shut_down();
    }

    /// Ends all sessions and connections. Whoever waits for an answer gets an error.
    fn shut_down(&mut self) {
        let sessions = core::mem::take(&mut self.sessions);
        for (_, session) in sessions {
            session.close(&mut self.split().0);
        }
        let mut producers = core::mem::take(&mut self.producers);
        for producer in &mut producers {
            producer.shut_down(&mut self.split().0);
        }
        // Instances that have stopped by now, in the way they are told to.
        for command in self.commands.take() {
            self.command(command);
        }
        self.commands.close();
        // Those that take their time have had it.
        for source in crate::data_source::registered() {
            source.tickets().into_iter().for_each(|ticket| source.end(ticket));
        }
        crate::thread::flush_all();
        #[cfg(feature = "in-process")]
        if let Some(local) = &mut self.local {
            local.complete_files();
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
            Command::Shutdown => self.is_over = true,
            Command::Run(function) => shielded(function),
            Command::Completed(completion) => self.completed(completion),
            Command::With(function) => function(self),
        }
    }

    /// A socket for who asked for one, or the news that there is none.
    pub(crate) fn deliver(&mut self, number: u64, mut socket: Option<OwnedFd>) {
        for producer in &mut self.producers {
            producer.deliver(number, &mut socket, Instant::now());
        }
    }

    /// Tells the services of triggers, for as long as that makes sense.
    pub(crate) fn activate_triggers(&mut self, names: &[String], until: Instant) {
        for producer in &mut self.producers {
            producer.producer().activate_triggers(names.to_vec(), until);
        }
    }

    /// Ends startup tracing, as far as there is no session still.
    pub(crate) fn abort_startup(&mut self, id: StartupId, done: Completer) {
        for producer in &mut self.producers {
            producer.producer().abort_startup(id);
        }
        done.complete(Ok(Vec::new()));
    }

    /// Records before there is a session.
    pub(crate) fn start_up(&mut self, request: StartupRequest) {
        let mut around = Surroundings { local: &mut self.local };
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
        (Surroundings { local: &mut self.local }, &mut self.sessions)
    }

    /// Lets every link work until none has anything left to do.
    fn pump(&mut self) {
        #[cfg(feature = "in-process")]
        if let Some(local) = &mut self.local {
            local.work();
        }
        let now = Instant::now();
        loop {
            let mut around = Surroundings { local: &mut self.local };
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
        os::wait(&self.waker, producers.chain(sessions), self.timeout());
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
