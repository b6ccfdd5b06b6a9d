//! Instances that record before a session wants them (`docs/spec/client-library.md` §12).
//!
//! Each writes to a *reservation* in place of a buffer. The arbiter keeps everything back until all
//! reservations are resolved.
//!
//! ```text
//! waiting ─ a session sets up an instance that wants the same ─► adopted ─ it starts ─► an ordinary instance
//!    └───── time-out, abort, connection lost ─────────────────────┴──────────────────► ending ─► gone
//! ```

use core::mem;
use std::sync::Arc;
use std::time::Instant;

use esatto_instances::Ticket;
use esatto_schema::DataSourceConfigReader;
use esatto_shm::Arbiter;

use crate::backend::Backend;
use crate::connection::pending_operation::Completer;
use crate::data_source::{self, AnySource, Assignment, Done};
use crate::destination::Destination;
use crate::os::process_info::Pid;
use crate::start_times;

/// Runs once, on the control thread.
pub(crate) type Callback = Box<dyn FnOnce() + Send>;

/// The reservation of an instance that a session has adopted or that has ended.
pub(crate) struct Settled {
    pub(crate) reservation: u16,
    /// The function to call, if the instance was the last one of its request.
    pub(crate) told: Option<Callback>,
}

/// The number of a request on the control thread.
pub(crate) type StartupId = u64;

/// The data sources to start, and the callbacks.
pub(crate) struct StartupRequest {
    pub(crate) id: StartupId,
    /// Makes the list of requests, if this is the first one: [`startups`].
    pub(crate) keeper: fn() -> Box<dyn Startups>,
    /// Encoded `DataSourceConfig`s.
    pub(crate) configs: Vec<Arc<[u8]>>,
    /// When to give up.
    pub(crate) deadline: Option<Instant>,
    /// Gets the number of instances.
    pub(crate) done: Completer,
    pub(crate) on_adopted: Option<Callback>,
    pub(crate) on_aborted: Option<Callback>,
}

impl StartupRequest {
    /// Encodes the number of instances as an answer.
    pub(crate) fn answer(instances: usize) -> Vec<u8> {
        instances.to_le_bytes().to_vec()
    }
}

/// All requests on one connection that are not settled.
///
/// It is a trait with one implementation, so that only programs that make a request contain the
/// code of startup tracing.
pub(crate) trait Startups: Send {
    /// Sets up and starts the instances of a request.
    fn begin(&mut self, request: StartupRequest, arbiter: &Arc<Arbiter>, pid: &Pid, backend: &Backend);

    /// Returns an instance for a session that wants `config`, if there is one. It is then started,
    /// but not set up.
    fn adopt(&mut self, config: &[u8]) -> Option<(&'static dyn AnySource, Ticket)>;

    /// Handles the start of an adopted instance's session. The caller binds the reservation.
    fn started(&mut self, ticket: Ticket) -> Option<Settled>;

    /// Gives up one request, or all. Returns the instances that sessions had set up and now lose.
    fn abort(&mut self, id: Option<StartupId>) -> Vec<Ticket>;

    /// Gives up requests whose time is over. Returns the same as [`abort`](Self::abort).
    fn expire(&mut self, now: Instant) -> Vec<Ticket>;

    /// Returns whether all requests are settled.
    fn is_empty(&self) -> bool;

    /// Returns the time at which to give up the next request.
    fn deadline(&self) -> Option<Instant>;

    /// Handles the end of an instance, if it is one of these. The caller gives up the reservation.
    fn ended(&mut self, ticket: Ticket) -> Option<Settled>;
}

/// Makes an empty list of requests.
pub(crate) fn startups() -> Box<dyn Startups> {
    Box::new(Requests::default())
}

#[derive(Default)]
struct Requests {
    /// The last reservation used.
    reservation: u16,
    requests: Vec<Request>,
}

struct Request {
    id: StartupId,
    deadline: Option<Instant>,
    /// Instances that do not belong to a session yet, or that are ending.
    instances: Vec<Instance>,
    aborted: bool,
    on_adopted: Option<Callback>,
    on_aborted: Option<Callback>,
}

struct Instance {
    source: &'static dyn AnySource,
    ticket: Ticket,
    config: Arc<[u8]>,
    reservation: u16,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    /// A session has set it up but not started it.
    Adopted,
    Ending,
}

impl Startups for Requests {
    fn begin(&mut self, request: StartupRequest, arbiter: &Arc<Arbiter>, pid: &Pid, backend: &Backend) {
        let mut instances = Vec::new();
        let sources = data_source::registered();
        for config in request.configs {
            let name = DataSourceConfigReader::new(&config).name().unwrap_or_default();
            for &source in sources.iter().filter(|source| source.name().as_bytes() == name) {
                let Some(reservation) = self.reservation.checked_add(1) else { continue };
                let in_memory = || Destination::reservation(Arc::clone(arbiter), reservation);
                let destination = Destination::of_config(&config, in_memory).with_pid(pid.clone());
                let assignment =
                    Assignment { config: Arc::clone(&config), destination, backend: backend.clone(), startup: true };
                if let Some(ticket) = source.setup(assignment) {
                    self.reservation = reservation;
                    source.start(ticket);
                    let config = Arc::clone(&config);
                    instances.push(Instance { source, ticket, config, reservation, phase: Phase::Waiting });
                }
            }
        }
        if !instances.is_empty() {
            // Only now does the program record, if it asks for this at its start.
            start_times::waited();
        }
        request.done.complete(Ok(StartupRequest::answer(instances.len())));
        if !instances.is_empty() {
            self.requests.push(Request {
                id: request.id,
                deadline: request.deadline,
                instances,
                aborted: false,
                on_adopted: request.on_adopted,
                on_aborted: request.on_aborted,
            });
        }
    }

