//! List of the data sources of this machine.

use crate::data_source::DataSource;
use crate::instances::Instances;
use crate::metatrace::Metatrace;
use crate::process_stats::ProcessStats;
use crate::worker::monotonic_now;

/// Data sources that work on one thread.
pub(crate) struct SourceGroup {
    /// Name of the thread, at most 15 bytes.
    pub(crate) thread: &'static str,
    pub(crate) sources: Vec<Box<dyn DataSource + Send>>,
}

/// Returns all data sources. Those of the first group read files of the kernel, which answer at
/// once. Each further group reads disks, which may hang, and has a thread of its own.
pub(crate) fn all() -> Vec<SourceGroup> {
    let quick: Vec<Box<dyn DataSource + Send>> = vec![
        Box::new(Instances::<Metatrace>::new(monotonic_now)),
        Box::new(Instances::<ProcessStats>::new(monotonic_now)),
    ];
    vec![SourceGroup { thread: "probes", sources: quick }]
}
