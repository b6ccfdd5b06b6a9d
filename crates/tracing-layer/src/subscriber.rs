//! The subscriber for `tracing`.

use core::cell::Cell;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Event, Interest, LevelFilter, Metadata};

use crate::options::Options;
use crate::recorder::Recorder;

/// A `tracing` subscriber that only records spans and events as trace events. Create it with
/// [`subscriber`](crate::subscriber).
///
/// It needs no `Registry`, which costs about as much as the two trace events of a span. It does not
/// create spans that no session records: they cost a look at their category.
pub struct Subscriber {
    recorder: Recorder,
}

impl Subscriber {
    pub(crate) fn new(options: Options) -> Self {
        Self { recorder: Recorder::new(options) }
    }
}

impl Default for Subscriber {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("options", self.recorder.options()).finish_non_exhaustive()
    }
}

impl tracing_core::Subscriber for Subscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Do not return `always`: sessions start and end without notice to `tracing`, whose caches
        // would have to be rebuilt each time.
        if self.recorder.register(metadata) { Interest::sometimes() } else { Interest::never() }
    }

    #[inline]
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.recorder.is_enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        self.recorder.options().max_level
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let id = next_id();
        self.recorder.new_span(id, attributes);
        Id::from_u64(id)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        self.recorder.record(id.into_u64(), values);
    }

    fn record_follows_from(&self, id: &Id, follows: &Id) {
        self.recorder.follows_from(id.into_u64(), follows.into_u64());
    }

    fn event(&self, event: &Event<'_>) {
        self.recorder.event(event);
    }

    fn enter(&self, id: &Id) {
        self.recorder.enter(id.into_u64());
    }

    fn exit(&self, id: &Id) {
        self.recorder.exit(id.into_u64());
    }

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(slot) = self.recorder.spans.get(id.into_u64()) {
            slot.handles.fetch_add(1, Ordering::Relaxed);
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let Some(slot) = self.recorder.spans.get(id.into_u64()) else { return false };
        // Release and acquire, as in every reference counter: the thread that drops the last handle
        // sees all writes of the threads that dropped the other handles.
        if slot.handles.fetch_sub(1, Ordering::Release) != 1 {
            return false;
        }
        fence(Ordering::Acquire);
        self.recorder.close(id.into_u64());
        true
    }

    fn current_span(&self) -> Current {
        match self.recorder.current() {
            Some((id, metadata)) => Current::new(Id::from_u64(id), metadata),
            None => Current::none(),
        }
    }
}

/// Returns a number that no other span has.
fn next_id() -> u64 {
    /// Numbers that a thread takes at once.
    const PER_THREAD: u64 = 1024;
    static NEXT: AtomicU64 = AtomicU64::new(PER_THREAD);
    thread_local! {
        /// The next number of this thread. A multiple of `PER_THREAD` means that it has none.
        static OWN: Cell<u64> = const { Cell::new(0) };
    }
    let take = || NEXT.fetch_add(PER_THREAD, Ordering::Relaxed);
    let id = OWN.try_with(|own| {
        let id = if own.get() % PER_THREAD == 0 { take() } else { own.get() };
        own.set(id + 1);
        id
    });
    id.unwrap_or_else(|_| take())
}
