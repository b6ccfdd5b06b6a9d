//! Kinds of targets of a trace.

use std::path::PathBuf;

/// Target of the packets, which decides how it may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A file that the shell or another program opened. It is only written to, because it may hold
    /// other content (`>> log`).
    Given,
    /// A pipe or a device, which cannot be emptied.
    Stream,
    /// A named pipe that no program reads yet. The file is a handle that cannot be written to.
    UnreadPipe,
    /// A file that does not exist yet. It can be created; this was tried.
    Planned,
    /// A new file that gets its name with its first bytes. Until then it vanishes if this program
    /// is killed.
    Nameless,
    /// A new file. It is removed if it stays empty.
    Created,
    /// An existing file, to be emptied before the first write.
    Existing,
    /// An existing file that has been emptied.
    Emptied,
    /// A new file that replaces an existing one as soon as the session runs.
    Beside { temporary: PathBuf, target: PathBuf },
}
