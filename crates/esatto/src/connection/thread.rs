//! The control thread: it owns every connection and every session of the program, and executes the
//! commands of services and of other threads.
//!
//! Threads that trace never wait for it. They leave finished chunks with the arbiter, which wakes
//! it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_map::Map;
use esatto_shm::FlushCallback;

use super::consumer::{LiveSession, SessionCommand};
use super::mailbox::Mailbox;
use super::pause;
use super::pending_operation::{Completer, Pending};
use super::producer::{Identity, ReconnectingProducer, StartupId, StartupRequest, Unreached};
use super::reclaiming::Reclaiming;
use super::service_address::Place;
use super::transport::InProcess;
use super::wait_group::Answer;
use super::wakeups::Pace;
use crate::backend::Backend;
use crate::callbacks::shielded;
use crate::data_source::Completion;
use crate::error::Error;
use crate::os::{self, OwnedFd, Waker};

/// The number of a session on the control thread.
pub(crate) type SessionId = u64;

/// Commands of other threads to the control thread.
pub(crate) enum Command {
    /// Connect to a service as a producer, unless there is such a connection.
    Produce { place: Place, identity: Identity },
    /// Commit everything and pass on each service's answer. If it is the last time, also tell the
    /// losses that threads would tell later.
    Flush { done: Answer, is_last: bool },
    /// Connect a consumer. The function keeps the code for consumers out of programs that have
    /// none.
    OpenSession { id: SessionId, open: OpenSession },
    /// Pass a command to a session.
    Session(SessionId, SessionCommand),
    /// End a session and its connection.
    CloseSession(SessionId),
    /// Process the answer of a data source.
    Completed(Completion),
    /// Run a rare command. The function keeps its code out of programs that do not need it.
    With(Box<dyn FnOnce(&mut Control) + Send>),
    /// Call a function.
    Run(Box<dyn FnOnce() + Send>),
    /// Stop all sessions, because the process ends, and pass on their answers.
    StopSessions(Answer),
    /// Disconnect from everything and end.
    Shutdown,
}

/// Makes a session, on the control thread.
pub(crate) type OpenSession = Box<dyn FnOnce(&mut InProcess) -> Box<dyn LiveSession> + Send>;

/// The last flush, which begins when all copies of this are dropped.
struct LastFlush(Option<Answer>);

impl Drop for LastFlush {
    fn drop(&mut self) {
        if let (Some(done), Some(control)) = (self.0.take(), super::handle()) {
            control.send(Command::With(Box::new(move |control| control.flush_without_startups(&done))));
        }
    }
}

/// Everything that the control thread owns.
pub(crate) struct Control {
    waker: Waker,
    commands: Arc<Mailbox<Command>>,
    producers: Vec<ReconnectingProducer>,
    sessions: Map<SessionId, Box<dyn LiveSession>>,
    pace: Pace,
    reclaiming: Reclaiming,
    /// Functions to call at a time.
    later: Vec<(Instant, Box<dyn FnOnce() + Send>)>,
    is_over: bool,
    in_process: InProcess,
}

impl Control {
    pub(super) fn new(waker: Waker, commands: Arc<Mailbox<Command>>) -> Self {
        Self {
            waker,
            commands,
            producers: Vec::new(),
            sessions: Map::new(),
            pace: Pace::new(),
            reclaiming: Reclaiming::new(),
            later: Vec::new(),
            is_over: false,
            in_process: None,
        }
    }

    pub(super) fn run(&mut self) {
        while !self.is_over {
            self.wait();
            pause::rest_if_wanted();
            for command in self.commands.take() {
                self.command(command);
            }
            self.pump();
            let now = Instant::now();
            self.reclaiming.reclaim(now);
            if self.pace.collected(now) {
                self.pump();
            }
            while let Some(due) = self.later.iter().position(|(at, _)| *at <= now) {
                shielded(self.later.swap_remove(due).1);
            }
        }
        self.shut_down();
    }

    /// Ends all sessions and connections. Pending operations fail.
    fn shut_down(&mut self) {
        let sessions = core::mem::take(&mut self.sessions);
        for (_, session) in sessions {
            session.close(&mut self.in_process);
        }
        let mut producers = core::mem::take(&mut self.producers);
        for producer in &mut producers {
            producer.shut_down(&mut self.in_process);
        }
        // Instances that have stopped by now end in the ordinary way.
        for command in self.commands.take() {
            self.command(command);
        }
        self.commands.close();
        // All other instances end now.
        for source in crate::data_source::registered() {
            source.tickets().into_iter().for_each(|ticket| source.end(ticket));
        }
        crate::record::flush_all();
        if let Some(service) = &mut self.in_process {
            service.complete_files();
        }
    }

    fn has_startups(&mut self) -> bool {
        self.producers.iter_mut().any(|producer| producer.producer().has_startups())
    }

    /// Ends the startup tracing that no session has adopted, so that no session gets its events,
    /// and flushes.
    fn flush_without_startups(&mut self, done: &Answer) {
        for producer in &mut self.producers {
            producer.producer().abort_startups();
        }
        // The answers of the data sources.
        for command in self.commands.take() {
            self.command(command);
        }
        self.flush(done, true);
    }

