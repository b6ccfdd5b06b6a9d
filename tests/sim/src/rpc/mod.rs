//! The RPC library (`esatto_ipc`) in a simulated world. Its real channels and server connections
//! run over simulated streams, by a simulated clock.
//!
//! ```text
//! cargo xtask sim --world rpc --seeds 10000
//! cargo xtask sim --world rpc --seed 17 --trace
//! ```
//!
//! # How it works
//!
//! A seed has a few connections. Each has a `Channel` at one end and a `ServerConnection` at the
//! other, or a hostile peer in the place of one of them (`hostile`). An end is driven by a loop
//! that waits for a level-triggered socket and a time, or by a future with edge-triggered events,
//! as on tokio. The `world` repeats one step: it draws one of all the things that can happen now.
//! Some bytes arrive, one end works, a future is polled, a handler answers a call that it has kept,
//! a timer fires, or time jumps. Programs begin calls of all kinds, with futures or callbacks, and
//! drop some of them. Handlers answer at once, later, or never, or are futures (`handlers`).
//!
//! A stream (`net`) has a buffer of 1 byte to 200 KB in each direction. It takes and delivers any
//! number of bytes, stalls, and is cut at any byte. It also changes the extensions of the first
//! bind, so that the two sides know different ones.
//!
//! The library reaches streams and clock through `esatto_ipc::simulated`. The feature of this name
//! adds nothing else.
//!
//! # The invariants
//!
//! | invariant | check |
//! |---|---|
//! | every call ends once, with the server's result or the documented error | `calls`: each side notes what it saw of a call; both must agree with its plan |
//! | replies come in order, none is lost or doubled, none comes after the end | each byte of a message depends on its call and its number |
//! | frames keep the rules of `docs/spec/wire-protocol.md` §23: windows, credit, cancels, extensions, one answer for each request | `wire` follows the bytes of both honest ends, and knows nothing of the library |
//! | no deadline is early, and none is forgotten | against the simulated clock, on both sides |
//! | a descriptor arrives with its message, and none leaks | `descriptors` are pipes: the reading end shows if another end is open |
//! | hooks are told in the documented order; each begin has its end; both sides have the same flow id | `hook_record` |
//! | nobody is busy for nothing | an end that asks for a turn must do something in it |
//! | every waker is called | when nothing can happen any more, no call, handler or future may wait |
//! | memory is bounded | a counting allocator, against a sum of the documented limits |
//! | a hostile peer, or the end of a connection, disturbs no other connection | the calls of honest connections must have their results |
//! | nothing is left when everything is dropped | bytes, descriptors, open calls |
//!
//! # What it cannot see
//!
//! * Threads. Everything runs on one thread, so no lock is ever contended, and nothing blocks:
//!   `Call::wait`, `StreamCall::next_reply` and `ServerConnection::block` have tests with real
//!   sockets (`crates/ipc/tests/rpc`).
//! * The real sockets and generated code. The same tests have both.

#![allow(clippy::incompatible_msrv, reason = "only the newest compiler builds tests")]

mod calls;
mod descriptors;
mod handlers;
mod hook_record;
mod hostile;
mod net;
mod profile;
mod programs;
mod services;
mod shared;
mod wire;
mod world;

use world::World;

use crate::alloc;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RpcTally {
    /// Steps.
    pub steps: u64,
    /// Connections.
    pub connections: u64,
    /// Calls that clients began.
    pub calls: u64,
    /// Replies that they took.
    pub replies: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Events that hooks were told of.
    pub hook_events: u64,
    /// The most bytes that the library held.
    pub peak_bytes: u64,
}

/// Runs a seed.
///
/// # Panics
///
/// If an invariant does not hold; the message names it.
pub fn run(seed: u64, is_traced: bool) -> RpcTally {
    hook_record::install();
    shared::begin(seed, is_traced);
    drop(handlers::take_kept());
    alloc::reset();
    let mut world = World::new(seed);
    if is_traced {
        println!("{:?}", world.profile);
    }
    world.open();
    while world.tally.steps < world.profile.steps {
        world.step();
    }
    let tally = world.close();
    shared::end();
    tally
}
