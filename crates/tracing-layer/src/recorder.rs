//! Recorder that turns spans and events into slices and instants, for the layer and the subscriber.

use esatto::{Arg, Begun, Flow, ThreadSlice, Timestamp, record, record_only};
use tracing_core::span::{Attributes, Record};
use tracing_core::{Event, Metadata};

use crate::callsite::{Callsite, Callsites, SpanKind};
use crate::entered_spans::{self, Entered, RecorderId};
use crate::event_name::EventName;
use crate::field_values::{Head, Values};
use crate::options::{Options, Slices};
use crate::span_table::{Lifetime, Slot, Span, Spans};

/// Number of ancestors that get a lane because a descendant gets one.
const MAX_PROMOTIONS: usize = 8;

#[derive(Debug)]
pub(crate) struct Recorder {
    id: &'static RecorderId,
    options: Options,
    callsites: Callsites,
    pub(crate) spans: Spans,
}

impl Recorder {
    pub(crate) fn new(options: Options) -> Self {
        Self { id: RecorderId::new(), options, callsites: Callsites::new(), spans: Spans::new() }
    }

    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Registers a call site. Returns false if it is never recorded.
    pub(crate) fn register(&self, metadata: &'static Metadata<'static>) -> bool {
        let wanted = self.options.is_enabled(metadata);
        if wanted {
            self.callsites.register(metadata, &self.options);
        }
        wanted
    }

