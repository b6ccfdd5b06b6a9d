//! Turns of clients: the loop handles what arrived, writes what waits, and gives each client only
//! its share of a round.

use esatto_ipc::Error as IpcError;
use esatto_service::{ClientId, Input, Service};
use esatto_shm::faults;
use rustix::event::epoll::{self, Event, EventData, EventFlags};

use super::unproved::MAX_UNPROVED_BYTES;
use super::{EventLoop, FIRST_CLIENT, MAX_WORK_PER_TURN};
use crate::client::{CallContext, Handled};
use crate::shared_secret::Refusal;
use crate::user_shares::fullest_first;

/// Calls of one connection that are handled in one turn. A call may be as cheap as a number or move
/// megabytes.
const CALLS_PER_TURN: usize = 64;
/// Work that the remaining calls of a process that has ended may cause before other clients get
/// their turn. All of its shared memory, committed at its end, is 512 Ki.
const MAX_WORK_PER_HANG_UP: u64 = 1 << 20;
/// Work of all ending connections in one round of the loop.
///
/// It protects other clients when very many connections end at the same time: each may leave many
/// calls behind, and its shared memory is scraped. The same bound applies to all changed
/// connections. The connection that exceeds it is the last of the round.
const MAX_WORK_PER_ROUND: u64 = 1 << 20;
/// Calls of a process that has ended which are handled before other clients get their turn: as many
/// commits as the kernel holds for one connection.
const CALLS_PER_HANG_UP: usize = 8192;
/// Turns of [`CALLS_PER_TURN`] calls that ending connections may take in one round of the loop,
/// even if the calls are little work.
const HANG_UP_TURNS_PER_ROUND: usize = 256;

impl EventLoop {
    /// Puts a client whose peer has closed the connection on the list.
    pub(super) fn note_hang_up(&mut self, event: &Event) {
        let (token, flags) = (event.data.u64(), event.flags);
        if token >= FIRST_CLIENT && flags.intersects(EventFlags::HUP | EventFlags::ERR) {
            self.hang_up_soon(ClientId(token));
        }
    }

    /// Handles ending connections before all others: see [`hang_up`](Self::hang_up). Those that
    /// exceed the work of this round come first in the next one.
    pub(super) fn look_after_hang_ups(&mut self) {
        let budget = Budget::new(&self.service);
        let mut turns = 0;
        for _ in 0..self.hung_up.len() {
            if budget.is_used_up(&self.service) || turns >= HANG_UP_TURNS_PER_ROUND {
                return;
            }
            let Some(id) = self.hung_up.pop_front() else { return };
            turns += self.hang_up(id);
            if self.clients.contains_key(&id) {
                self.hung_up.push_back(id);
            }
        }
    }

