//! List of the data sources of this machine.

use crate::data_source::DataSource;
use crate::ftrace::{FrozenFtrace, Ftrace, Places};
use crate::inode_file_map::InodeFileMap;
use crate::instances::{Instances, Source};
use crate::journald::Journald;
use crate::metatrace::Metatrace;
use crate::process_smaps::ProcessSmaps;
use crate::process_stats::ProcessStats;
use crate::sys_stats::SysStats;
use crate::sysfs_power::SysfsPower;
use crate::system_info::SystemInfo;
use crate::worker::{SourceGroup, monotonic_now};

/// Returns all data sources. Those of the first group read files of the kernel, which answer at
/// once. Each further group reads disks, which may hang, and has a thread of its own.
pub(crate) fn all() -> Vec<SourceGroup> {
    let kernel: Vec<Box<dyn DataSource + Send>> = vec![
        Box::new(Ftrace::new(Places::of_this_machine(), monotonic_now)),
        Box::new(FrozenFtrace::new(Places::of_this_machine())),
        source::<SysfsPower>(),
        source::<Metatrace>(),
        source::<ProcessStats>(),
        source::<SysStats>(),
        source::<SystemInfo>(),
    ];
    vec![
        SourceGroup { thread: "probes", sources: kernel },
        SourceGroup { thread: "journal", sources: vec![source::<Journald>()] },
        SourceGroup { thread: "inodes", sources: vec![source::<InodeFileMap>()] },
        // The kernel visits all pages of a process, whose memory is locked meanwhile.
        SourceGroup { thread: "smaps", sources: vec![source::<ProcessSmaps>()] },
    ]
}

/// Makes the data source of instances that do not know of each other.
fn source<S: Source + Send + 'static>() -> Box<dyn DataSource + Send> {
    Box::new(Instances::<S>::new(monotonic_now))
}
