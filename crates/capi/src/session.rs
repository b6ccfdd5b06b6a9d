//! Sessions (`docs/spec/c-abi.md` §9).

use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use esatto::{Backend, Session, TraceConfig, raw};
use esatto_protozero::{MAX_DECODE_DEPTH, Owned};

use crate::guard::guard;
use crate::producer::require_init;
use crate::text;
use crate::tracer::Argument;

type OnStop = unsafe extern "C-unwind" fn(*mut SessionImpl, *mut c_void);
type OnFlush = unsafe extern "C-unwind" fn(*mut SessionImpl, bool, *mut c_void);
type OnRead = unsafe extern "C-unwind" fn(*mut SessionImpl, *const c_void, usize, bool, *mut c_void);

/// `PerfettoTracingSessionImpl`.
pub(crate) struct SessionImpl {
    /// `None`: it could not be opened, and does nothing.
    session: Option<Session>,
    on_stop: Arc<Stopped>,
}

/// Whom to tell that the session is over: once, and the one that was set last.
struct Stopped {
    callback: Mutex<Option<(OnStop, Argument)>>,
    process: u32,
}

/// Tells when it is dropped: because the session is over, or was destroyed before.
struct TellStopped {
    stopped: Arc<Stopped>,
    handle: Handle,
}

impl Drop for TellStopped {
    fn drop(&mut self) {
        // In the child of a fork nothing was over.
        if self.stopped.process != raw::forks() {
            return;
        }
        let callback = self.stopped.callback.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((callback, argument)) = callback {
            // SAFETY: the contract of the callback. It may be called when the session was destroyed, as upstream does.
            unsafe { callback(self.handle.0, argument.0) };
        }
    }
}

/// A session, to be handed to callbacks.
#[derive(Clone, Copy)]
struct Handle(*mut SessionImpl);

// SAFETY: it is only handed on; programs say by the contract that any thread may have it.
unsafe impl Send for Handle {}

impl SessionImpl {
    fn open(backend: Backend) -> *mut Self {
        require_init("a session");
        let session = Session::open(backend).map_err(text::say).ok();
        let on_stop = Arc::new(Stopped { callback: Mutex::new(None), process: raw::forks() });
        Box::into_raw(Box::new(Self { session, on_stop }))
    }
}

/// The session, if it can do anything.
///
/// # Safety
///
/// Null, or from create and not destroyed.
unsafe fn of<'a>(session: *const SessionImpl) -> Option<&'a Session> {
    // SAFETY: the caller's promise.
    unsafe { session.as_ref() }?.session.as_ref()
}

/// Zero milliseconds mean what the config says.
fn timeout(timeout_ms: u32) -> Option<Duration> {
    (timeout_ms != 0).then(|| Duration::from_millis(timeout_ms.into()))
}

/// Says how an operation went whose caller does not ask.
fn note(result: Result<(), esatto::Error>) {
    if let Err(error) = result {
        text::say(error);
    }
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTracingSessionSystemCreate() -> *mut SessionImpl {
    guard(|| SessionImpl::open(Backend::System))
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoTracingSessionInProcessCreate() -> *mut SessionImpl {
    guard(|| SessionImpl::open(Backend::InProcess))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionSetup(session: *mut SessionImpl, cfg_begin: *const u8, cfg_len: usize) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        let Some(session) = (unsafe { of(session) }) else { return };
        let mut config = TraceConfig::default();
        // SAFETY: the contract: as many bytes, or null. What can be read of a malformed config is used.
        let _ = config.merge(unsafe { text::block(cfg_begin, cfg_len) }, MAX_DECODE_DEPTH);
        session.set_up(config).then(note);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionSetStopCb(
    session: *mut SessionImpl,
    callback: Option<OnStop>,
    user_arg: *mut c_void,
) {
    guard(|| {
        let handle = Handle(session);
        // SAFETY: the contract: from create, and not destroyed.
        let Some(SessionImpl { session: Some(session), on_stop }) = (unsafe { session.as_ref() }) else { return };
        let callback = callback.map(|callback| (callback, Argument(user_arg)));
        let is_set = callback.is_some();
        *on_stop.callback.lock().unwrap_or_else(PoisonError::into_inner) = callback;
        if is_set {
            let tell = TellStopped { stopped: Arc::clone(on_stop), handle };
            session.on_stop(move |_| drop(tell));
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStartAsync(session: *mut SessionImpl) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(session) = unsafe { of(session) } {
            session.start_recording().then(note);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStartBlocking(session: *mut SessionImpl) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(session) = unsafe { of(session) } {
            note(session.start_recording().wait());
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStopAsync(session: *mut SessionImpl) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(session) = unsafe { of(session) } {
            session.stop_recording().then(note);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionStopBlocking(session: *mut SessionImpl) {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(session) = unsafe { of(session) } {
            note(session.stop_recording().wait());
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionFlushAsync(
    session: *mut SessionImpl,
    timeout_ms: u32,
    callback: Option<OnFlush>,
    user_arg: *mut c_void,
) {
    guard(|| {
        let (handle, argument) = (Handle(session), Argument(user_arg));
        let tell = move |success| {
            let (handle, argument) = (handle, argument);
            if let Some(callback) = callback {
                // SAFETY: the contract of the callback.
                unsafe { callback(handle.0, success, argument.0) };
            }
        };
        // SAFETY: the contract: from create, and not destroyed.
        match unsafe { of(session) } {
            Some(session) => session.flush(timeout(timeout_ms)).then(move |result| tell(result.is_ok())),
            None => tell(false),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionFlushBlocking(session: *mut SessionImpl, timeout_ms: u32) -> bool {
    guard(|| {
        // SAFETY: the contract: from create, and not destroyed.
        unsafe { of(session) }.is_some_and(|session| session.flush(timeout(timeout_ms)).wait().is_ok())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionReadTraceBlocking(
    session: *mut SessionImpl,
    callback: Option<OnRead>,
    user_arg: *mut c_void,
) {
    guard(|| {
        let Some(callback) = callback else { return };
        let (handle, argument) = (Handle(session), Argument(user_arg));
        // SAFETY: the contract: from create, and not destroyed.
        if let Some(session) = unsafe { of(session) } {
            let read = session.read_with(move |chunk| {
                let (handle, argument) = (handle, argument);
                // SAFETY: the contract of the callback.
                unsafe { callback(handle.0, chunk.as_ptr().cast(), chunk.len(), true, argument.0) };
            });
            note(read.wait());
        }
        // Not null, though the contract allows it: the official Rust crate makes a slice of it.
        let nothing: *const c_void = NonNull::<u8>::dangling().as_ptr().cast();
        // SAFETY: the contract of the callback. The last one comes from this thread; nobody else calls it any more.
        unsafe { callback(session, nothing, 0, false, user_arg) };
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTracingSessionDestroy(session: *mut SessionImpl) {
    guard(|| {
        if !session.is_null() {
            // SAFETY: the contract: from create, and not destroyed.
            drop(unsafe { Box::from_raw(session) });
        }
    })
}
