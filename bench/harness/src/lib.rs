//! What the measured programs share.
//!
//! A measured program is a list of [`Case`]s. [`run`] times them in *batches*: so many operations that what they write fits into
//! the shared memory buffer, then a pause in which the service fetches it, outside the timed part. The results go to stdout, one JSON
//! object per line (`{"case": …, "ns": [ns per operation, one number per batch]}`), for the runner.

mod batch;
mod floors;
mod program;

pub use batch::{Case, Plan, Samples, pin, sample, sample_pair, thread_cpu_time};
pub use floors::{FLOORS, MOCK};
pub use program::{Program, run};
