//! A type of data source, and the functions that make and register it.

use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use esatto::Source;
use esatto_protozero::{MAX_DECODE_DEPTH, Owned as _};
use esatto_schema::DataSourceDescriptor;

use super::instance::{Instance, REGISTERED, Registered};
use super::settings::Settings;
use crate::diagnostics;
use crate::ffi::{Argument, Out, Owned, Ref, Slice};
use crate::initialised::require_initialised;
use crate::panic_guard::guard_uncancelled;

/// `PerfettoDsImpl`. Once it is registered, it lives for ever.
pub(crate) struct DataSourceType {
    /// `*enabled_ptr`: there are instances.
    enabled: AtomicBool,
    settings: Mutex<Settings>,
    registered: OnceLock<Registered>,
    /// True if registration has failed, because there are too many types.
    is_refused: AtomicBool,
}

impl DataSourceType {
    const fn new() -> Self {
        Self {
            enabled: AtomicBool::new(false),
            settings: Mutex::new(Settings::NONE),
            registered: OnceLock::new(),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Returns the flag that trace points read.
    pub(super) const fn is_enabled(&self) -> &AtomicBool {
        &self.enabled
    }

    pub(super) fn registered(&self) -> Option<&Registered> {
        self.registered.get()
    }

    /// Returns true if it is too late to change a setting.
    pub(crate) fn is_registered(&self) -> bool {
        self.registered.get().is_some()
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a setting. Returns false if it is too late.
    pub(super) fn change(&self, change: impl FnOnce(&mut Settings)) -> bool {
        let _registered = REGISTERED.lock();
        let in_time = !self.is_registered();
        if in_time {
            change(&mut self.settings());
        }
        in_time
    }

    /// Changes a setting, and ends the process if it is too late.
    pub(super) fn set(&self, what: &str, change: impl FnOnce(&mut Settings)) {
        if !self.change(change) {
            diagnostics::die(format_args!("{what} of a data source that is registered"));
        }
    }

    fn register(&'static self, descriptor: &DataSourceDescriptor) -> bool {
        let mut all = REGISTERED.lock();
        if self.is_registered() {
            drop(all);
            diagnostics::say("a data source is registered a second time");
            return !self.is_refused.load(Ordering::Relaxed);
        }
        let settings = *self.settings();
        let name = descriptor.name.as_ref().map(|name| name.to_str_lossy().into_owned()).unwrap_or_default();
        let mut source = Source::new(String::leak(name)).tagged(all.len()).buffer_exhausted(settings.exhausted);
        if settings.exhausted_by_config {
            source = source.buffer_exhausted_by_config();
        }
        if settings.on_flush.is_some() {
            source = source.on_flush(Instance::flush);
        }
        let source: &'static Source<Instance> = Box::leak(Box::new(source));
        let ds = Argument(core::ptr::from_ref(self).cast_mut().cast());
        let registered = self.registered.get_or_init(|| Registered { ds, source, settings, is_enabled: &self.enabled });
        all.push(registered);
        // Unlocked, because the control thread looks for the type as soon as it knows the source.
        drop(all);
        let result = source.register_with(descriptor);
        if let Err(error) = &result {
            // By the contract the program's pointer is dead now. The object stays, because other
            // threads may read it.
            self.is_refused.store(true, Ordering::Relaxed);
            diagnostics::say(error);
        }
        result.is_ok()
    }
}

/// Decodes a descriptor. If it is malformed, the library uses the part that can be read.
fn decode(descriptor: Slice<'_, u8>) -> DataSourceDescriptor {
    let mut decoded = DataSourceDescriptor::default();
    let _ = decoded.merge(descriptor.get(), MAX_DECODE_DEPTH);
    decoded
}

#[unsafe(no_mangle)]
extern "C" fn PerfettoDsImplCreate() -> Owned<DataSourceType> {
    guard_uncancelled(|| Owned::new(DataSourceType::new()))
}

/// Registers the type, which then lives for ever. If that fails, only the library still uses the
/// object.
#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplRegister(
    ds_impl: Ref<'static, DataSourceType>,
    enabled_ptr: Out<'_, *const AtomicBool>,
    descriptor_begin: *const u8,
    descriptor_size: usize,
) -> bool {
    guard_uncancelled(|| {
        require_initialised("PerfettoDsImplRegister");
        let Some(ds) = ds_impl.get() else { return false };
        // SAFETY: the contract: `descriptor_begin` has `descriptor_size` bytes, or is null.
        let descriptor = decode(unsafe { Slice::new(descriptor_begin, descriptor_size) });
        if !ds.register(&descriptor) {
            return false;
        }
        enabled_ptr.write(&raw const ds.enabled);
        true
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplUpdateDescriptor(
    ds_impl: Ref<'_, DataSourceType>,
    descriptor_begin: *const u8,
    descriptor_size: usize,
) {
    guard_uncancelled(|| {
        require_initialised("PerfettoDsImplUpdateDescriptor");
        let Some(registered) = ds_impl.get().and_then(|ds| ds.registered.get()) else { return };
        // SAFETY: the contract: `descriptor_begin` has `descriptor_size` bytes, or is null.
        let descriptor = decode(unsafe { Slice::new(descriptor_begin, descriptor_size) });
        if let Err(error) = registered.source.update_descriptor(&descriptor) {
            diagnostics::say(error);
        }
    })
}
