//! The control thread's view of a data source.

use std::sync::Arc;

use esatto_instances::Ticket;
use esatto_shm::ExhaustedPolicy;

use super::{Done, Flush};
use crate::backend::Backend;
use crate::destination::Destination;

/// A registered data source. The methods about instances are called on the control thread, except
/// [`close`](Self::close). None of them panics.
pub(crate) trait AnySource: Sync {
    /// Returns the name that configs use.
    fn name(&self) -> &'static str;

    /// Changes whenever [`descriptor`](Self::descriptor) does.
    fn version(&'static self) -> u64;

    /// Returns the encoded `DataSourceDescriptor` for services.
    fn descriptor(&'static self) -> Vec<u8>;

    /// Returns the policy of an instance with this config.
    fn policy(&self, config: &[u8]) -> ExhaustedPolicy;

    /// Makes an instance; `None`: refused.
    fn setup(&'static self, assignment: Assignment) -> Option<Ticket>;

    fn start(&self, ticket: Ticket);

    /// Returns whether an instance records; always false for track events, whose categories tell.
    fn is_recording(&self) -> bool;

    /// Asks an instance to stop. It ends, by [`end`](Self::end), after `done` was dropped.
    fn stop(&self, ticket: Ticket, done: Done);

    /// Keeps trace points that begin from now on from recording into an instance that is about to
    /// [end](Self::end). Called on any thread.
    fn close(&self, ticket: Ticket);

    /// Ends the instance.
    fn end(&self, ticket: Ticket);

    /// Returns the current instances.
    fn tickets(&self) -> Vec<Ticket>;

    /// Locks the instances while the process forks.
    fn hold(&'static self) -> Box<dyn HeldInstances>;

    /// Asks an instance to write the data that it has kept back.
    fn flush(&self, ticket: Ticket, flush: Flush);

    fn clear_incremental_state(&self, ticket: Ticket);

    /// Returns whether an instance that was set up for `startup` can serve a session that wants
    /// `session`.
    fn can_adopt(&self, startup: &[u8], session: &[u8]) -> bool;

    /// Assigns an instance of startup tracing to a session.
    fn adopt(&self, ticket: Ticket, buffer: u16, policy: ExhaustedPolicy);
}

/// The instances of a data source, locked while the process forks.
pub(crate) trait HeldInstances {
    /// Forgets the instances, in the child.
    fn forget(&mut self);
}

/// The order for a new instance.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Encoded `DataSourceConfig`.
    pub(crate) config: Arc<[u8]>,
    pub(crate) destination: Destination,
    pub(crate) backend: Backend,
    /// No session exists yet.
    pub(crate) startup: bool,
}
