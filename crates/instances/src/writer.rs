//! Traits of the state that a thread keeps for an instance; the SDK implements them.

use std::sync::Arc;

use crate::recording::Recording;
use crate::slots::Slots;

/// Writer of one thread for one instance. Dropping it returns its chunk of shared memory.
pub trait InstanceWriter: Send + 'static {
    /// Forgets the incremental state, so that the next packet starts the sequence over.
    fn clear_incremental_state(&mut self);

    /// Ends the chunk and hands it over. Called by another thread while the owner is not in a trace
    /// point, or by the owner.
    fn flush(&mut self);

    /// Returns whether nothing was written since the last call.
    fn is_idle(&mut self) -> bool;
}

/// Packet sequence of one thread for one instance of the data source that a [`ThreadTable`] is made
/// for: track events. Threads find it by its slot, without a virtual call.
///
/// [`ThreadTable`]: crate::ThreadTable
pub trait Sequence: InstanceWriter + Sized {
    /// Instance that the sequence is written for.
    type Instance: Send + Sync + 'static;

    /// Returns the table of the instances.
    fn slots() -> &'static Slots<Self::Instance>;

    /// Makes the sequence of the calling thread for the instance in a slot.
    fn new(slot: usize, instance: &Self::Instance) -> Self;
}

/// Custom data source: one of those that share the [`SourceWriters`](crate::SourceWriters) of a
/// thread.
pub trait Source: Sync + 'static {
    /// Instance that sessions have made.
    type Instance: Send + Sync + 'static;

    /// Writer of one thread for one instance.
    type Writer: InstanceWriter;

    /// Only the thread that made a writer may drop it.
    const WRITERS_ARE_BOUND: bool;

    /// Returns the table of the instances.
    fn slots(&self) -> &Slots<Self::Instance>;

    /// Returns the word that says which instances record.
    fn recording(&self) -> &Recording;

    /// Makes the writer of the calling thread for the instance in a slot.
    fn create_writer(&'static self, slot: usize, instance: Arc<Self::Instance>) -> Self::Writer;
}
