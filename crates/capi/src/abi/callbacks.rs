//! Types of the functions that programs pass to the library, and of the objects that the library
//! passes to them.
//!
//! Callbacks are `extern "C-unwind"`: see [`panic_guard`](crate::panic_guard).

use core::ffi::c_void;

/// Types of objects whose content programs do not see.
macro_rules! opaque {
    ($($(#[$meta:meta])* $name:ident)*) => {
        $($(#[$meta])*
        #[repr(C)]
        pub(crate) struct $name {
            _private: [u8; 0],
        })*
    };
}

opaque! {
    /// `PerfettoDsImpl`.
    DsImpl
    /// `PerfettoDsTracerImpl`.
    DsTracerImpl
    /// `PerfettoDsOnSetupArgs`; always null.
    DsOnSetupArgs
    /// `PerfettoDsOnStartArgs`; always null.
    DsOnStartArgs
    /// `PerfettoDsOnStopArgs`.
    DsOnStopArgs
    /// `PerfettoDsOnFlushArgs`.
    DsOnFlushArgs
    /// `PerfettoStreamWriterImpl`; also `PerfettoHeapBuffer`.
    StreamWriterImpl
    /// `PerfettoTeCategoryImpl`.
    TeCategoryImpl
    /// `PerfettoTracingSessionImpl`.
    TracingSessionImpl
}

/// `PerfettoDsOnSetupCb`.
pub(crate) type DsOnSetup = unsafe extern "C-unwind" fn(
    *const DsImpl,
    u32,
    *const c_void,
    usize,
    *mut c_void,
    *mut DsOnSetupArgs,
) -> *mut c_void;
/// `PerfettoDsOnStartCb`.
pub(crate) type DsOnStart =
    unsafe extern "C-unwind" fn(*const DsImpl, u32, *mut c_void, *mut c_void, *mut DsOnStartArgs);
/// `PerfettoDsOnStopCb`.
pub(crate) type DsOnStop = unsafe extern "C-unwind" fn(*const DsImpl, u32, *mut c_void, *mut c_void, *mut DsOnStopArgs);
/// `PerfettoDsOnDestroyCb`.
pub(crate) type DsOnDestroy = unsafe extern "C-unwind" fn(*const DsImpl, *mut c_void, *mut c_void);
/// `PerfettoDsOnFlushCb`.
pub(crate) type DsOnFlush =
    unsafe extern "C-unwind" fn(*const DsImpl, u32, *mut c_void, *mut c_void, *mut DsOnFlushArgs);
/// `PerfettoDsOnCreateCustomState`.
pub(crate) type DsOnCreateState =
    unsafe extern "C-unwind" fn(*const DsImpl, u32, *mut DsTracerImpl, *mut c_void) -> *mut c_void;
/// `PerfettoDsOnDeleteCustomState`.
pub(crate) type DsOnDeleteState = unsafe extern "C-unwind" fn(*mut c_void);
/// `PerfettoDsOnClearCustomState`; returns 1 if the program keeps the object.
pub(crate) type DsOnClearState = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> u8;
/// `PerfettoDsTracerOnFlushCb`.
pub(crate) type DsOnFlushed = unsafe extern "C-unwind" fn(*mut c_void);
/// `PerfettoTeCategoryImplCallback`.
pub(crate) type TeOnCategory = unsafe extern "C-unwind" fn(*const TeCategoryImpl, u32, bool, bool, *mut c_void);
/// `PerfettoTracingSessionStopCb`.
pub(crate) type SessionOnStop = unsafe extern "C-unwind" fn(*mut TracingSessionImpl, *mut c_void);
/// `PerfettoTracingSessionFlushCb`.
pub(crate) type SessionOnFlush = unsafe extern "C-unwind" fn(*mut TracingSessionImpl, bool, *mut c_void);
/// `PerfettoTracingSessionReadCb`.
pub(crate) type SessionOnRead =
    unsafe extern "C-unwind" fn(*mut TracingSessionImpl, *const c_void, usize, bool, *mut c_void);
