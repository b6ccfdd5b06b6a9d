//! The life of the control thread in this process: its start, forks and its end.

mod flush;
mod fork;
mod shutdown;

use std::io;

use crate::category::registry;
use crate::connection::{self, Handle};

pub(crate) use flush::{PATIENCE, flush};
pub use shutdown::shutdown;

/// Starts the control thread, if it does not run, and registers for forks and for the end of the
/// process.
pub(crate) fn start() -> io::Result<&'static Handle> {
    fork::watch();
    shutdown::watch();
    fork::watch_missed();
    registry::forget_parent();
    connection::start()
}
