//! SQL over traces on a cluster of Apache Ballista.
//!
//! [`connect`] gives esatto-query an engine whose plans run on other machines. The client plans a
//! statement to its end, as it does without a cluster, and sends the physical plan. So a scheduler
//! needs to know nothing of views, names and functions, and a lake needs no program of ours.
//!
//! ```text
//! main ─┬─ connect ─ cluster      the engine: notes, damaged traces
//!       │            ├─ planner   where a plan runs: shapes that run here, subqueries that go first
//!       │            └─ job       a plan is sent, followed, and its rows are fetched
//!       │               └─ patience  a job without progress is given up
//!       ├─ scheduler, executor    the programs of Ballista with our codec; reports of tasks
//!       └─ codec ─ scan ─ wire    a scan of traces as files of a task; its bytes
//! ```

#![forbid(unsafe_code)]

mod address;
mod cluster;
mod codec;
mod executor;
mod job;
mod patience;
mod planner;
pub mod program;
mod reports;
mod scan;
mod scheduler;
mod shapes;
mod subqueries;
mod wire;

pub use cluster::connect;

/// Bytes of a message between the programs.
const MAX_MESSAGE: u32 = 64 << 20;
