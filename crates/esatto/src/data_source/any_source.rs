//! What the control thread knows of a type of data source.

use std::sync::Arc;

use esatto_shm::ExhaustedPolicy;

use super::{Done, Flush};
use crate::backend::Backend;
use crate::instance::{Destination, Ticket};

/// A registered type. Those methods that speak of instances are called on the control thread, but
/// for [`close`](Self::close), and none of them panics.
pub(crate) trait AnySource: Sync {
    /// What configs call it.
    fn name(&self) -> &'static str;

    /// Changes whenever [`descriptor`](Self::descriptor) does.
    fn version(&'static self) -> u64;

    /// What services are told: an encoded `DataSourceDescriptor`.
    fn descriptor(&'static self) -> Vec<u8>;

    /// The policy of an instance with this config.
    fn policy(&self, config: &[u8]) -> ExhaustedPolicy;

    /// Makes an instance; `None`: refused.
    fn setup(&'static self, assignment: Assignment) -> Option<Ticket>;

    fn start(&self, ticket: Ticket);

    /// Asks an instance to stop. It ends, by [`end`](Self::end), after `done` was dropped.
    fn stop(&self, ticket: Ticket, done: Done);

    /// Keeps trace points that begin from now on from recording into an instance that is about to
    /// [end](Self::end). Called on any thread.
    fn close(&self, ticket: Ticket);

    /// The instance is over.
    fn end(&self, ticket: Ticket);

    /// The instances that there are.
    fn tickets(&self) -> Vec<Ticket>;

    /// Locks the instances, while the process forks.
    fn hold(&'static self) -> Box<dyn HeldInstances>;

    /// Asks for what an instance has not written yet.
    fn flush(&self, ticket: Ticket, flush: Flush);

    fn clear_incremental_state(&self, ticket: Ticket);

    /// Whether an instance that was set up for `startup` can serve a session that wants `session`.
    fn can_adopt(&self, startup: &[u8], session: &[u8]) -> bool;

    /// An instance of startup tracing now belongs to a session.
    fn adopt(&self, ticket: Ticket, buffer: u16, policy: ExhaustedPolicy);
}

/// The instances of a type, locked while the process forks.
pub(crate) trait HeldInstances {
    /// In the child: there are none.
    fn forget(&mut self);
}

/// What an instance is made for.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Encoded `DataSourceConfig`.
    pub(crate) config: Arc<[u8]>,
    pub(crate) destination: Destination,
    pub(crate) backend: Backend,
    /// There is no session yet.
    pub(crate) startup: bool,
}
