//! [`DataSource`]: one data source of the system with all its instances.

use core::time::Duration;
use std::os::fd::BorrowedFd;

use esatto::producer::TraceWriter;
use esatto_schema::{DataSourceConfigReader, DataSourceDescriptor};

/// Number that the service gives to an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct InstanceId(pub(crate) u64);

/// Number of the tracing session to which an instance belongs. Instances of one session exchange
/// what they observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TracingSession(pub(crate) u64);

/// An instance that the service wants, with its config.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) session: TracingSession,
    /// Encoded `DataSourceConfig`.
    pub(crate) config: Vec<u8>,
}

impl Instance {
    pub(crate) fn config(&self) -> DataSourceConfigReader<'_> {
        DataSourceConfigReader::new(&self.config)
    }
}

/// Reason why an instance, or a part of it, cannot record. People read it in the trace and in the
/// log: it says what failed, the value, why, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SetupError(pub(crate) String);

/// Ids that one read of the kernel's events met. The worker passes them to the other data sources
/// of the same session, so that each thread in the trace has a process (`docs/spec/probes.md` §1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Observed {
    /// Threads whose name or process may have changed: forget them before `tids`.
    pub(crate) renamed: Vec<i32>,
    /// Threads that events name, in the order of the events, without repetitions.
    pub(crate) tids: Vec<i32>,
    /// Files that events name: device (in the encoding of user space) and inode number.
    pub(crate) inodes: Vec<(u64, u64)>,
}

/// Observations of one turn, with the session that each belongs to.
pub(crate) type Observations = Vec<(TracingSession, Observed)>;

/// Time of CLOCK_MONOTONIC since boot. Ticks are aligned to multiples of their period on it.
pub(crate) type Monotonic = Duration;

/// One data source of the system with all its instances.
///
/// The worker calls its methods on one thread. An instance is set up, started, and stopped. Calls
/// for an id that is not known are ignored: the service may ask for an instance whose set-up
/// failed.
/// Methods read and write as much as one turn allows and return; `deadline` of the past asks for
/// the next turn.
pub(crate) trait DataSource {
    /// Describes the data source to the service.
    fn descriptor(&self) -> DataSourceDescriptor;

    /// Prepares an instance so that its start takes little time.
    ///
    /// # Errors
    ///
    /// The reason why the instance cannot record. The worker logs it, writes it into the trace and
    /// acknowledges start and stop nevertheless.
    fn set_up(&mut self, instance: Instance) -> Result<(), SetupError>;

    /// Lets an instance record into `writer`. The writer waits while the shared memory is full.
    fn start(&mut self, id: InstanceId, writer: TraceWriter);

    /// Writes all that happened until now, and flushes the writer of the instance.
    fn flush(&mut self, id: InstanceId, observations: &mut Observations);

    /// Ends an instance, whether it was started or not, and undoes what its set-up changed in the
    /// system. Flushes its writer.
    fn stop(&mut self, id: InstanceId);

    /// Lets an instance write again what later packets need.
    fn clear_incremental_state(&mut self, _id: InstanceId) {}

    /// Returns when the next call of [`tick`](Self::tick) is due.
    fn deadline(&self) -> Option<Monotonic> {
        None
    }

    /// Reads what is due at `now`.
    fn tick(&mut self, _now: Monotonic, _observations: &mut Observations) {}

    /// Takes what a data source of the same session observed.
    fn observe(&mut self, _session: TracingSession, _observed: &Observed) {}

    /// Returns descriptors whose readiness to be read asks for a [`tick`](Self::tick).
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}
