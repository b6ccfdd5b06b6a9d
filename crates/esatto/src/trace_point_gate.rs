//! Gate of each thread to its trace points.

use esatto_instances::thread_gate;

thread_gate! {
    /// Gate of the calling thread to its trace points. A thread closes it while it holds a lock
    /// that trace points take.
    pub(crate) struct Gate;
}

/// Guard of a thread whose gate is closed.
pub(crate) type Closed = esatto_instances::Closed<Gate>;
