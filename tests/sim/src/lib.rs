//! Simulator of the tracing service: everything that can go wrong, drawn from one seed. The module
//! [`rpc`] does the same with the RPC library.
//!
//! ```text
//! cargo xtask sim --seeds 1000          run 1000 seeds; for each failure, print how to replay it
//! cargo xtask sim --seed 17 --trace     run one seed and print every event
//! cargo xtask sim --world rpc           run the RPC library instead
//! cargo xtask sim --found               run the seeds that once found a bug
//! cargo xtask sim --planted all         check that the simulator finds each planted bug
//! ```
//!
//! A long run keeps its progress in a file, so that it continues after an interruption:
//! `nice -n 19 cargo xtask sim --from 300000 --seeds 100000 --jobs 1 --state FILE`.
//!
//! # How it works
//!
//! [`world`] has a queue of events with a clock of its own, and random numbers from the seed
//! ([`rng`]). It has no thread, no socket and no real time, so a seed always does the same. First
//! the seed draws its [`profile`]: the faults that it has, and the number of each thing, so that
//! seeds differ widely. Then clients connect, act, crash and connect again, until the service has
//! taken ten thousand inputs. Clients are [`producer`]s and [`consumer`]s, [`hostile`] producers,
//! [`hostile_consumer`]s, and producers that choose the [`worst`] order.
//!
//! Clients send the real frames (`esatto_ipc`). Frames arrive late, in pieces, or cut at any byte
//! ([`connection`]).
//! Honest producers write into real shared memory by its real rules (`esatto_shm`). When the
//! service reads the memory of a hostile producer, the memory changes between any two loads
//! ([`memory`]). `owner` stands for the daemon: its timers fire late or after they were cancelled,
//! its [`files`] are slow and full, memory cannot be allocated, and clocks jump.
//!
//! # The invariants
//!
//! | invariant | check |
//! |---|---|
//! | each packet is read once, whole and in order; each loss is marked at its place, and counted once | [`mod@reference`], a simple buffer that follows the spec, gets the same chunks. All packets, marks and counters must be equal (`verify`). Every byte of an honest packet depends on its number ([`content`]), so that each missing packet must be marked, and no other |
//! | no session affects another's data | the simulator follows routes, commands, trusted fields and sequence ids ([`model`], `lifecycle`, `replies`), also those of hostile producers |
//! | every request is answered once, in time | the simulator keeps each call until its last reply; flushes, ends of sessions and files have deadlines |
//! | periodic work continues | flushes, clearing of state and file writes of running sessions are never long overdue |
//! | a session begins with its priority, or its consumer learns that the priority cannot be set | `priority` |
//! | each trace contains what a relay tells of its machine, once, and nothing else | [`relay`] |
//! | a compressed pass is one whole packet of the same packets | the simulator decompresses it before it compares |
//! | a session's filter applies to each of its packets, and to no other session's | the simulator filters the reference's packet and compares (`filters`) |
//! | a clone holds what its source held unread when it was copied; neither changes the other | `clones`: the simulator clones the reference when the service reports its copy |
//! | files hold whole packets, and failures are reported | [`files`] |
//! | an input costs in proportion to its bytes, its outputs, and the state that it is about | `work` |
//! | no user has more than a share of what users share, and a new user gets one | counted from outside; one seed in four has a scenario with small shares ([`shares`]) |
//! | memory stays within its bound | a counting allocator ([`alloc`]), against a sum of named constants |
//! | nothing is left when all clients are gone | `esatto_service::holdings`, timers, calls, files, and the bytes that dropping the service frees |
//!
//! The planted bugs (`esatto_planted`) show that the simulator still notices mistakes: each has a
//! seed that finds it.
//!
//! # What it cannot see
//!
//! * Races of real threads and memory orderings. The loom models check them
//!   (`crates/shm/tests/loom`).
//! * The real daemon's use of sockets and files. The tests in `tests/` have real ones.
//! * A mistake that is the same in the reference and in the service. The reference was written from
//!   the same spec by people who knew the service. Only the checks of honest producers' packets do
//!   not depend on it.
//! * The content of the service's own packets, except for statistics, descriptions of other
//!   machines, and packets that may come only once. No profile draws a compressed trace with a size
//!   limit.
//! * The order in which one step scraped and read. The service itself reports it
//!   (`Service::observe`).
#![warn(missing_docs)]

pub mod alloc;
pub mod clones;
pub mod connection;
pub mod consumer;
pub mod content;
pub mod files;
mod filters;
pub mod found;
pub mod hostile;
pub mod hostile_consumer;
mod lifecycle;
pub mod memory;
pub mod model;
mod owner;
pub mod pb;
mod priority;
pub mod producer;
pub mod profile;
pub mod reference;
pub mod relay;
mod replies;
pub mod rng;
pub mod rpc;
pub mod run;
pub mod runner;
pub mod shares;
pub mod state;
mod verify;
mod watched_memory;
mod work;
pub mod world;
pub mod worst;
