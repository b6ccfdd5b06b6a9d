//! Settings of a type of data source. The functions in `setters.rs` check and set them.

use esatto::BufferExhausted;

use crate::abi::{
    DsOnClearState, DsOnCreateState, DsOnDeleteState, DsOnDestroy, DsOnFlush, DsOnSetup, DsOnStart, DsOnStop,
};
use crate::ffi::Argument;

/// Callbacks and options that the program sets before it registers the type.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) on_setup: Option<DsOnSetup>,
    pub(super) on_start: Option<DsOnStart>,
    pub(super) on_stop: Option<DsOnStop>,
    pub(super) on_destroy: Option<DsOnDestroy>,
    pub(super) on_flush: Option<DsOnFlush>,
    pub(super) on_create_tls: Option<DsOnCreateState>,
    pub(super) on_delete_tls: Option<DsOnDeleteState>,
    pub(super) on_create_incr: Option<DsOnCreateState>,
    pub(super) on_delete_incr: Option<DsOnDeleteState>,
    pub(super) on_clear_incr: Option<DsOnClearState>,
    pub(super) user_arg: Argument,
    pub(super) exhausted: BufferExhausted,
    pub(super) exhausted_by_config: bool,
}

impl Settings {
    pub(super) const NONE: Self = Self {
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
