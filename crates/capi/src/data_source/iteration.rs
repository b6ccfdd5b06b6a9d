//! A trace point: a turn for each instance.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use esatto::raw;

use super::state::{CustomState, IncrementalState, Maker};
use super::{DataSourceType, Registered};
use crate::abi::TracerIterator;
use crate::guard::guard;
use crate::tracer::{Iteration, Tracer};

impl DataSourceType {
    fn maker_of_tls(&'static self, registered: &Registered, slot: u32, tracer: *mut Tracer) -> Maker {
        let settings = &registered.settings;
        let (create, delete) = (settings.on_create_tls, settings.on_delete_tls);
        Maker { ds: self, slot, tracer, create, delete, user_arg: settings.user_arg }
    }

    fn maker_of_incr(&'static self, registered: &Registered, slot: u32, tracer: *mut Tracer) -> Maker {
        let settings = &registered.settings;
        let (create, delete) = (settings.on_create_incr, settings.on_delete_incr);
        Maker { ds: self, slot, tracer, create, delete, user_arg: settings.user_arg }
    }

    /// The turn of the next instance.
    fn next(&'static self, registered: &Registered, iteration: Iteration) -> TracerIterator {
        let tracer = iteration.tracer();
        loop {
            // SAFETY: of this thread, which is in the trace point. Nobody else uses it: the reference ends before anything of the program's is called.
            let Some(slot) = (unsafe { (*tracer).next_instance() }) else { return TracerIterator::end() };
            let open = raw::begin(registered.source, slot as usize, |open| {
                let state: *mut CustomState = open.thread_state;
                let incremental: *mut IncrementalState = open.incremental_state;
                (NonNull::from(open.packets), state, incremental, open.has_end)
            });
            let Some((writer, state, incremental, has_end)) = open else { continue };
            // SAFETY: as above.
            let here = unsafe { &mut *tracer };
            here.writer = Some(writer);
            here.has_end = has_end;
            here.thread_state = state.cast();
            here.incremental_state = incremental.cast();
            if registered.settings.on_create_tls.is_some() {
                // SAFETY: belongs to the writer of this thread, and stays where it is as long as the thread is in the trace point.
                unsafe { CustomState::make(state, &self.maker_of_tls(registered, slot, tracer)) };
            }
            if registered.settings.on_create_incr.is_some() {
                // SAFETY: as above.
                unsafe { IncrementalState::make(incremental, &self.maker_of_incr(registered, slot, tracer)) };
            }
            iteration.goes_on();
            return TracerIterator::at(slot, tracer);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplTraceIterateBegin(ds_impl: *const DataSourceType) -> TracerIterator {
    guard(|| {
        // SAFETY: the contract: from create, and registration has not failed.
        let Some(ds) = (unsafe { ds_impl.as_ref() }) else { return TracerIterator::end() };
        if !ds.enabled.load(Ordering::Relaxed) {
            return TracerIterator::end();
        }
        let Some(registered) = ds.registered.get() else { return TracerIterator::end() };
        match Tracer::enter(registered.source.recording()) {
            Some(iteration) => ds.next(registered, iteration),
            None => TracerIterator::end(),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplTraceIterateNext(ds_impl: *const DataSourceType, iterator: *mut TracerIterator) {
    guard(|| {
        // SAFETY: the contract: from begin.
        let Some((ds, registered, iterator)) = (unsafe { open(ds_impl, iterator) }) else { return };
        let slot = iterator.inst_id as usize;
        // SAFETY: as above, and not at its end: the thread is in the trace point.
        let iteration = unsafe { Iteration::of(iterator.tracer) };
        // Also if what follows panics.
        *iterator = TracerIterator::end();
        // SAFETY: as above.
        unsafe { end_turn(registered, slot, &iteration) };
        *iterator = ds.next(registered, iteration);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplTraceIterateBreak(ds_impl: *const DataSourceType, iterator: *mut TracerIterator) {
    guard(|| {
        // SAFETY: the contract: from begin.
        let Some((_, registered, iterator)) = (unsafe { open(ds_impl, iterator) }) else { return };
        let slot = iterator.inst_id as usize;
        // SAFETY: as above, and not at its end: the thread is in the trace point.
        let iteration = unsafe { Iteration::of(iterator.tracer) };
        *iterator = TracerIterator::end();
        // SAFETY: as above.
        unsafe { end_turn(registered, slot, &iteration) };
    })
}

/// The turn of an instance is over.
///
/// # Safety
///
/// Of this thread, which is in the trace point.
#[inline(always)]
unsafe fn end_turn(registered: &Registered, slot: usize, iteration: &Iteration) {
    // SAFETY: the caller's promise. Nobody else uses it, as nothing of the program's runs here.
    let here = unsafe { &mut *iteration.tracer() };
    here.forget_instance();
    if here.has_end {
        raw::end(registered.source, slot);
    }
}

/// An iteration that goes on.
///
/// # Safety
///
/// Null, or from create and begin.
unsafe fn open<'a>(
    ds_impl: *const DataSourceType,
    iterator: *mut TracerIterator,
) -> Option<(&'static DataSourceType, &'static Registered, &'a mut TracerIterator)> {
    // SAFETY: the caller's promise.
    let ds: &'static DataSourceType = unsafe { ds_impl.as_ref() }?;
    // SAFETY: the caller's promise.
    let iterator = unsafe { iterator.as_mut() }?;
    (!iterator.tracer.is_null()).then_some((ds, ds.registered.get()?, iterator))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplGetCustomTls(
    _ds_impl: *const DataSourceType,
    tracer: *mut Tracer,
    _inst_id: u32,
) -> *mut c_void {
    guard(|| {
        // SAFETY: the contract: of an iteration of this thread that goes on.
        let state = unsafe { tracer.as_ref() }.map_or(ptr::null_mut(), |tracer| tracer.thread_state);
        // SAFETY: as in `next`.
        unsafe { CustomState::get(state.cast()) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplGetIncrementalState(
    ds_impl: *const DataSourceType,
    tracer: *mut Tracer,
    inst_id: u32,
) -> *mut c_void {
    guard(|| {
        // SAFETY: the contract: from create, and registration has not failed.
        let ds: Option<&'static DataSourceType> = unsafe { ds_impl.as_ref() };
        let Some((ds, registered)) = ds.and_then(|ds| Some((ds, ds.registered.get()?))) else { return ptr::null_mut() };
        // SAFETY: the contract: of an iteration of this thread that goes on.
        let state = unsafe { tracer.as_ref() }.map_or(ptr::null_mut(), |tracer| tracer.incremental_state);
        let maker = ds.maker_of_incr(registered, inst_id, tracer);
        // SAFETY: as in `next`.
        unsafe { IncrementalState::get(state.cast(), &maker, registered.settings.on_clear_incr) }
    })
}
