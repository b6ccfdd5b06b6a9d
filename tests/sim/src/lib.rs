//! The tracing service in a simulated world: everything that can go wrong, from one seed.
//!
//! ```text
//! cargo xtask sim --seeds 1000          so many seeds; a failing one is printed with the command that replays it
//! cargo xtask sim --seed 17 --trace     one of them, with every event
//! cargo xtask sim --found               the seeds that once found a bug
//! cargo xtask sim --planted all         whether it still finds the bugs that are planted in the service
//! ```
//!
//! A long run keeps what is done in a file, runs beside other work, and goes on after an
//! interruption: `nice -n 19 cargo xtask sim --from 300000 --seeds 100000 --jobs 1 --state FILE`.
//!
//! # How it works
//!
//! [`world`] has a queue of events on a clock of its own, and chance from the seed ([`rng`]); there
//! is no thread, no socket and no real time in it, so a seed always does the same. First the seed
//! draws its [`profile`]: which faults it has and how many of everything, so that seeds differ
//! widely. Then [`producer`]s, [`hostile`] ones, some that choose the [`worst`] order, and
//! [`consumer`]s, [`hostile_consumer`]s too, connect, do what they do, crash and come again, until the service has taken ten
//! thousand inputs. What they say are the real frames (`esatto_ipc`), which arrive late, in pieces,
//! or up to any byte. Honest producers write into real shared memory by its real rules
//! (`esatto_shm`); when the service reads that of a hostile one, the memory changes between any two
//! loads ([`memory`]). Between the clients and the core stands what the daemon would be (`owner`):
//! timers that fire late or although they were cancelled, [`files`] that are slow and full, memory
//! that cannot be had, clocks that jump.
//!
//! # What is checked
//!
//! | invariant | how |
//! |---|---|
//! | each packet is read once, whole and in order; each loss is marked where it was, and counted once | [`mod@reference`], a simple buffer of our own by the spec, gets the same chunks; all packets, marks and counters must be equal (`verify`). Packets of honest producers say which they are in every byte ([`content`]): what is missing must be marked, and nothing else |
//! | no session affects another's data | routes, commands, trusted fields and sequence ids are followed here ([`model`], `lifecycle`, `replies`), of hostile producers, too |
//! | every request is answered, once and when it is time | each call is kept until its last reply; flushes, ends of sessions and files have deadlines |
//! | what must happen again and again does | flushes, clearing of state and file writes of running sessions are never long overdue |
//! | sessions begin with the priority they want, or are told that it cannot be had | `priority` |
//! | what a relay tells of its machine is in each trace, once, and nothing else is | [`relay`] |
//! | a compressed pass is one whole packet of the same packets | decompressed before it is compared |
//! | a session's filter is applied to each packet of it, and to no other's | what comes out is held against what the filter makes of the reference's packet (`filters`) |
//! | a clone holds what its source held and had not read when it was copied, and neither changes the other | `clones`: the reference is cloned when the service says that it copies |
//! | files hold whole packets, and failures are told | [`files`] |
//! | an input costs its bytes, what comes out of it, and the state that it is about | `work` |
//! | nobody has more than a share of what users share, and a newcomer gets one | counted from outside; one seed in four has a scenario for it ([`shares`]), with small shares |
//! | memory stays within its bound | a counting allocator ([`alloc`]), against a sum of named constants |
//! | nothing is left when all clients are gone | `esatto_service::holdings`, timers, calls, files, and what dropping the service frees |
//!
//! The planted bugs (`esatto_planted`) show that the simulator still notices mistakes: each has a seed that finds it.
//!
//! # What it cannot see
//!
//! * Races of real threads and memory orderings: those are loom's (`crates/shm/tests/loom.rs`).
//! * What the real daemon does with sockets and files: `tests/` has real ones.
//! * A mistake that is made alike in the reference and in the service. The reference was written from the same spec by people who knew the
//!   service; only what is checked of honest producers' packets does not depend on it.
//! * The content of packets of the service itself, but for statistics, what is told of other machines, and what may come only once. No
//!   profile draws a compressed trace with a limit of its size.
//! * In which order a step scraped and read it is told by the service itself (`esatto_service::probe`).
#![warn(missing_docs)]

pub mod alloc;
pub mod clones;
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
pub mod run;
pub mod runner;
pub mod shares;
pub mod state;
mod verify;
mod watched_memory;
mod work;
pub mod world;
pub mod worst;