    fn hang_up_soon(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            if !core::mem::replace(&mut client.has_hung_up, true) {
                self.hung_up.push_back(id);
            }
        }
    }

    /// Handles a connection that its peer has closed. Returns how many turns it took.
    ///
    /// Calls that were sent before the end are still handled: the last commits of a process that
    /// ends arrive like this. They are handled all at once. The parent of that process, or a
    /// consumer that flushes, knows that the process has ended, and expects the same of the
    /// service.
    ///
    /// This covers everything that a well-behaved process leaves behind. If a process leaves more
    /// than [`CALLS_PER_HANG_UP`] calls or [`MAX_WORK_PER_HANG_UP`], the loop handles it in several
    /// turns and serves other clients in between.
    fn hang_up(&mut self, id: ClientId) -> usize {
        let begun = self.service.work();
        for turn in 1..=CALLS_PER_HANG_UP / CALLS_PER_TURN {
            let Some(client) = self.clients.get_mut(&id) else { return turn };
            // At most the bytes that the kernel holds for this connection are left.
            if client.connection.has_work() {
                self.handle_frames(id);
                if self.service.work() - begun > MAX_WORK_PER_HANG_UP {
                    return turn;
                }
                continue;
            }
            let before = client.connection.decoder().buffered();
            let result = client.connection.on_readable();
            let nothing_new = client.connection.decoder().buffered() == before;
            if result.is_err() || (nothing_new && !client.connection.has_work()) {
                self.close(id, result.err().as_ref());
                return turn;
            }
        }
        // The remaining calls come in the next round. The ended process cannot use replies.
        CALLS_PER_HANG_UP / CALLS_PER_TURN
    }

    /// Handles an event on the socket of a client.
    pub(super) fn on_socket(&mut self, id: ClientId, flags: EventFlags) {
        // A client that was closed earlier in this round may still have an event.
        let Some(client) = self.clients.get_mut(&id) else { return };
        if client.has_hung_up {
            return;
        }
        if flags.contains(EventFlags::OUT) {
            if let Err(e) = client.connection.flush_writes() {
                return self.write_failed(id, &e);
            }
        }
        if flags.contains(EventFlags::IN) {
            if let Err(e) = client.connection.on_readable() {
                return self.close(id, Some(&e));
            }
            if client.connection.is_held_up() {
                self.held_up.push(id);
            }
        }
        self.handle_frames(id);
        self.mark_dirty(id);
    }

    fn write_failed(&mut self, id: ClientId, error: &IpcError) {
        let IpcError::Disconnected = error else { return self.close(id, Some(error)) };
        // The peer may only have stopped reading. Its earlier frames are handled, but it must not
        // send more: ending connections are handled before all others.
        if let Some(client) = self.clients.get(&id) {
            client.connection.stream().shutdown_read();
        }
        self.hang_up_soon(id);
    }

    /// Handles frames of a client that have arrived, and leaves the rest for its next turn.
    fn handle_frames(&mut self, id: ClientId) {
        let begun = self.service.work();
        for _ in 0..CALLS_PER_TURN {
            let Some(client) = self.clients.get_mut(&id) else { return };
            let mut context = CallContext {
                service: &mut self.service,
                outputs: &mut self.outputs,
                attached: &mut self.attached,
                shares: &mut self.shares,
                counters: &self.counters,
            };
            let handled = client.handle_frame(&mut context);
            self.carry_out();
            self.attached = None;
            match handled {
                Ok(Handled::Frame) if self.service.work() - begun > MAX_WORK_PER_TURN => return,
                Ok(Handled::Frame) => {}
                Ok(Handled::Proof) => self.proved(id),
                Ok(Handled::Refused(refusal)) => return self.refuse(id, &refusal),
                Ok(Handled::Nothing) => return,
                Err(e) => return self.close(id, Some(&e)),
            }
        }
    }

    /// Writes queued bytes, asks the service for more where there is room, and sets the events to
    /// wait for.
    pub(super) fn look_after_clients(&mut self) {
        // Visits each client once, so that a client that always has work does not delay other
        // clients or the timers. Those that exceed the work of this round come first in the next
        // one.
        let budget = Budget::new(&self.service);
        for _ in 0..self.dirty.len() {
            if budget.is_used_up(&self.service) {
                break;
            }
            let Some(id) = self.dirty.pop_front() else { return };
            let Some(client) = self.clients.get_mut(&id) else { continue };
            client.is_dirty = false;
            if let Err(e) = client.connection.flush_writes() {
                self.write_failed(id, &e);
                continue;
            }
            let held = client.connection.held();
            if client.is_unproved() && held > MAX_UNPROVED_BYTES {
                self.refuse(id, &Refusal::TooMuch);
                continue;
            }
            self.shares.count_held(client.owner, client.held_counted, held);
            client.held_counted = held;
            if client.is_ready() {
                client.awaits_ready = false;
                self.feed(Input::Ready(id));
                self.mark_dirty(id);
                continue;
            }
            if client.connection.has_work() {
                // The client reads its replies again, so the requests that waited are handled now.
                self.handle_frames(id);
                self.mark_dirty(id);
                continue;
            }
            if client.connection.is_closed() {
                self.close(id, None);
                continue;
            }
            client.connection.rest();
            let wanted = client.wanted_interest();
            if wanted != client.interest {
                client.interest = wanted;
                let data = EventData::new_u64(id.0);
                if let Err(e) = epoll::modify(&self.epoll, &client.connection, data, wanted) {
                    self.close(id, Some(&IpcError::from(e)));
                }
            }
        }
        self.drop_hoarders();
    }

    /// Reads clients again that waited until descriptors were closed.
    pub(super) fn resume_reading(&mut self) {
        for id in core::mem::take(&mut self.held_up) {
            if let Some(client) = self.clients.get_mut(&id) {
                client.connection.resume_reading();
                self.mark_dirty(id);
            }
        }
    }

    /// Closes connections of the owner with the most held bytes, until the bound is kept.
    ///
    /// It begins with the fullest connection of the process with the most held bytes. This looks at
    /// all clients once per owner, not once per closed connection.
    fn drop_hoarders(&mut self) {
        while let Some((owner, limit)) = self.shares.overdrawn() {
            let of_owner = self.clients.values().filter(|client| client.owner == owner);
            let held = of_owner.map(|client| (client.id, client.pid(), client.held_counted));
            let fullest = fullest_first(held);
            if fullest.is_empty() {
                return;
            }
            for id in fullest {
                let held = self.clients.get(&id).map_or(0, |client| client.held_counted);
                log::warn!(
                    "more than {limit} bytes are held for {owner}, or for all clients and most of them for {owner}"
                );
                self.close(id, Some(&IpcError::HoldsTooMuch { held, limit }));
                if self.shares.overdrawn().is_none_or(|(next, _)| next != owner) {
                    break;
                }
            }
        }
    }

    pub(super) fn mark_dirty(&mut self, id: ClientId) {
        if let Some(client) = self.clients.get_mut(&id) {
            if !core::mem::replace(&mut client.is_dirty, true) {
                self.dirty.push_back(id);
            }
        }
    }

    /// Closes a connection and tells the service. Without an error, the peer closed it.
    pub(super) fn close(&mut self, id: ClientId, error: Option<&IpcError>) {
        let Some(client) = self.clients.remove(&id) else { return };
        if client.is_unproved() {
            self.forget_unproved(id);
        }
        match error {
            None => log::debug!("{} disconnected", client.name()),
            Some(e) => {
                match e {
                    IpcError::PeerNotReading { .. } | IpcError::HoldsTooMuch { .. } => {
                        self.counters.stalled_peers.add_one()
                    }
                    IpcError::FrameTooLarge { .. } | IpcError::TooManyDescriptors => {
                        self.counters.protocol_errors.add_one();
                    }
                    _ => {}
                }
                log::warn!("{} is disconnected: {e}", client.name());
            }
        }
        self.shares.leave(client.owner, client.held_counted, client.memory_counted);
        self.status_changed();
        let farewells = client.farewells();
        // Another thread closes the socket later. Until then the loop must get no more events of
        // it.
        if let Err(e) = epoll::delete(&self.epoll, &client.connection) {
            log::error!("cannot stop watching {}: {e}", client.name());
        }
        drop(client);
        for input in farewells {
            self.feed(input);
        }
    }

    /// Disconnects the clients whose memory had a fault.
    pub(super) fn close_where_memory_was_lost(&mut self) {
        let faults = faults::survived();
        if core::mem::replace(&mut self.faults, faults) == faults {
            return;
        }
        let lost: Vec<ClientId> =
            self.clients.values().filter(|client| client.has_lost_memory()).map(|client| client.id).collect();
        for id in lost {
            self.counters.memory_lost.add_one();
            if let Some(client) = self.clients.get(&id) {
                log::warn!("{} is disconnected: {}", client.name(), esatto_shm::Lost);
            }
            self.close(id, None);
        }
    }
}

/// Work that is left in a round.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// Value of [`Service::work`] at which the budget is used up.
    end: u64,
}

impl Budget {
    fn new(service: &Service) -> Self {
        Self { end: service.work() + MAX_WORK_PER_ROUND }
    }

    fn is_used_up(self, service: &Service) -> bool {
        service.work() > self.end
    }
}
