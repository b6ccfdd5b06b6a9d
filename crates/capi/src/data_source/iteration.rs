//! Trace points of a data source: each instance that records gets a turn.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use core::sync::atomic::Ordering;

use esatto::raw;

use super::instance::Registered;
use super::source_type::DataSourceType;
use crate::abi::TracerIterator;
use crate::ffi::{Mut, Ref};
use crate::panic_guard::guard;
use crate::program_state::{CustomState, IncrementalState, Maker};
use crate::tracer::{Iteration, Tracer, Turn};

impl Registered {
    fn maker_of_tls(&self, slot: u32, tracer: *mut Tracer) -> Maker {
        let settings = &self.settings;
        let (create, delete) = (settings.on_create_tls, settings.on_delete_tls);
        Maker { ds: self.ds, slot, tracer: tracer.cast(), create, delete, user_arg: settings.user_arg }
    }

    fn maker_of_incr(&self, slot: u32, tracer: *mut Tracer) -> Maker {
        let settings = &self.settings;
        let (create, delete) = (settings.on_create_incr, settings.on_delete_incr);
        Maker { ds: self.ds, slot, tracer: tracer.cast(), create, delete, user_arg: settings.user_arg }
    }

    /// Gives the turn to the next instance.
    fn next(&self, iteration: Iteration) -> TracerIterator {
        loop {
            let Some(slot) = iteration.next_instance() else { return TracerIterator::END };
            let turn = raw::begin(self.source, slot as usize, |open| {
                let thread_state: NonNull<CustomState> = NonNull::from(open.thread_state);
                let incremental_state: NonNull<IncrementalState> = NonNull::from(open.incremental_state);
                let writer = Some(NonNull::from(open.packets));
                (writer, thread_state, incremental_state, open.has_end)
            });
            let Some((writer, thread_state, incremental_state, has_end)) = turn else { continue };
            iteration.set_turn(Turn::DataSource { writer, thread_state, incremental_state, has_end });
            let tracer = iteration.tracer();
            if self.settings.on_create_tls.is_some() {
                // SAFETY: the state belongs to the writer of this thread, and stays where it is
                // while the thread is in the trace point.
                unsafe { CustomState::make(thread_state.as_ptr(), &self.maker_of_tls(slot, tracer)) };
            }
            if self.settings.on_create_incr.is_some() {
                // SAFETY: as above.
                unsafe { IncrementalState::make(incremental_state.as_ptr(), &self.maker_of_incr(slot, tracer)) };
            }
            return iteration.begin_turn(slot);
        }
    }

    /// Ends the turn of an instance.
    #[inline(always)]
    fn end_turn(&self, slot: u32, iteration: &Iteration) {
        if iteration.end_turn() {
            raw::end(self.source, slot as usize);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplTraceIterateBegin(ds_impl: Ref<'static, DataSourceType>) -> TracerIterator {
    guard(|| {
        let Some(ds) = ds_impl.get() else { return TracerIterator::END };
        if !ds.is_enabled().load(Ordering::Relaxed) {
            return TracerIterator::END;
        }
        let Some(registered) = ds.registered() else { return TracerIterator::END };
        match Tracer::enter(registered.source.recording()) {
            Some(iteration) => registered.next(iteration),
            None => TracerIterator::END,
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplTraceIterateNext(
    ds_impl: Ref<'static, DataSourceType>,
    iterator: Mut<'_, TracerIterator>,
) {
    guard(|| {
        let Some(registered) = ds_impl.get().and_then(DataSourceType::registered) else { return };
        let Some(iterator) = iterator.get() else { return };
        let Some((slot, iteration)) = iterator.take() else { return };
        registered.end_turn(slot, &iteration);
        *iterator = registered.next(iteration);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplTraceIterateBreak(
    ds_impl: Ref<'static, DataSourceType>,
    iterator: Mut<'_, TracerIterator>,
) {
    guard(|| {
        let Some(registered) = ds_impl.get().and_then(DataSourceType::registered) else { return };
        let Some(iterator) = iterator.get() else { return };
        let Some((slot, iteration)) = iterator.take() else { return };
        registered.end_turn(slot, &iteration);
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplGetCustomTls(
    _ds_impl: Ref<'static, DataSourceType>,
    tracer: Ref<'_, Tracer>,
    _inst_id: u32,
) -> *mut c_void {
    guard(|| {
        let state = tracer.get().map_or(ptr::null_mut(), Tracer::thread_state);
        // SAFETY: null, or the state of the instance that has the turn on this thread.
        unsafe { CustomState::get(state) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoDsImplGetIncrementalState(
    ds_impl: Ref<'static, DataSourceType>,
    tracer: Mut<'_, Tracer>,
    inst_id: u32,
) -> *mut c_void {
    guard(|| {
        let Some(registered) = ds_impl.get().and_then(DataSourceType::registered) else { return ptr::null_mut() };
        let maker = registered.maker_of_incr(inst_id, tracer.as_ptr());
        let state = tracer.get().map_or(ptr::null_mut(), |tracer| tracer.incremental_state());
        // SAFETY: as in `PerfettoDsImplGetCustomTls`.
        unsafe { IncrementalState::get(state, &maker, registered.settings.on_clear_incr) }
    })
}
