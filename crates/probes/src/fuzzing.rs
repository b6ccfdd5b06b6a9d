//! Parsers of foreign bytes, for the fuzzers of the project. Not part of the API.

pub use crate::ftrace::fuzz as ftrace;
pub use crate::inode_file_map::fuzz as mountinfo;
pub use crate::journald::fuzz as journal;
pub use crate::process_smaps::fuzz as process_smaps;
pub use crate::process_stats::fuzz as process_stats;
pub use crate::sys_stats::fuzz as sys_stats;
pub use crate::system_info::fuzz as system_info;
