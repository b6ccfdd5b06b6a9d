//! The life of the control thread in this process: its start, forks and its end.

mod fork;
mod shutdown;

use std::io;

use crate::connection::{self, Handle};

pub use shutdown::shutdown;
pub(crate) use shutdown::{PATIENCE, flush};

/// Starts the control thread, if it does not run, and registers for forks and for the end of the
/// process.
pub(crate) fn start() -> io::Result<&'static Handle> {
    fork::watch();
    shutdown::watch();
    connection::start()
}
