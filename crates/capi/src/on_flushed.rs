//! Flushes of a writer that the program asks for (`docs/spec/c-abi.md` §6).

use esatto::raw::Uncancelled;
use esatto_shm::TraceWriter;

use crate::abi::DsOnFlushed;
use crate::ffi::Argument;

/// Callback that the library calls when the service has everything that was written.
pub(crate) struct OnFlushed {
    pub(crate) callback: DsOnFlushed,
    pub(crate) argument: Argument,
}

pub(crate) fn flush(writer: &mut TraceWriter, callback: Option<OnFlushed>) {
    match callback {
        None => writer.flush(),
        Some(OnFlushed { callback, argument }) => writer.flush_with(move || {
            let argument = argument;
            let _uncancelled = Uncancelled::begin();
            // SAFETY: the contract: it may be called with the argument on any thread.
            unsafe { callback(argument.0) };
        }),
    }
}
