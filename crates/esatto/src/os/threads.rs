//! Starts threads of this crate.

use std::io;
use std::thread::{self, JoinHandle};

#[cfg(unix)]
pub(crate) use super::signals::block as block_signals;

/// Does nothing: without signals no thread is interrupted.
#[cfg(not(unix))]
pub(crate) const fn block_signals() {}

/// Starts a thread. The function is boxed, because the standard library generates more than a
/// kilobyte of code for each type of function.
pub(crate) fn spawn(name: &str, run: Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).spawn(run)
}