    /// Returns true if a session records the call site now, or if the call site is not registered
    /// yet.
    #[inline]
    pub(crate) fn is_enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.callsites.get(metadata).is_none_or(|callsite| callsite.category.is_enabled())
    }

    /// Returns the facts about a call site, while a session records it.
    #[inline]
    fn enabled(&self, metadata: &'static Metadata<'static>) -> Option<&'static Callsite> {
        let callsite = match self.callsites.get(metadata) {
            Some(callsite) => callsite,
            None if self.options.is_enabled(metadata) => self.callsites.register(metadata, &self.options),
            None => return None,
        };
        callsite.category.is_enabled().then_some(callsite)
    }

    /// Returns the innermost span of this thread.
    pub(crate) fn current(&self) -> Option<(u64, &'static Metadata<'static>)> {
        entered_spans::with(|local| local.current(self.id).map(|entered| (entered.id, entered.callsite.metadata)))
            .flatten()
    }

    pub(crate) fn new_span(&self, id: u64, attributes: &Attributes<'_>) {
        let Some(callsite) = self.enabled(attributes.metadata()) else { return };
        // Do this first, without any lock: code of the program formats the values, and may do
        // anything.
        let mut values = entered_spans::take_scratch();
        attributes.record(&mut values);
        let Some(slot) = self.spans.insert(id) else { return };
        let Some((thread, current)) =
            entered_spans::with(|local| (local.thread, local.current(self.id).map(|entered| entered.id)))
        else {
            return;
        };
        let parent = match attributes.parent() {
            Some(parent) => Some(parent.into_u64()),
            None if attributes.is_contextual() => current,
            None => None,
        };
        let at_once = match callsite.slices {
            Slices::Auto => callsite.kind() == SpanKind::Async,
            Slices::Threads => false,
            Slices::Lifetime | Slices::Both => true,
        };
        let may_turn_out_async = callsite.slices == Slices::Auto && callsite.kind() == SpanKind::Unknown;
        let made = may_turn_out_async.then(Timestamp::now);
        let link = match parent {
            Some(parent) if at_once => self.link(parent, callsite, None, 0),
            // If the span turns out to belong to a future, its parent may have closed by then.
            Some(parent) if may_turn_out_async => self.link_from_entry(parent),
            _ => None,
        };
        let mut span = slot.lock();
        core::mem::swap(&mut span.values, &mut values);
        span.callsite = Some(callsite);
        span.parent = parent;
        span.made = made;
        span.link = link;
        span.thread = thread;
        if at_once {
            span.begin_lifetime(callsite, None);
        }
        drop(span);
        entered_spans::give_scratch(values);
    }

    #[inline]
    pub(crate) fn enter(&self, id: u64) {
        let Some(slot) = self.spans.get(id) else { return };
        let entered = entered_spans::with(|local| {
            let mut span = slot.lock();
            let callsite = span.callsite?;
            span.entries = span.entries.saturating_add(1);
            if span.lifetime.is_none()
                && callsite.slices == Slices::Auto
                && (span.entries > 1 || span.thread != local.thread)
            {
                return Some((callsite, None));
            }
            let slice = span.begin_entry(callsite);
            local.push(Entered::new(self.id, id, callsite, slice));
            Some((callsite, Some(())))
        });
        if let Some(Some((callsite, None))) = entered {
            self.enter_async(slot, id, callsite);
        }
    }

    /// Enters a span that has just turned out to belong to a future.
    #[cold]
    fn enter_async(&self, slot: &Slot, id: u64, callsite: &'static Callsite) {
        callsite.learn_async();
        self.promote(slot, 0);
        let slice = slot.lock().begin_entry(callsite);
        entered_spans::with(|local| local.push(Entered::new(self.id, id, callsite, slice)));
    }

    #[inline]
    pub(crate) fn exit(&self, id: u64) {
        entered_spans::with(|local| local.leave(self.id, id, |entered| self.end_entry(entered)));
    }

    /// Ends a slice on the track of the thread.
    #[inline]
    fn end_entry(&self, entered: &Entered) {
        if !entered.slice.is_recorded() {
            return;
        }
        if entered.has_values || !entered.links().is_empty() {
            return self.end_entry_with(entered);
        }
        entered.slice.end(&entered.callsite.end, &mut []);
    }

    #[cold]
    fn end_entry_with(&self, entered: &Entered) {
        // It may be a slice of another recorder that ends with one of this recorder.
        let is_own = entered.recorder.is(self.id);
        let mut slot = if is_own { self.spans.get(entered.id).map(Slot::lock) } else { None };
        let mut write = |event: &mut esatto::Event<'_>| {
            for &flow in entered.links() {
                event.flow(Flow::global(flow));
            }
            if let Some(span) = slot.as_mut().filter(|span| entered.has_values && span.lifetime.is_none()) {
                span.values.write(span.written, entered.callsite.names, event);
            }
        };
        entered.slice.end(&entered.callsite.end, &mut [Arg::With(&mut write)]);
        if let Some(span) = slot.as_mut().filter(|span| span.lifetime.is_none()) {
            span.written = span.values.len();
        }
    }

    pub(crate) fn record(&self, id: u64, record: &Record<'_>) {
        let Some(slot) = self.spans.get(id) else { return };
        let mut values = entered_spans::take_scratch();
        record.record(&mut values);
        slot.lock().values.append(&values);
        entered_spans::with(|local| {
            if let Some(entered) = local.find(self.id, id) {
                entered.has_values = true;
            }
        });
        entered_spans::give_scratch(values);
    }

    pub(crate) fn close(&self, id: u64) {
        let Some(slot) = self.spans.get(id) else { return };
        let mut span = slot.lock();
        if let Some(callsite) = span.callsite {
            if span.lifetime.is_some() {
                span.end_lifetime(callsite);
            } else if span.entries == 1 {
                callsite.learn_sync();
            }
        }
        slot.free(span);
    }

    /// Records an arrow from the lane of one span to that of another.
    pub(crate) fn follows_from(&self, id: u64, follows: u64) {
        let (Some(later), Some(earlier)) = (self.spans.get(id), self.spans.get(follows)) else { return };
        let callsite = |slot: &Slot| slot.lock().callsite;
        let (Some(later_callsite), Some(earlier_callsite)) = (callsite(later), callsite(earlier)) else { return };
        if later_callsite.slices == Slices::Threads || earlier_callsite.slices == Slices::Threads {
            return;
        }
        self.promote(earlier, 0);
        self.promote(later, 0);
        let flow = Flow::unique();
        // Each mark has the name of the span at the other end.
        earlier.lock().mark(later_callsite, flow, None);
        later.lock().mark(earlier_callsite, flow, None);
    }

    pub(crate) fn event(&self, event: &Event<'_>) {
        let Some(callsite) = self.enabled(event.metadata()) else { return };
        let mut values = entered_spans::take_scratch();
        event.record(&mut values);
        match event.parent().and_then(|parent| self.spans.get(parent.into_u64())) {
            Some(parent) => write_event(callsite, &values, parent.lock().lifetime.as_ref()),
            None => write_event(callsite, &values, None),
        }
        entered_spans::give_scratch(values);
    }

    /// Records an arrow from `parent` to a span of `callsite` that was created at `made` (`None`:
    /// now). Returns the flow that the begin of the span's slice must carry.
    fn link(
        &self,
        parent: u64,
        callsite: &'static Callsite,
        made: Option<&Timestamp>,
        promotions: usize,
    ) -> Option<Flow> {
        // An arrow starts at the slice that began earlier. If the span was created before now, that
        // may not be the slice of the thread.
        let from_entry = if made.is_none() { self.link_from_entry(parent) } else { None };
        if from_entry.is_some() {
            return from_entry;
        }
        let parent = self.spans.get(parent)?;
        if parent.lock().callsite?.slices == Slices::Threads {
            return None;
        }
        self.promote(parent, promotions + 1);
        let flow = Flow::unique();
        parent.lock().mark(callsite, flow, made).then_some(flow)
    }

    /// Records an arrow from the slice of a span on the track of this thread, if it has one, to a
    /// slice that begins now.
    fn link_from_entry(&self, parent: u64) -> Option<Flow> {
        entered_spans::with(|local| {
            let entered = local.find(self.id, parent)?;
            let flow = Flow::unique();
            entered.link(flow.id()).then_some(flow)
        })
        .flatten()
    }

    /// Gives a span a lane from now on.
    fn promote(&self, slot: &Slot, promotions: usize) {
        let (callsite, parent, made, link) = {
            let span = slot.lock();
            let Some(callsite) = span.callsite.filter(|_| span.lifetime.is_none()) else { return };
            (callsite, span.parent, span.made, span.link)
        };
        let link = match (link, parent) {
            (None, Some(parent)) if promotions < MAX_PROMOTIONS => {
                self.link(parent, callsite, made.as_ref(), promotions)
            }
            (link, _) => link,
        };
        let mut span = slot.lock();
        // Another thread may have begun it.
        if span.lifetime.is_none() {
            span.link = link;
            span.begin_lifetime(callsite, made.as_ref());
        }
    }
}