    fn adopt(&mut self, config: &[u8]) -> Option<(&'static dyn AnySource, Ticket)> {
        let name = DataSourceConfigReader::new(config).name()?;
        let instance = self.requests.iter_mut().flat_map(|request| &mut request.instances).find(|instance| {
            instance.phase == Phase::Waiting
                && instance.source.name().as_bytes() == name
                && instance.source.can_adopt(&instance.config, config)
        })?;
        instance.phase = Phase::Adopted;
        Some((instance.source, instance.ticket))
    }

    fn started(&mut self, ticket: Ticket) -> Option<Settled> {
        let (at, request) = self.find(ticket)?;
        let reservation = request.instances.remove(at).reservation;
        let settled = request.instances.is_empty();
        let told = request.on_adopted.take_if(|_| settled);
        self.requests.retain(|request| !request.instances.is_empty());
        Some(Settled { reservation, told })
    }

    fn abort(&mut self, id: Option<StartupId>) -> Vec<Ticket> {
        let mut taken = Vec::new();
        for request in self.requests.iter_mut().filter(|request| id.is_none_or(|id| id == request.id)) {
            request.abort(&mut taken);
        }
        taken
    }

    fn expire(&mut self, now: Instant) -> Vec<Ticket> {
        let mut taken = Vec::new();
        for request in self.requests.iter_mut().filter(|request| request.deadline.is_some_and(|at| at <= now)) {
            request.abort(&mut taken);
        }
        taken
    }

    fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    fn deadline(&self) -> Option<Instant> {
        self.requests.iter().filter_map(|request| request.deadline).min()
    }

    fn ended(&mut self, ticket: Ticket) -> Option<Settled> {
        let (at, request) = self.find(ticket)?;
        let reservation = request.instances.remove(at).reservation;
        let settled = request.instances.is_empty();
        let told = request.on_aborted.take_if(|_| settled);
        self.requests.retain(|request| !request.instances.is_empty());
        Some(Settled { reservation, told })
    }
}

impl Requests {
    fn find(&mut self, ticket: Ticket) -> Option<(usize, &mut Request)> {
        self.requests.iter_mut().find_map(|request| {
            let at = request.instances.iter().position(|instance| instance.ticket == ticket)?;
            Some((at, request))
        })
    }
}

impl Request {
    fn abort(&mut self, taken: &mut Vec<Ticket>) {
        self.deadline = None;
        if mem::replace(&mut self.aborted, true) {
            return;
        }
        for instance in &mut self.instances {
            match mem::replace(&mut instance.phase, Phase::Ending) {
                Phase::Ending => continue,
                Phase::Adopted => taken.push(instance.ticket),
                Phase::Waiting => {}
            }
            instance.source.stop(instance.ticket, Done::stopped(instance.source, instance.ticket));
        }
    }
}
