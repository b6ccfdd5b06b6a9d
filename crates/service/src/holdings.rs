//! Counts of the objects of a service, for owners that report them, and for tests that look for
//! leaks and unfair shares.

use esatto_map::LargeMap;

use crate::api::{ClientId, Peer};
use crate::producer::writers::WRITERS;
use crate::service::Service;
use crate::session::state::State;

/// Numbers of the things that a service holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Connections to the producer port.
    pub connections: usize,
    /// Producers: connections that have introduced themselves.
    pub producers: usize,
    /// Registered data sources.
    pub registrations: usize,
    /// Connections to the consumer port.
    pub consumers: usize,
    /// Sessions, with clones and with those that were freed but whose files are not complete.
    pub sessions: usize,
    /// Central buffers.
    pub buffers: usize,
    /// Open trace files.
    pub files: usize,
    /// Timers that are armed.
    pub timers: usize,
    /// Consumers with events that were not sent yet.
    pub to_notify: usize,
    /// Clones that wait for flushes or for files.
    pub pending_clones: usize,
}

/// A session of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its number.
    pub id: u64,
    /// The consumer that it belongs to, or `None` while it is detached.
    pub consumer: Option<ClientId>,
    /// The global numbers of its buffers.
    pub buffers: Vec<u16>,
    /// True if it was freed, but its file is not complete yet.
    pub is_freed: bool,
}

/// A kind of thing that users share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    /// Sessions, without clones and without [`Self::RisingSessions`].
    Sessions,
    /// Exclusive sessions that are opening. They end other sessions when they are open.
    RisingSessions,
    /// Clones, complete or under way.
    Clones,
    /// Registered writers.
    Writers,
    /// Instances of data sources in this session.
    Instances(u64),
    /// Packet sequences that this session remembers.
    Sequences(u64),
    /// Names of guarded sessions.
    GuardedNames,
}

/// The part of one client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The kind of thing.
    pub what: Shared,
    /// The client. For sessions and names only its user is known.
    pub peer: Peer,
    /// The number of things.
    pub count: u64,
}

/// Makes the shares of services on this thread small, so that a simulation reaches their ends in
/// few steps. Each client may have 4 objects of each kind, and all clients together 256 more.
///
/// Builds without debug assertions ignore the call.
pub fn make_shares_small(are_small: bool) {
    crate::fair_share::make_small(are_small);
}

impl Service {
    /// Returns the parts of all clients. They are counted from the things themselves, not from the
    /// books of the pools, so that a test can compare both.
    pub fn held(&self) -> Vec<Held> {
        let user = |uid| Peer { uid, pid: None, machine_id: 0 };
        let mut held = Vec::new();
        for session in self.sessions.values() {
            let is_exclusive = session.config.exclusive_prio.unwrap_or(0) > 0;
            let what = match session.state() {
                State::Cloned => Shared::Clones,
                _ if session.opening().is_some() && is_exclusive => Shared::RisingSessions,
                _ => Shared::Sessions,
            };
            held.push(Held { what, peer: user(session.consumer_uid), count: 1 });
            let mut instances = LargeMap::<_, u64>::new();
            session.instances.iter().for_each(|instance| *instances.get_or_default(instance.producer) += 1);
            let of_producers = instances.iter().filter_map(|(id, &count)| Some((self.producers.get(*id)?.peer, count)));
            let what = Shared::Instances(session.id.0);
            held.extend(of_producers.map(|(peer, count)| Held { what, peer, count }));
            let what = Shared::Sequences(session.id.0);
            held.extend(session.reading.sequence_ids.holders().map(|(&peer, count)| Held { what, peer, count }));
        }
        let clones = self.sessions.clones.values().map(|pending| user(pending.charge().0));
        held.extend(clones.map(|peer| Held { what: Shared::Clones, peer, count: 1 }));
        let writers = self.producers.iter().map(|producer| (producer.peer, producer.writers.len()));
        held.extend(writers.map(|(peer, count)| Held { what: Shared::Writers, peer, count }));
        let names = self.sessions.guarded_names.holders().map(user);
        held.extend(names.map(|peer| Held { what: Shared::GuardedNames, peer, count: 1 }));
        held
    }

    /// Returns the numbers of all things that this service holds.
    pub fn holdings(&self) -> Holdings {
        Holdings {
            connections: self.producers.connections(),
            producers: self.producers.len(),
            registrations: self.producers.data_sources.len(),
            consumers: self.consumers.len(),
            sessions: self.sessions.len() + self.sessions.freed.len(),
            buffers: self.buffers.len(),
            files: self.sessions.files.len(),
            timers: self.timers.len(),
            to_notify: self.consumers.with_events(),
            pending_clones: self.sessions.clones.len(),
        }
    }

    /// Returns the sessions, oldest first, and then those that were freed.
    pub fn session_views(&self) -> Vec<SessionView> {
        let view = |session: &crate::session::Session| SessionView {
            id: session.id.0,
            consumer: session.consumer(),
            buffers: session.buffers.iter().map(|buffer| buffer.0).collect(),
            is_freed: self.sessions.freed.contains_key(&session.id),
        };
        self.sessions.values().chain(self.sessions.freed.values().map(|drain| &drain.session)).map(view).collect()
    }

    /// Returns a value that changes whenever a session begins, is freed or ends.
    pub fn session_stamp(&self) -> (usize, usize, u64) {
        (self.sessions.len(), self.sessions.freed.len(), self.sessions.last.session)
    }

    /// Checks that the books of every buffer balance, and that numbers which are kept in two places
    /// are the same in both. For tests: it visits everything that the service holds.
    ///
    /// # Panics
    ///
    /// If a number is wrong.
    pub fn assert_consistent(&self) {
        self.buffers.iter().for_each(|buffer| buffer.assert_consistent());
        self.sessions.values().for_each(|session| session.reading.sequence_ids.assert_consistent());
        let instances: usize = self.sessions.values().map(|session| session.instances.len()).sum();
        assert_eq!(self.sessions.instances_of.len(), instances, "instances that no session has");
        let registrations: usize = self.producers.iter().map(|producer| producer.registrations).sum();
        assert_eq!(self.producers.data_sources.len(), registrations, "registrations that no producer has");
        assert!(
            registrations > 0 || self.producers.data_sources.are_uncharged(),
            "descriptors that no producer has are charged"
        );
        let writers =
            self.producers.iter().map(|producer| producer.writers.len().saturating_sub(WRITERS.in_force().each));
        assert!(
            self.producers.writer_pool().holds(writers.sum()),
            "writers are charged that no producer has, or the reverse"
        );
        let is_charged =
            |session: &crate::session::Session| session.instances.len() > 0 || session.members.pool.is_empty();
        assert!(self.sessions.values().all(is_charged), "instances that no session has are charged");
        let waiting = |session: &crate::session::Session| -> usize {
            session.flushes.pending.values().map(|flush| flush.waiting_for.len()).sum()
        };
        let asked: usize = self.producers.iter().map(|producer| producer.flushes.len()).sum();
        assert_eq!(asked, self.sessions.values().map(waiting).sum::<usize>(), "flushes that nobody waits for");
        self.timers.assert_consistent();
    }
}
