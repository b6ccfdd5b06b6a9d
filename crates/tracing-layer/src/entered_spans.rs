//! Spans that the current thread has entered.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use esatto::{Arg, Flow, ThreadSlice};

use crate::callsite::Callsite;
use crate::field_values::Values;

/// Flows from a slice to spans that began inside of it; further ones get events of their own.
const MAX_LINKS: usize = 4;

/// Identity of a recorder. It outlives the recorder, because threads may still have spans of it.
#[derive(Debug)]
pub(crate) struct RecorderId {
    is_dropped: AtomicBool,
}

/// Number of recorders that were dropped.
static DROPPED: AtomicU32 = AtomicU32::new(0);

impl RecorderId {
    pub(crate) fn new() -> &'static Self {
        // A recorder also leaks its call sites.
        Box::leak(Box::new(Self { is_dropped: AtomicBool::new(false) }))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }

    /// Ends the slices that threads have in a recorder that is dropped: on this thread now, and on
    /// another thread when it next enters or leaves a span.
    pub(crate) fn end_spans(&self) {
        self.is_dropped.store(true, Ordering::Relaxed);
        // Release: a thread that sees the number also sees the flag.
        DROPPED.fetch_add(1, Ordering::Release);
        with(|_| ());
    }
}

/// A span that was entered, and its slice on the track of the thread.
#[derive(Debug)]
pub(crate) struct Entered {
    /// The recorder that it belongs to: a program may have several.
    pub(crate) recorder: &'static RecorderId,
    pub(crate) id: u64,
    pub(crate) callsite: &'static Callsite,
    pub(crate) slice: ThreadSlice,
    /// The span was left before spans that were entered later. Its slice ends with the last of
    /// them, because slices are nested.
    pub(crate) left: bool,
    /// Values were recorded after it was entered.
    pub(crate) has_values: bool,
    links: [u64; MAX_LINKS],
    link_count: usize,
}

impl Entered {
    pub(crate) const fn new(
        recorder: &'static RecorderId,
        id: u64,
        callsite: &'static Callsite,
        slice: ThreadSlice,
    ) -> Self {
        let links = [0; MAX_LINKS];
        Self { recorder, id, callsite, slice, left: false, has_values: false, links, link_count: 0 }
    }

    /// Remembers a flow, which the end of the slice carries. Returns false if there are too many,
    /// or if there is no slice.
    pub(crate) fn link(&mut self, flow: u64) -> bool {
        let fits = self.link_count < MAX_LINKS && self.slice.is_recorded();
        if fits {
            self.links[self.link_count] = flow;
            self.link_count += 1;
        }
        fits
    }

    pub(crate) fn links(&self) -> &[u64] {
        &self.links[..self.link_count]
    }

    /// Ends the slice without its recorder. Values that were recorded after its begin are lost.
    fn end_alone(&self) {
        let mut write = |event: &mut esatto::Event<'_>| {
            for &flow in self.links() {
                event.flow(Flow::global(flow));
            }
        };
        self.slice.end(&self.callsite.end, &mut [Arg::With(&mut write)]);
    }
}

/// State of a thread.
#[derive(Debug)]
pub(crate) struct Local {
    /// Number that identifies the thread; never reused.
    pub(crate) thread: u32,
    /// Value of [`DROPPED`] when this thread last looked for spans of dropped recorders.
    dropped: u32,
    entered: Vec<Entered>,
}

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local { thread: 0, dropped: 0, entered: Vec::new() }) };
    static SCRATCH: Cell<Option<Values>> = const { Cell::new(None) };
}

/// Runs `f` with the state of the thread. Returns `None` inside of `f`, for instance in an
/// allocator that traces, and after the thread has destroyed its state.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&mut Local) -> R) -> Option<R> {
    let result = LOCAL.try_with(|local| {
        let mut local = local.try_borrow_mut().ok()?;
        if local.thread == 0 {
            local.thread = next_thread();
        }
        let dropped = DROPPED.load(Ordering::Acquire);
        if local.dropped != dropped {
            local.dropped = dropped;
            local.leave_dropped();
        }
        Some(f(&mut local))
    });
    result.ok().flatten()
}

#[cold]
fn next_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns an empty list of values with reused memory.
pub(crate) fn take_scratch() -> Values {
    SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default()
}

/// Gives a list of values back.
pub(crate) fn give_scratch(mut values: Values) {
    values.clear();
    let _ = SCRATCH.try_with(|scratch| scratch.set(Some(values)));
}

impl Local {
    pub(crate) fn push(&mut self, entered: Entered) {
        self.entered.push(entered);
    }

    /// Returns the innermost span of a recorder.
    pub(crate) fn current(&self, recorder: &RecorderId) -> Option<&Entered> {
        self.entered.iter().rev().find(|entered| entered.recorder.is(recorder) && !entered.left)
    }

    /// Returns a span that this thread has entered.
    pub(crate) fn find(&mut self, recorder: &RecorderId, id: u64) -> Option<&mut Entered> {
        let is_it = |entered: &&mut Entered| entered.id == id && entered.recorder.is(recorder) && !entered.left;
        self.entered.iter_mut().rev().find(is_it)
    }

    /// Leaves a span, and calls `end` for each slice that ends with it, innermost first.
    pub(crate) fn leave(&mut self, recorder: &RecorderId, id: u64, end: impl FnMut(&Entered)) {
        let Some(entered) = self.find(recorder, id) else { return };
        entered.left = true;
        self.end_left(end);
    }

    /// Leaves the spans of recorders that were dropped: nothing else will.
    #[cold]
    fn leave_dropped(&mut self) {
        for entered in &mut self.entered {
            entered.left |= entered.recorder.is_dropped.load(Ordering::Relaxed);
        }
        self.end_left(Entered::end_alone);
    }

    /// Ends the slices that were left and have no open one in them, innermost first. Calls `end`
    /// for those whose recorder is there.
    fn end_left(&mut self, mut end: impl FnMut(&Entered)) {
        while let Some(last) = self.entered.last().filter(|last| last.left) {
            if last.recorder.is_dropped.load(Ordering::Relaxed) {
                last.end_alone();
            } else {
                end(last);
            }
            self.entered.pop();
        }
    }
}
