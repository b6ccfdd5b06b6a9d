//! Sessions (`docs/spec/c-abi.md` §9).

use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use esatto::{Backend, Session, TraceConfig, raw};
use esatto_protozero::{DecodeError, MAX_DECODE_DEPTH, Owned as _};

use crate::abi::{SessionOnFlush, SessionOnRead, SessionOnStop, TracingSessionImpl};
use crate::diagnostics;
use crate::ffi::{Argument, Owned, Ref, Slice};
use crate::initialised::require_initialised;
use crate::panic_guard::guard_uncancelled;

/// `PerfettoTracingSessionImpl`.
struct SessionImpl {
    /// `None` if it could not be opened. Then its functions do nothing.
    session: Option<Session>,
    stop_listener: Arc<StopListener>,
}

/// The callback that learns once that the session is over. Another one may replace it before.
struct StopListener {
    callback: Mutex<Option<(SessionOnStop, Argument)>>,
    process: u32,
}

/// Calls the callback when it is dropped: when the session is over, or when it was destroyed before
/// that.
struct CallOnStop {
    listener: Arc<StopListener>,
    session: Argument<TracingSessionImpl>,
}

impl Drop for CallOnStop {
    fn drop(&mut self) {
        // In the child of a fork no session has ended.
        if self.listener.process != raw::forks() {
            return;
        }
        let callback = self.listener.callback.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((callback, argument)) = callback {
            // SAFETY: the contract of the callback. Upstream also calls it if the session was
            // destroyed.
            unsafe { callback(self.session.0, argument.0) };
        }
    }
}

impl SessionImpl {
    fn open(backend: Backend) -> Owned<Self> {
        require_initialised("a session");
        let session = Session::open(backend).map_err(diagnostics::say).ok();
        let stop_listener = Arc::new(StopListener { callback: Mutex::new(None), process: raw::forks() });
        Owned::new(Self { session, stop_listener })
    }
}

impl<'a> Ref<'a, SessionImpl> {
    /// Returns the session, if it could be opened.
    fn session(self) -> Option<&'a Session> {
        self.get()?.session.as_ref()
    }

    /// Returns the pointer that callbacks get.
    const fn as_argument(self) -> Argument<TracingSessionImpl> {
        Argument(self.as_ptr().cast_mut().cast())
    }
}

/// Zero milliseconds stand for the time of the config.
fn timeout(timeout_ms: u32) -> Option<Duration> {
    (timeout_ms != 0).then(|| Duration::from_millis(timeout_ms.into()))
}

/// Returns what is wrong with the bytes of a config that were decoded to `config`, in words.
fn mistake_of(config: &TraceConfig, bytes: &[u8], malformed: Option<DecodeError>) -> Option<String> {
    let is_of_text = |byte: &u8| !byte.is_ascii_control() || byte.is_ascii_whitespace();
    let is_text = config.data_sources.is_empty() && !bytes.is_empty() && bytes.iter().all(is_of_text);
    if is_text {
        return Some(
            "the config of a session is text, but a serialized TraceConfig is needed, so nothing is recorded; `esatto \
             config convert FILE -o FILE.pb` makes one of it"
                .to_owned(),
        );
    }
    malformed.map(|error| format!("the config of a session is malformed, so a part of it is ignored: {error}"))
}

