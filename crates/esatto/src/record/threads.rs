//! Threads that have traced.

use esatto_instances::{ThreadTable as _, thread_table};

use crate::sequence::Sequence;
use crate::trace_point_gate::Gate;

thread_table! {
    /// Table of the threads that have traced. The state of each has its packet sequences, and its
    /// writers for custom data sources.
    pub(crate) struct Threads: Sequence, Gate;
}

/// Hands the chunks of the calling thread to the service, so that the thread may sleep for long.
pub(crate) fn flush() {
    if let Some(mut thread) = Threads::enter() {
        thread.flush();
    }
}

/// As [`flush`], for all threads that are not in a trace point. Does nothing inside of one.
pub(crate) fn flush_all() {
    Threads::for_each_idle(|thread| thread.flush());
}

/// Hands over the chunks of threads that are not in a trace point: those of threads that have not
/// traced since the last call, or of `all`. Returns whether none of these threads has traced since
/// the last call.
pub(crate) fn reclaim(all: bool) -> bool {
    let mut all_idle = true;
    Threads::for_each_idle(|thread| all_idle &= thread.reclaim(all));
    all_idle
}

/// Makes the last event of this thread visible to services that read the memory of a running
/// program: older services do not see the packet that was written last. Costs nothing if nothing
/// was written since the last call.
pub fn empty_event() {
    if let Some(mut thread) = Threads::enter() {
        thread.sequences().for_each(|sequence| sequence.write_empty());
    }
}
