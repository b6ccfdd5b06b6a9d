//! The run of one seed.

use crate::memory::take_seen;
use crate::profile::MS;
use crate::world::{Event, Phase, Tally, World, trace};
use crate::{alloc, consumer::Consumer, shares};
use esatto_service::Service;

/// Inputs of a seed before its end begins.
const INPUTS: u64 = 10_000;

/// Fewest sessions of a seed, unless [`MOST_INPUTS`] is reached.
const SESSIONS: u64 = 3;

/// Inputs of a seed that waits for sessions: all consumers may keep theirs for long.
const MOST_INPUTS: u64 = 20 * INPUTS;

/// Time within which all sessions end after all clients were told to finish.
const CLOSING_NS: u64 = 120_000 * MS;

/// Time within which everything arrives that was sent before the last client left.
const LEAVING_NS: u64 = 60_000 * MS;

/// Bytes that a service without clients may hold: scratch space, tables that do not shrink, the
/// history of triggers.
const LEFT_OVER: u64 = 512 << 10;

/// Bytes that a service keeps about a machine whose relay has left.
const MACHINE: u64 = 24 << 10;

/// Runs a seed, in a build with debug assertions: other builds of the service do not report their
/// steps (`Service::observe`).
///
/// # Panics
///
/// If an invariant does not hold; the message names it.
pub fn run(seed: u64, is_traced: bool) -> Tally {
    take_seen(&mut Vec::new());
    alloc::reset();
    let mut world = World::new(seed, is_traced);
    trace!(world, "{:?}", world.profile);
    world.open();
    while world.tally.inputs < INPUTS || (world.tally.sessions < SESSIONS && world.tally.inputs < MOST_INPUTS) {
        assert!(world.step(), "somebody always does something");
    }
    world.close();
    let tally = world.tally;
    drop(world);
    shares::run(seed);
    tally
}

impl World {
    fn open(&mut self) {
        for _ in 0..self.profile.producers.min(10) {
            self.new_producer();
        }
        for _ in 0..3 {
            Consumer::connect(self);
        }
        self.after(MS, Event::Arrival);
        if self.profile.clock_jumps {
            self.after(500 * MS, Event::ClockJump);
        }
    }

    /// Ends everything, and checks that nothing is left.
    fn close(&mut self) {
        self.phase = Phase::Closing;
        trace!(self, "the end begins");
        for _ in 0..2 {
            for uid in [0, 1000, 1001, 1002] {
                Consumer::connect_as(self, uid);
            }
        }
        let until_ns = self.now_ns + CLOSING_NS + 10 * self.profile.late_ns;
        while self.service.holdings().sessions > 0 && self.next_event_ns().is_some_and(|at_ns| at_ns < until_ns) {
            self.step();
        }
        for view in self.service.session_views() {
            let actor = view.consumer.and_then(|client| self.actors[client.0 as usize].as_ref());
            trace!(self, "left: {view:?} {actor:?}");
        }
        self.phase = Phase::Leaving;
        for client in 0..self.clients.len() {
            if self.clients[client].is_alive {
                if self.rng.percent(50) { self.crash(client) } else { self.leave(client) }
            }
        }
        let until_ns = self.now_ns + LEAVING_NS + 10 * self.profile.late_ns;
        while self.next_event_ns().is_some_and(|at_ns| at_ns < until_ns) {
            self.step();
        }
        self.assert_nothing_is_left();
    }

    fn assert_nothing_is_left(&mut self) {
        let holdings = self.service.holdings();
        assert_eq!(holdings, Default::default(), "nothing leaks: all clients are gone");
        assert!(self.timers.is_empty(), "nothing leaks: timers {:?}", self.timers);
        assert!(self.calls.is_empty(), "every request is answered: {:?}", self.calls);
        self.files.values().for_each(crate::files::SimFile::assert_whole);
        let before = alloc::held();
        let config = self.service_config();
        drop(core::mem::replace(&mut self.service, Service::new(config)));
        let held = before - alloc::held();
        let machines = MACHINE * self.model.machines.len().min(256) as u64;
        assert!(held <= LEFT_OVER + machines, "nothing leaks: {held} bytes are held for nobody");
    }
}