    fn flush(&mut self, done: &Answer, is_last: bool) {
        for producer in &mut self.producers {
            let done = done.clone();
            let callback: FlushCallback = Box::new(move || done.give());
            producer.flush(callback, is_last);
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Produce { place, identity } => {
                if !self.producers.iter().any(|p| p.place().is(&place)) {
                    self.producers.push(ReconnectingProducer::new(place, identity, self.waker.clone()));
                }
            }
            Command::Flush { done, is_last: true } if self.has_startups() => {
                // Sessions may be about to adopt what was recorded for them. Their commands come
                // before the answers to these flushes.
                let last = Arc::new(LastFlush(Some(done)));
                for producer in &mut self.producers {
                    let last = Arc::clone(&last);
                    producer.flush(Box::new(move || drop(last)), false);
                }
            }
            Command::Flush { done, is_last } => self.flush(&done, is_last),
            Command::OpenSession { id, open } => {
                let session = open(&mut self.in_process);
                self.sessions.insert(id, session);
            }
            Command::Session(id, command) => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.command(command, Instant::now());
                }
            }
            Command::CloseSession(id) => {
                if let Some(session) = self.sessions.remove(&id) {
                    session.close(&mut self.in_process);
                }
            }
            Command::StopSessions(done) => {
                for session in self.sessions.values_mut() {
                    let done = done.clone();
                    let (stopped, completer) = Pending::new(|_| Ok(()));
                    stopped.then(move |_| done.give());
                    session.command(SessionCommand::Stop(completer), Instant::now());
                }
            }
            Command::Shutdown => self.is_over = true,
            Command::Run(function) => shielded(function),
            Command::Completed(completion) => self.completed(completion),
            Command::With(function) => function(self),
        }
    }

    /// Calls a function after a time, unless the control thread ends before.
    pub(crate) fn call_after(&mut self, time: Duration, function: impl FnOnce() + Send + 'static) {
        self.later.push((Instant::now() + time, Box::new(function)));
    }

    /// Passes the socket that was asked for under a number to its connection; `None` if there is
    /// none.
    pub(crate) fn deliver(&mut self, number: u64, mut socket: Option<OwnedFd>) {
        for producer in &mut self.producers {
            producer.deliver(number, &mut socket, Instant::now());
        }
    }

    /// Activates triggers at all services, until the time is over.
    pub(crate) fn activate_triggers(&mut self, names: &[String], until: Instant) {
        for producer in &mut self.producers {
            producer.producer().activate_triggers(names.to_vec(), until);
        }
    }

    /// Answers when the instances that the system's services want at present have started.
    pub(crate) fn sync(&mut self, done: &Answer) {
        for producer in self.producers.iter_mut().filter(|p| p.place().backend() == Backend::System) {
            let done = done.clone();
            producer.producer().sync(Box::new(move || done.give()), Unreached::Wait);
        }
    }

    /// As [`sync`](Self::sync), for connections to some services that exist or are being made.
    /// `done` makes a function for each. It is dropped, uncalled, if the connection fails.
    pub(crate) fn sync_connecting(&mut self, is_wanted: impl Fn(&Backend) -> bool, done: impl Fn() -> FlushCallback) {
        for producer in self.producers.iter_mut().filter(|producer| is_wanted(&producer.place().backend())) {
            producer.sync_connecting(done());
        }
    }

    /// Ends the instances of startup tracing that no session has adopted.
    pub(crate) fn abort_startup(&mut self, id: StartupId, done: Completer) {
        for producer in &mut self.producers {
            producer.producer().abort_startup(id);
        }
        done.complete(Ok(Vec::new()));
    }

    /// Begins startup tracing.
    pub(crate) fn start_up(&mut self, request: StartupRequest) {
        match self.producers.iter_mut().find(|producer| producer.place().backend() == Backend::System) {
            Some(producer) => producer.start_up(request, Instant::now(), &mut self.in_process),
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
                // Includes the last packets that threads have written for it.
                crate::record::flush_all();
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

    /// Lets every connection work until none has anything left to do.
    fn pump(&mut self) {
        if let Some(service) = &mut self.in_process {
            service.work();
        }
        let now = Instant::now();
        loop {
            let mut busy = false;
            for producer in &mut self.producers {
                // Until nothing is left: a session that starts next must find the data sources of
                // this process registered.
                while producer.pump(now, &mut self.in_process) {
                    busy = true;
                }
            }
            for session in self.sessions.values_mut() {
                busy |= session.pump(now, &mut self.in_process);
            }
            if !busy {
                break;
            }
        }
    }

    /// Sleeps until a socket, another thread or a timer needs the control thread.
    fn wait(&self) {
        let producers = self.producers.iter().filter_map(ReconnectingProducer::interest);
        let sessions = self.sessions.values().filter_map(|session| session.interest());
        os::wait(&self.waker, producers.chain(sessions), self.timeout());
        self.waker.clear();
    }

    fn timeout(&self) -> Option<Duration> {
        let now = Instant::now();
        let retry = self.producers.iter().filter_map(ReconnectingProducer::deadline);
        let deadline = self.sessions.values().filter_map(|session| session.next_deadline());
        let next = retry.chain(deadline).min().map(|at| at.saturating_duration_since(now));
        let timer = self.in_process.as_ref().and_then(|service| service.next_deadline());
        let later = self.later.iter().map(|(at, _)| *at).min();
        let look = [self.pace.next(), self.reclaiming.next(), later].into_iter().flatten().min();
        let look = look.map(|at| at.saturating_duration_since(now));
        [next, timer, look].into_iter().flatten().min()
    }
}
