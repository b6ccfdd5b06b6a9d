//! Functions that set a type of data source, before the program registers it.

use esatto::BufferExhausted;

use super::source_type::DataSourceType;
use crate::abi::numbers::policy;
use crate::abi::{
    DsOnClearState, DsOnCreateState, DsOnDeleteState, DsOnDestroy, DsOnFlush, DsOnSetup, DsOnStart, DsOnStop,
};
use crate::ffi::{Argument, Ref};
use crate::panic_guard::guard_uncancelled;

/// Functions that set one callback.
macro_rules! setters {
    ($($function:ident $member:ident: $type:ty;)*) => {
        $(#[unsafe(no_mangle)]
        unsafe extern "C" fn $function(ds_impl: Ref<'_, DataSourceType>, callback: Option<$type>) {
            guard_uncancelled(|| {
                if let Some(ds) = ds_impl.get() {
                    ds.set(stringify!($function), |settings| settings.$member = callback);
                }
            });
        })*
    };
}

setters! {
    PerfettoDsSetOnSetupCallback on_setup: DsOnSetup;
    PerfettoDsSetOnStartCallback on_start: DsOnStart;
    PerfettoDsSetOnStopCallback on_stop: DsOnStop;
    PerfettoDsSetOnDestroyCallback on_destroy: DsOnDestroy;
    PerfettoDsSetOnFlushCallback on_flush: DsOnFlush;
    PerfettoDsSetOnCreateTls on_create_tls: DsOnCreateState;
    PerfettoDsSetOnDeleteTls on_delete_tls: DsOnDeleteState;
    PerfettoDsSetOnCreateIncr on_create_incr: DsOnCreateState;
    PerfettoDsSetOnDeleteIncr on_delete_incr: DsOnDeleteState;
    PerfettoDsSetOnClearIncr on_clear_incr: DsOnClearState;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetCbUserArg(ds_impl: Ref<'_, DataSourceType>, user_arg: Argument) {
    guard_uncancelled(|| {
        if let Some(ds) = ds_impl.get() {
            ds.set("PerfettoDsSetCbUserArg", |settings| settings.user_arg = user_arg);
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetBufferExhaustedPolicy(ds_impl: Ref<'_, DataSourceType>, policy: u32) -> bool {
    guard_uncancelled(|| {
        let exhausted = match policy {
            policy::DROP => BufferExhausted::Drop,
            // A library does not abort its host.
            policy::STALL_AND_ABORT | policy::STALL_AND_DROP => BufferExhausted::Stall,
            _ => return false,
        };
        ds_impl.get().is_some_and(|ds| ds.change(|settings| settings.exhausted = exhausted))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsSetBufferExhaustedPolicyConfigurable(
    ds_impl: Ref<'_, DataSourceType>,
    configurable: u8,
) -> bool {
    guard_uncancelled(|| {
        ds_impl.get().is_some_and(|ds| ds.change(|settings| settings.exhausted_by_config = configurable == 1))
    })
}
