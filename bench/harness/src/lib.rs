//! Shared code of the measured programs.
//!
//! A measured program is a list of [`Case`]s. [`run`] times them in *batches*. The events of a
//! batch fit into the shared memory buffer. Then there is a pause, which is not timed, in which the
//! service fetches them. The results go to stdout, one JSON object per line ([`run`] says which),
//! for the runner.

mod batch;
mod floors;
mod mock;
mod operation;
mod program;

pub use batch::{Batch, Case, Plan, Samples, pin, sample, sample_flood, thread_cpu_time};
pub use floors::FLOORS;
pub use mock::MOCKS;
pub use operation::{Operation, TEXT};
pub use program::{Finished, Options, Program, run};
