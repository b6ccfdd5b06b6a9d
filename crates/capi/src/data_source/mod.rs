//! Data sources (`docs/spec/c-abi.md` §5).

mod instance;
mod iteration;
mod state;

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use esatto::raw::{self, StaticMutex};
use esatto::{BufferExhausted, Source};
use esatto_protozero::{MAX_DECODE_DEPTH, Owned};
use esatto_schema::DataSourceDescriptor;

use crate::abi::{OnSetupArgs, OnStartArgs, Timestamp, policy};
use crate::guard::{Nothing, guard};
use crate::producer::require_init;
use crate::text;
use crate::tracer::{Argument, Tracer};
pub(crate) use instance::OnFlushArgs;
use instance::{Instance, OnStopArgs};

type OnSetup = unsafe extern "C-unwind" fn(
    *const DataSourceType,
    u32,
    *const c_void,
    usize,
    *mut c_void,
    *mut OnSetupArgs,
) -> *mut c_void;
type OnStart = unsafe extern "C-unwind" fn(*const DataSourceType, u32, *mut c_void, *mut c_void, *mut OnStartArgs);
type OnStop = unsafe extern "C-unwind" fn(*const DataSourceType, u32, *mut c_void, *mut c_void, *mut OnStopArgs);
type OnDestroy = unsafe extern "C-unwind" fn(*const DataSourceType, *mut c_void, *mut c_void);
type OnFlush = unsafe extern "C-unwind" fn(*const DataSourceType, u32, *mut c_void, *mut c_void, *mut OnFlushArgs);
type OnCreate = unsafe extern "C-unwind" fn(*const DataSourceType, u32, *mut Tracer, *mut c_void) -> *mut c_void;
type OnDelete = unsafe extern "C-unwind" fn(*mut c_void);
type OnClear = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void) -> u8;

/// `PerfettoDsImpl`: a type of data source. Lives for ever once it is registered.
pub(crate) struct DataSourceType {
    /// `*enabled_ptr`: there are instances.
    enabled: AtomicBool,
    settings: Mutex<Settings>,
    registered: OnceLock<Registered>,
    /// There were too many.
    is_refused: AtomicBool,
}

struct Registered {
    source: &'static Source<Instance>,
    /// As they were then; they do not change any more.
    settings: Settings,
}

/// What the program says of the type.
#[derive(Clone, Copy)]
struct Settings {
    on_setup: Option<OnSetup>,
    on_start: Option<OnStart>,
    on_stop: Option<OnStop>,
    on_destroy: Option<OnDestroy>,
    on_flush: Option<OnFlush>,
    on_create_tls: Option<OnCreate>,
    on_delete_tls: Option<OnDelete>,
    on_create_incr: Option<OnCreate>,
    on_delete_incr: Option<OnDelete>,
    on_clear_incr: Option<OnClear>,
    user_arg: Argument,
    exhausted: BufferExhausted,
    exhausted_by_config: bool,
}

impl Settings {
    const NONE: Self = Self {
        on_setup: None,
        on_start: None,
        on_stop: None,
        on_destroy: None,
        on_flush: None,
        on_create_tls: None,
        on_delete_tls: None,
        on_create_incr: None,
        on_delete_incr: None,
        on_clear_incr: None,
        user_arg: Argument(core::ptr::null_mut()),
        exhausted: BufferExhausted::Drop,
        exhausted_by_config: false,
    };
}

/// The registered types; an instance finds its own by the place. Whoever looks at the settings of a type has this locked.
static TYPES: StaticMutex<Vec<&'static DataSourceType>> = StaticMutex::new(Vec::new());

/// In the child of a fork: there are no instances.
pub(crate) fn forked() {
    instance::forked();
    for ds in TYPES.lock().iter() {
        ds.enabled.store(false, Ordering::Release);
    }
}

impl DataSourceType {
    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a setting; `false`: too late.
    fn change(&self, change: impl FnOnce(&mut Settings)) -> bool {
        let _types = TYPES.lock();
        let in_time = !self.is_registered();
        if in_time {
            change(&mut self.settings());
        }
        in_time
    }

    /// Whether it is too late to change anything.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered.get().is_some()
    }

    /// As [`change`](Self::change), for what ends the process if it comes too late.
    fn set(&self, what: &str, change: impl FnOnce(&mut Settings)) {
        if !self.change(change) {
            text::die(format_args!("{what} of a data source that is registered"));
        }
    }

    fn register(&'static self, descriptor: &DataSourceDescriptor) -> bool {
        let mut types = TYPES.lock();
        if self.is_registered() {
            drop(types);
            text::say("a data source is registered a second time");
            return !self.is_refused.load(Ordering::Relaxed);
        }
        let settings = *self.settings();
        let name = descriptor.name.as_ref().map(|name| name.to_str_lossy().into_owned()).unwrap_or_default();
        let mut source = Source::new(String::leak(name)).tagged(types.len()).buffer_exhausted(settings.exhausted);
        if settings.exhausted_by_config {
            source = source.buffer_exhausted_by_config();
        }
        if settings.on_flush.is_some() {
            source = source.on_flush(Instance::flush);
        }
        let source: &'static Source<Instance> = Box::leak(Box::new(source));
        let _ = self.registered.set(Registered { source, settings });
        types.push(self);
        // The control thread looks for the type as soon as the source is known to it.
        drop(types);
        let result = source.register_with(descriptor);
        if let Err(error) = &result {
            // By the contract the pointer is dead now. The little that it points to stays: others may have begun to look at it.
            self.is_refused.store(true, Ordering::Relaxed);
            text::say(error);
        }
        result.is_ok()
    }
}

