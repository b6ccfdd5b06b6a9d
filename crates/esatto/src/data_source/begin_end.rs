//! Trace points that consist of several calls, for [`crate::raw`].

use esatto_instances::ThreadTable as _;
use esatto_shm::TraceWriter;

use super::{DataSource, Source};
use crate::record::Threads;

/// Writer and state that a thread has for one instance.
#[derive(Debug)]
pub struct Open<'a, T: DataSource> {
    /// Writes packets.
    pub packets: &'a mut TraceWriter,
    /// See [`Context::thread_state`](crate::Context::thread_state).
    pub thread_state: &'a mut T::ThreadState,
    /// See [`Context::incremental_state`](crate::Context::incremental_state).
    pub incremental_state: &'a mut T::IncrementalState,
    /// The caller has to call [`end`].
    pub has_end: bool,
}

/// Begins the part of a trace point that is for one instance, in a thread that has
/// [entered](crate::raw::enter) a trace point. Returns `None` if the instance has ended.
pub fn begin<T: DataSource, R>(source: &'static Source<T>, slot: usize, f: impl FnOnce(Open<'_, T>) -> R) -> Option<R> {
    Threads::with_stayed(|thread| {
        let writer = thread.sources().writer(source.table(), source.index(), slot)?;
        writer.begin();
        // Does here what `end` does, so that most callers need not call it.
        writer.state_is_new = false;
        Some(f(Open {
            packets: &mut writer.packets,
            thread_state: &mut writer.thread_state,
            incremental_state: &mut writer.incremental_state,
            has_end: writer.intercepted,
        }))
    })
    .flatten()
}

/// Ends the part that [`begin`] began, if [`Open::has_end`] asks for it.
pub fn end<T: DataSource>(source: &'static Source<T>, slot: usize) {
    Threads::with_stayed(|thread| {
        if let Some(writer) = thread.sources_as_they_are().existing_writer(source.table(), source.index(), slot) {
            writer.end();
        }
    });
}
