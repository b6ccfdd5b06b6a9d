//! What the program keeps for each thread and instance.

use core::ffi::c_void;
use core::ptr;

use super::{DataSourceType, OnClear, OnCreate, OnDelete};
use crate::tracer::{Argument, Tracer};

/// "TLS": made at the first trace point, and deleted by the thread that has made it.
#[derive(Default)]
pub(crate) struct CustomState(Object);

/// As [`CustomState`]; and made anew when readers of the trace may have lost what it stands for.
#[derive(Default)]
pub(crate) struct IncrementalState {
    object: Object,
    clear: bool,
}

/// How objects are made and deleted. Without both of these there are none.
#[derive(Clone, Copy)]
pub(super) struct Maker {
    pub(super) ds: &'static DataSourceType,
    pub(super) slot: u32,
    pub(super) tracer: *mut Tracer,
    pub(super) create: Option<OnCreate>,
    pub(super) delete: Option<OnDelete>,
    pub(super) user_arg: Argument,
}

/// Something that the program has made.
#[derive(Default)]
struct Object(Option<(Argument, OnDelete)>);

impl Object {
    fn make(&mut self, maker: &Maker) {
        if let (None, Some(create), Some(delete)) = (&self.0, maker.create, maker.delete) {
            // SAFETY: the contract of the callback.
            let object = unsafe { create(maker.ds, maker.slot, maker.tracer, maker.user_arg.0) };
            self.0 = Some((Argument(object), delete));
        }
    }

    fn get(&self) -> *mut c_void {
        self.0.map_or(ptr::null_mut(), |(object, _)| object.0)
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some((object, delete)) = self.0.take() {
            // SAFETY: the contract of the callback: once, with what was created.
            unsafe { delete(object.0) };
        }
    }
}

impl CustomState {
    pub(super) fn make(&mut self, maker: &Maker) {
        self.0.make(maker);
    }

    pub(super) fn get(&self) -> *mut c_void {
        self.0.get()
    }
}

impl IncrementalState {
    pub(super) fn make(&mut self, maker: &Maker) {
        self.object.make(maker);
    }

    /// The next [`get`](Self::get) clears.
    pub(super) fn clear_later(&mut self) {
        self.clear = self.object.0.is_some();
    }

    pub(super) fn get(&mut self, maker: &Maker, clear: Option<OnClear>) -> *mut c_void {
        if core::mem::take(&mut self.clear) {
            // SAFETY: the contract of the callback.
            let is_kept = clear.is_some_and(|clear| unsafe { clear(self.object.get(), maker.user_arg.0) });
            if !is_kept {
                self.object = Object::default();
                self.object.make(maker);
            }
        }
        self.object.get()
    }
}