/// What can be read of a malformed descriptor is used.
///
/// # Safety
///
/// As many bytes, or null.
unsafe fn descriptor(begin: *const u8, size: usize) -> DataSourceDescriptor {
    // SAFETY: the caller's promise.
    let bytes = unsafe { text::block(begin, size) };
    let mut descriptor = DataSourceDescriptor::default();
    let _ = descriptor.merge(bytes, MAX_DECODE_DEPTH);
    descriptor
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoDsImplCreate() -> *mut DataSourceType {
    guard(|| {
        Box::into_raw(Box::new(DataSourceType {
            enabled: AtomicBool::new(false),
            settings: Mutex::new(Settings::NONE),
            registered: OnceLock::new(),
            is_refused: AtomicBool::new(false),
        }))
    })
}

/// Functions that set one callback.
macro_rules! setters {
    ($($function:ident $member:ident: $type:ty;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(ds_impl: *const DataSourceType, callback: Option<$type>) {
            guard(|| {
                // SAFETY: the contract: from create, and registration has not failed.
                if let Some(ds) = unsafe { ds_impl.as_ref() } {
                    ds.set(stringify!($function), |settings| settings.$member = callback);
                }
            });
        })*
    };
}

setters! {
    PerfettoDsSetOnSetupCallback on_setup: OnSetup;
    PerfettoDsSetOnStartCallback on_start: OnStart;
    PerfettoDsSetOnStopCallback on_stop: OnStop;
    PerfettoDsSetOnDestroyCallback on_destroy: OnDestroy;
    PerfettoDsSetOnFlushCallback on_flush: OnFlush;
    PerfettoDsSetOnCreateTls on_create_tls: OnCreate;
    PerfettoDsSetOnDeleteTls on_delete_tls: OnDelete;
    PerfettoDsSetOnCreateIncr on_create_incr: OnCreate;
    PerfettoDsSetOnDeleteIncr on_delete_incr: OnDelete;
    PerfettoDsSetOnClearIncr on_clear_incr: OnClear;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetCbUserArg(ds_impl: *const DataSourceType, user_arg: *mut c_void) {
    guard(|| {
        // SAFETY: the contract: from create, and registration has not failed.
        if let Some(ds) = unsafe { ds_impl.as_ref() } {
            ds.set("PerfettoDsSetCbUserArg", |settings| settings.user_arg = Argument(user_arg));
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetBufferExhaustedPolicy(ds_impl: *const DataSourceType, policy: u32) -> bool {
    guard(|| {
        let exhausted = match policy {
            policy::DROP => BufferExhausted::Drop,
            // A library does not abort its host.
            policy::STALL_AND_ABORT | policy::STALL_AND_DROP => BufferExhausted::Stall,
            _ => return false,
        };
        // SAFETY: the contract: from create, and registration has not failed.
        unsafe { ds_impl.as_ref() }.is_some_and(|ds| ds.change(|settings| settings.exhausted = exhausted))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetBufferExhaustedPolicyConfigurable(
    ds_impl: *const DataSourceType,
    configurable: u8,
) -> bool {
    guard(|| {
        // SAFETY: the contract: from create, and registration has not failed.
        unsafe { ds_impl.as_ref() }
            .is_some_and(|ds| ds.change(|settings| settings.exhausted_by_config = configurable == 1))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplRegister(
    ds_impl: *mut DataSourceType,
    enabled_ptr: *mut *const AtomicBool,
    descriptor_begin: *const u8,
    descriptor_size: usize,
) -> bool {
    guard(|| {
        require_init("PerfettoDsImplRegister");
        if ds_impl.is_null() {
            return false;
        }
        // SAFETY: the contract: from create, and registration has not failed. If it fails, only we have it.
        let ds: &'static DataSourceType = unsafe { &*ds_impl };
        // SAFETY: the contract: as many bytes, or null.
        let descriptor = unsafe { descriptor(descriptor_begin, descriptor_size) };
        if !ds.register(&descriptor) {
            return false;
        }
        if !enabled_ptr.is_null() {
            // SAFETY: the contract: a variable of the program.
            unsafe { enabled_ptr.write(&raw const ds.enabled) };
        }
        true
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplUpdateDescriptor(
    ds_impl: *const DataSourceType,
    descriptor_begin: *const u8,
    descriptor_size: usize,
) {
    guard(|| {
        require_init("PerfettoDsImplUpdateDescriptor");
        // SAFETY: the contract: from create, and registration has not failed.
        let Some(registered) = unsafe { ds_impl.as_ref() }.and_then(|ds| ds.registered.get()) else { return };
        // SAFETY: the contract: as many bytes, or null.
        let descriptor = unsafe { descriptor(descriptor_begin, descriptor_size) };
        if let Err(error) = registered.source.update_descriptor(&descriptor) {
            text::say(error);
        }
    })
}

impl Nothing for Timestamp {
    const NOTHING: Self = Self { clock_id: 0, value: 0 };
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoDsGetDefaultClockId() -> u32 {
    guard(raw::clock_id)
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoDsGetTimestamp() -> Timestamp {
    guard(|| Timestamp { clock_id: raw::clock_id(), value: raw::now_ns() })
}
