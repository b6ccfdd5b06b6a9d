//! Forks of the process: hooks around them, a number that tells parent and child apart, and locks
//! that are free in the child.

mod generation;
mod static_lock;

pub(crate) use super::at_fork::*;
pub(crate) use generation::Generation;
pub(crate) use static_lock::hold_for_fork;
pub use static_lock::{Guard, StaticMutex, StaticRwLock};

/// A lock that is held while the process forks.
pub(crate) trait Locked {}

impl<T> Locked for T {}