/// Reports the failure of an operation whose caller gets no result.
fn report(result: Result<(), esatto::Error>) {
    if let Err(error) = result {
        diagnostics::say(error);
    }
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTracingSessionSystemCreate() -> Owned<SessionImpl> {
    guard_uncancelled(|| SessionImpl::open(Backend::System))
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTracingSessionInProcessCreate() -> Owned<SessionImpl> {
    guard_uncancelled(|| SessionImpl::open(Backend::InProcess))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionSetup(session: Ref<'_, SessionImpl>, cfg_begin: *const u8, cfg_len: usize) {
    guard_uncancelled(|| {
        let Some(session) = session.session() else { return };
        // SAFETY: the contract: `cfg_begin` has `cfg_len` bytes, or is null.
        let bytes = unsafe { Slice::new(cfg_begin, cfg_len) };
        let mut config = TraceConfig::default();
        // If the config is malformed, the part that can be read is used.
        let malformed = config.merge(bytes.get(), MAX_DECODE_DEPTH).err();
        if let Some(mistake) = mistake_of(&config, bytes.get(), malformed) {
            diagnostics::say(mistake);
        }
        session.set_up(config).then(report);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionSetStopCb(
    session: Ref<'_, SessionImpl>,
    callback: Option<SessionOnStop>,
    user_arg: Argument,
) {
    guard_uncancelled(|| {
        let argument = session.as_argument();
        let Some(SessionImpl { session: Some(session), stop_listener }) = session.get() else { return };
        let callback = callback.map(|callback| (callback, user_arg));
        let is_set = callback.is_some();
        *stop_listener.callback.lock().unwrap_or_else(PoisonError::into_inner) = callback;
        if is_set {
            let call = CallOnStop { listener: Arc::clone(stop_listener), session: argument };
            session.on_stop(move |_| drop(call));
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStartAsync(session: Ref<'_, SessionImpl>) {
    guard_uncancelled(|| {
        if let Some(session) = session.session() {
            session.start_recording().then(report);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStartBlocking(session: Ref<'_, SessionImpl>) {
    guard_uncancelled(|| {
        if let Some(session) = session.session() {
            report(session.start_recording().wait());
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStopAsync(session: Ref<'_, SessionImpl>) {
    guard_uncancelled(|| {
        if let Some(session) = session.session() {
            session.stop_recording().then(report);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStopBlocking(session: Ref<'_, SessionImpl>) {
    guard_uncancelled(|| {
        if let Some(session) = session.session() {
            report(session.stop_recording().wait());
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionFlushAsync(
    session: Ref<'_, SessionImpl>,
    timeout_ms: u32,
    callback: Option<SessionOnFlush>,
    user_arg: Argument,
) {
    guard_uncancelled(|| {
        let argument = session.as_argument();
        let call = move |success| {
            let (argument, user_arg) = (argument, user_arg);
            if let Some(callback) = callback {
                // SAFETY: the contract of the callback.
                unsafe { callback(argument.0, success, user_arg.0) };
            }
        };
        match session.session() {
            Some(session) => session.flush(timeout(timeout_ms)).then(move |result| call(result.is_ok())),
            None => call(false),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionFlushBlocking(session: Ref<'_, SessionImpl>, timeout_ms: u32) -> bool {
    guard_uncancelled(|| session.session().is_some_and(|session| session.flush(timeout(timeout_ms)).wait().is_ok()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionReadTraceBlocking(
    session: Ref<'_, SessionImpl>,
    callback: Option<SessionOnRead>,
    user_arg: Argument,
) {
    guard_uncancelled(|| {
        let Some(callback) = callback else { return };
        let argument = session.as_argument();
        if let Some(session) = session.session() {
            let read = session.read_with(move |chunk| {
                let (argument, user_arg) = (argument, user_arg);
                // SAFETY: the contract of the callback.
                unsafe { callback(argument.0, chunk.as_ptr().cast(), chunk.len(), true, user_arg.0) };
            });
            report(read.wait());
        }
        // Not null, though the contract allows it, because the official Rust crate makes a slice of
        // it.
        let nothing: *const c_void = NonNull::<u8>::dangling().as_ptr().cast();
        // SAFETY: the contract of the callback. This thread makes the last call, and no other
        // thread calls it any more.
        unsafe { callback(argument.0, nothing, 0, false, user_arg.0) };
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionDestroy(session: Owned<SessionImpl>) {
    guard_uncancelled(|| drop(session.take()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_malformed_configs_are_told() {
        let told = |bytes: &[u8]| {
            let mut config = TraceConfig::default();
            let malformed = config.merge(bytes, MAX_DECODE_DEPTH).err();
            mistake_of(&config, bytes, malformed).unwrap_or_default()
        };
        let with_a_source = b"\x12\x0f\x0a\x0d\x0a\x0btrack_event";
        assert_eq!(told(with_a_source), "");
        assert_eq!(told(b""), "");
        for text in ["duration_ms: 1000\n", "buffers {\n\tsize_kb: 64 }\n", "data_sources { config { name: \"a\" } }"] {
            assert!(told(text.as_bytes()).starts_with("the config of a session is text"), "{text}");
        }
        assert!(told(&with_a_source[..9]).starts_with("the config of a session is malformed"));
    }
}