/// A layer can be replaced while spans are open: by `tracing_subscriber::reload`.
impl Drop for Recorder {
    fn drop(&mut self) {
        self.id.end_spans();
        for slot in self.spans.open() {
            let mut span = slot.lock();
            if let Some(callsite) = span.callsite {
                span.end_lifetime(callsite);
            }
        }
    }
}

impl Span {
    /// Begins the slice of the lifetime, now or at an earlier time.
    fn begin_lifetime(&mut self, callsite: &'static Callsite, at: Option<&Timestamp>) {
        // A reused lane may have been in use at that earlier time.
        let lane = if at.is_some() { callsite.lanes.take_new() } else { callsite.lanes.take() };
        let flow = self.flow();
        let head = Head { track: Some(lane.track()), flows: [Some(flow), self.link], at };
        let begun = Begun::by(|| self.values.with_args(callsite.names, head, |args| record(&callsite.begin, args)));
        self.lifetime = Some(Lifetime { lane, begun });
        self.written = self.values.len();
    }

    fn end_lifetime(&mut self, callsite: &'static Callsite) {
        let Some(Lifetime { lane, begun }) = self.lifetime.take() else { return };
        if self.values.len() == self.written {
            begun.record(&callsite.end, &mut [Arg::Track(lane.track())]);
        } else {
            let mut write = |event: &mut esatto::Event<'_>| self.values.write(self.written, callsite.names, event);
            begun.record(&callsite.end, &mut [Arg::Track(lane.track()), Arg::With(&mut write)]);
        }
    }

