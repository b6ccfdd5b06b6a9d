//! Trace points that consist of several calls, for [`crate::raw`].

use esatto_shm::TraceWriter;

use super::{DataSource, Source};
use crate::sys::threads;

/// What a thread has for one instance.
#[derive(Debug)]
pub struct Open<'a, T: DataSource> {
    /// Writes packets.
    pub packets: &'a mut TraceWriter,
    /// See [`Context::thread_state`](crate::Context::thread_state).
    pub thread_state: &'a mut T::ThreadState,
    /// See [`Context::incremental_state`](crate::Context::incremental_state).
    pub incremental_state: &'a mut T::IncrementalState,
    /// Whether what is begun has to be [ended](end).
    pub has_end: bool,
}

/// Begins the part of a trace point that is for one instance, in a thread that [entered](crate::raw::enter). `None`: the instance has ended.
pub fn begin<T: DataSource, R>(source: &'static Source<T>, slot: usize, f: impl FnOnce(Open<'_, T>) -> R) -> Option<R> {
    threads::with_stayed(|thread| {
        let writer = thread.sources().writer(source, source.index(), slot)?;
        writer.begin();
        // As if it had ended already: mostly nothing else is left to be done then.
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

/// Ends what [`begin`] began, where that [has to be](Open::has_end).
pub fn end<T: DataSource>(source: &'static Source<T>, slot: usize) {
    threads::with_stayed(|thread| {
        if let Some(writer) = thread.sources_as_they_are().existing(source, source.index(), slot) {
            writer.end();
        }
    });
}
