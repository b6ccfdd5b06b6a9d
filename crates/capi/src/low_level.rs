//! Track events that the program encodes itself (`docs/spec/c-abi.md` §12).

use core::ffi::c_int;
use core::ptr::{self, NonNull};

use esatto::raw::{self, Sequence};

use crate::abi::{CategoryDescriptor, LlIterator, Timestamp, TracerIterator};
use crate::category::{self, CategoryImpl};
use crate::ffi::{Mut, Out, Ref, Slice};
use crate::panic_guard::{Fallback, guard};
use crate::tracer::{Iteration, Tracer, Turn};

impl Fallback for LlIterator {
    const FALLBACK: Self = Self::END;
}

impl LlIterator {
    /// The end of an iteration.
    const END: Self = Self { ds: TracerIterator::END, incr: ptr::null_mut(), tls: ptr::null_mut() };

    /// Gives the turn to the next instance.
    fn next(category: &'static CategoryImpl, iteration: Iteration, ts: Timestamp) -> Self {
        // A sequence begins with a time of the trace clock. A time of another clock is that of the
        // event only.
        let now = if ts.clock_id == raw::clock_id() { ts.value } else { esatto::now_ns() };
        while let Some(slot) = iteration.next_instance() {
            let open = raw::sequence(slot as usize, &|| category.category().instances(), |sequence| {
                let is_ready = sequence.begin(now);
                is_ready.then(|| (NonNull::from(sequence.packets()), ptr::from_mut(sequence)))
            });
            if let Some((writer, sequence)) = open.flatten() {
                iteration.set_turn(Turn::TrackEvents { writer: Some(writer) });
                let ds = iteration.begin_turn(slot);
                return Self { incr: sequence, tls: ds.tls, ds };
            }
        }
        Self::END
    }

    /// Takes the iteration from the program, as [`TracerIterator::take`]. The program's iterator is
    /// then at its end.
    fn take(&mut self) -> Option<Iteration> {
        let (_, iteration) = self.ds.take()?;
        *self = Self::END;
        Some(iteration)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplBegin(cat: Ref<'static, CategoryImpl>, ts: Timestamp) -> LlIterator {
    guard(|| {
        let recording = cat.get().map(|category| (category, category.reached()));
        let Some((category, instances)) = recording.filter(|&(_, instances)| instances != 0) else {
            return LlIterator::END;
        };
        match Tracer::enter(instances) {
            Some(iteration) => LlIterator::next(category, iteration, ts),
            None => LlIterator::END,
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplNext(
    cat: Ref<'static, CategoryImpl>,
    ts: Timestamp,
    iterator: Mut<'_, LlIterator>,
) {
    guard(|| {
        let (Some(category), Some(iterator)) = (cat.get(), iterator.get()) else { return };
        if let Some(iteration) = iterator.take() {
            *iterator = LlIterator::next(category, iteration, ts);
        }
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplBreak(_cat: Ref<'static, CategoryImpl>, iterator: Mut<'_, LlIterator>) {
    guard(|| {
        drop(iterator.get().and_then(LlIterator::take));
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplDynCatEnabled(
    _tracer: Ref<'_, Tracer>,
    inst_id: u32,
    desc: Ref<'_, CategoryDescriptor<'_>>,
) -> bool {
    guard(|| inst_id < u32::BITS && category::dynamic_instances(desc) & 1 << inst_id != 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplTrackSeen(incr: Mut<'_, Sequence>, uuid: u64) -> bool {
    guard(|| incr.get().is_some_and(|sequence| sequence.track_seen(uuid)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn PerfettoTeLlImplIntern(
    incr: Mut<'_, Sequence>,
    table: c_int,
    data: *const u8,
    data_size: usize,
    seen: Out<'_, bool>,
) -> u64 {
    guard(|| {
        // SAFETY: the contract: `data` has `data_size` bytes, or is null.
        let entry = unsafe { Slice::new(data, data_size) }.get();
        #[expect(clippy::cast_sign_loss, reason = "no table has a negative number")]
        let (iid, known) = incr.get().map_or((0, true), |sequence| sequence.intern(table as u32, entry));
        seen.write(known);
        iid
    })
}