    /// Begins a slice on the track of the thread.
    #[inline]
    fn begin_entry(&mut self, callsite: &'static Callsite) -> ThreadSlice {
        if !callsite.category.is_enabled() {
            return ThreadSlice::NONE;
        }
        let Some(lifetime) = &mut self.lifetime else { return self.begin_only_entry(callsite) };
        let missing = lifetime.begun.missing(callsite.category);
        let flow = *self.flow.get_or_insert_with(Flow::unique);
        if missing != 0 {
            // A session started after the span.
            let head = Head { track: Some(lifetime.lane.track()), flows: [Some(flow), None], at: None };
            let record = |args: &mut [Arg<'_>]| record_only(missing, &callsite.begin, args);
            lifetime.begun.add(|| self.values.with_args(callsite.names, head, record));
        }
        match callsite.slices {
            Slices::Lifetime => ThreadSlice::NONE,
            _ => ThreadSlice::by(|| record(&callsite.begin, &mut [Arg::Flow(flow.id())])),
        }
    }

    fn begin_only_entry(&mut self, callsite: &'static Callsite) -> ThreadSlice {
        self.written = self.values.len();
        // If this turns out to be the first of several entries, the flow connects it with them.
        let may_be_async = callsite.slices == Slices::Auto && callsite.kind() != SpanKind::Sync;
        let flow = may_be_async.then(|| self.flow());
        if flow.is_none() && self.values.len() == 0 {
            return ThreadSlice::by(|| record(&callsite.begin, &mut []));
        }
        let head = Head { flows: [flow, None], ..Head::default() };
        ThreadSlice::by(|| self.values.with_args(callsite.names, head, |args| record(&callsite.begin, args)))
    }

    /// Marks a moment of the lifetime, at one end of an arrow. Returns false if there is no lane,
    /// or if no session records it.
    fn mark(&self, callsite: &'static Callsite, flow: Flow, at: Option<&Timestamp>) -> bool {
        let Some(lifetime) = &self.lifetime else { return false };
        let (track, flow) = (Arg::Track(lifetime.lane.track()), Arg::Flow(flow.id()));
        match at {
            None => record(&callsite.mark, &mut [track, flow]) != 0,
            Some(at) => record(&callsite.mark, &mut [track, flow, Arg::At(at)]) != 0,
        }
    }
}

fn write_event(callsite: &'static Callsite, values: &Values, lifetime: Option<&Lifetime>) {
    let message = callsite.message.and_then(|message| values.text_of(message));
    let own_name = callsite.event.name().is_none().then(|| callsite.name_of(message, values));
    let name = own_name.as_ref().map(EventName::as_str);
    let text = message.or(name).or_else(|| callsite.event.name()).unwrap_or_default();
    let mut write = |event: &mut esatto::Event<'_>| {
        event.log(callsite.priority(), text, callsite.location(values));
        values.write_if(|field| callsite.is_argument(field), callsite.names, event);
    };
    let with = Arg::With(&mut write);
    let site = &callsite.event;
    match (lifetime.map(|lifetime| Arg::Track(lifetime.lane.track())), name.map(Arg::Name)) {
        (None, None) => record(site, &mut [with]),
        (None, Some(name)) => record(site, &mut [name, with]),
        (Some(track), None) => record(site, &mut [track, with]),
        (Some(track), Some(name)) => record(site, &mut [track, name, with]),
    };
}
