//! Track events that the program encodes itself (`docs/spec/c-abi.md` §12).

use core::ffi::c_int;
use core::ptr::{self, NonNull};

use esatto::raw::{self, Sequence};

use crate::abi::{CategoryDescriptor, LlIterator, Timestamp, TracerIterator};
use crate::category::{self, CategoryImpl};
use crate::guard::{Nothing, guard};
use crate::text;
use crate::tracer::{Iteration, Tracer};

impl Nothing for LlIterator {
    const NOTHING: Self = Self::end();
}

impl LlIterator {
    const fn end() -> Self {
        Self { ds: TracerIterator::end(), incr: ptr::null_mut(), tls: ptr::null_mut() }
    }

    /// The turn of the next instance.
    fn next(category: &'static CategoryImpl, iteration: Iteration, ts: Timestamp) -> Self {
        let tracer = iteration.tracer();
        // SAFETY: of this thread, which is in the trace point; nothing of the program's runs here.
        let here = unsafe { &mut *tracer };
        // What a sequence begins with is of the trace clock; a time of another one is the event's only.
        let now = if ts.clock_id == raw::clock_id() { ts.value } else { raw::now_ns() };
        while let Some(slot) = here.next_instance() {
            let open = raw::sequence(slot as usize, &|| category.category().instances(), |sequence| {
                let is_ready = sequence.begin(now);
                is_ready.then(|| (NonNull::from(sequence.packets()), ptr::from_mut(sequence)))
            });
            if let Some((writer, sequence)) = open.flatten() {
                here.writer = Some(writer);
                here.sequence = sequence;
                iteration.goes_on();
                return Self { ds: TracerIterator::at(slot, tracer), incr: sequence, tls: tracer.cast() };
            }
        }
        Self::end()
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplBegin(cat: *const CategoryImpl, ts: Timestamp) -> LlIterator {
    guard(|| {
        // SAFETY: the contract: from create; categories live for ever.
        let category: Option<&'static CategoryImpl> = unsafe { cat.as_ref() };
        let recording = category.map(|category| (category, category.category().instances()));
        let Some((category, instances)) = recording.filter(|&(_, instances)| instances != 0) else {
            return LlIterator::end();
        };
        match Tracer::enter(instances) {
            Some(iteration) => LlIterator::next(category, iteration, ts),
            None => LlIterator::end(),
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplNext(cat: *const CategoryImpl, ts: Timestamp, iterator: *mut LlIterator) {
    guard(|| {
        // SAFETY: the contract: from create; categories live for ever.
        let category: Option<&'static CategoryImpl> = unsafe { cat.as_ref() };
        // SAFETY: the contract: from begin.
        let iterator = unsafe { iterator.as_mut() }.filter(|iterator| !iterator.ds.tracer.is_null());
        let (Some(category), Some(iterator)) = (category, iterator) else { return };
        // SAFETY: as above, and not at its end: the thread is in the trace point.
        let iteration = unsafe { Iteration::of(iterator.ds.tracer) };
        // Also if what follows panics.
        *iterator = LlIterator::end();
        *iterator = LlIterator::next(category, iteration, ts);
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplBreak(_cat: *const CategoryImpl, iterator: *mut LlIterator) {
    guard(|| {
        // SAFETY: the contract: from begin.
        let Some(iterator) = (unsafe { iterator.as_mut() }).filter(|iterator| !iterator.ds.tracer.is_null()) else {
            return;
        };
        // SAFETY: as above, and not at its end: the thread is in the trace point.
        drop(unsafe { Iteration::of(iterator.ds.tracer) });
        *iterator = LlIterator::end();
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplDynCatEnabled(
    _tracer: *mut Tracer,
    inst_id: u32,
    desc: *const CategoryDescriptor,
) -> bool {
    guard(|| {
        // SAFETY: the contract.
        inst_id < u32::BITS && unsafe { category::dynamic_instances(desc) } & 1 << inst_id != 0
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplTrackSeen(incr: *mut Sequence, uuid: u64) -> bool {
    guard(|| {
        // SAFETY: the contract: of an iteration of this thread that goes on.
        unsafe { incr.as_mut() }.is_some_and(|sequence| sequence.track_seen(uuid))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplIntern(
    incr: *mut Sequence,
    table: c_int,
    data: *const u8,
    data_size: usize,
    seen: *mut bool,
) -> u64 {
    guard(|| {
        // SAFETY: the contract: as many bytes, or null.
        let entry = unsafe { text::block(data, data_size) };
        // SAFETY: the contract: of an iteration of this thread that goes on.
        let (iid, known) = unsafe { incr.as_mut() }.map_or((0, true), |sequence| sequence.intern(table as u32, entry));
        if !seen.is_null() {
            // SAFETY: the contract: a variable of the program.
            unsafe { seen.write(known) };
        }
        iid
    })
}
