//! The full path: the first events of their kind, long events, and all others that do not qualify
//! for the fast path.

use esatto_protozero::Message;
use esatto_schema::{InternedDataWriter, TracePacketWriter, trace_packet, track_event};

use super::{FLAG_NEEDS_STATE, ForeignTrack, Sequence, Timestamp};
use crate::category::Category;
use crate::event::track::Track;
use crate::event::{AnnotationNames, Arg, CounterValue, Event, Site, timestamp};
use crate::name::Name;

/// The most counters whose values one event can carry. Readers refuse more
/// (`docs/spec/track-event.md` §16).
const MAX_EXTRA_COUNTERS: usize = 8;

impl Sequence {
    /// Writes an event of any kind and length.
    #[cold]
    #[inline(never)]
    pub(super) fn write_any(
        &mut self,
        site: &'static Site,
        number: u32,
        args: &mut [Arg<'_>],
        foreign: Option<&ForeignTrack<'_>>,
        now: u64,
    ) {
        if !self.is_ready() && !self.start(now) {
            return;
        }
        let now = now.max(self.last_ns);
        self.look_at_name(now);
        let parts = Parts::of(site, args);
        let track = parts.track.map(|track| {
            let uuid = track.uuid();
            match foreign {
                Some(foreign) if !self.tracks.contains(&uuid) => (foreign.describe)(self),
                None if uuid != self.last_track => self.describe(track, uuid, now),
                _ => {}
            }
            uuid
        });
        let extra = self.extra_counters(args, track.is_none(), now);
        let time = match parts.at {
            None => self.timestamp(now),
            Some(at) => self.foreign_timestamp(at, now),
        };
        // Readers cannot use the event without all that precedes it. The next one starts over.
        if !self.is_ready() {
            return;
        }

        // Numbers come first: the packet announces new names after the event.
        let mut new = NewNames::default();
        let mut categories = [None; Category::MAX_GROUP];
        if let Some(category) = parts.category {
            for (slot, member) in categories.iter_mut().zip(category.members()) {
                *slot = Some(member.interned_name().iid());
            }
            let unknown = |member: &&'static Category| !self.categories.check_and_set(member.interned_name().iid());
            for (slot, member) in new.categories.iter_mut().zip(category.members().filter(unknown)) {
                *slot = Some(member);
            }
        }
        new.event = site.event_name().filter(|name| !self.event_names.check_and_set(name.iid()));
        for name in site.arguments() {
            self.annotation_names.number(name);
        }
        // If the program's code panics below, the packet is not completed. It is dropped together
        // with the names that it announces, so the sequence starts over.
        self.fresh = true;
        self.writer.begin_packet();
        let Some(mut message) = self.writer.message() else { return };
        time.write(&mut message);
        message.varint(trace_packet::field::SEQUENCE_FLAGS, u64::from(FLAG_NEEDS_STATE));
        {
            let mut event = message.begin(trace_packet::field::TRACK_EVENT);
            if let Some(event_type) = site.kind().number() {
                event.varint(track_event::field::TYPE, event_type.0 as u64);
            }
            for iid in categories.into_iter().flatten() {
                event.varint(track_event::field::CATEGORY_IIDS, u64::from(iid));
            }
            if let Some(name) = site.event_name() {
                event.varint(track_event::field::NAME_IID, u64::from(name.iid()));
            }
            if let Some(uuid) = track {
                event.varint(track_event::field::TRACK_UUID, uuid);
            }
            for arg in args.iter() {
                match arg {
                    Arg::Name(name) => event.string(track_event::field::NAME, self.options.shown_name(name)),
                    Arg::Counter(value) => match self.counters.written(track.unwrap_or(0), *value) {
                        CounterValue::Int(v) => event.int(track_event::field::COUNTER_VALUE, v),
                        CounterValue::Double(v) => event.double(track_event::field::DOUBLE_COUNTER_VALUE, v),
                    },
                    _ => {}
                }
            }
            extra.write(&mut event);
            let mut event = Event::new(event, &mut self.annotation_names, !self.options.filter_annotations);
            if let Some(place) = site.place() {
                event.location(place.location());
            }
            let mut names = site.arguments().iter();
            for arg in args {
                event.add(arg, &mut names);
            }
        }
        let names = &mut self.annotation_names;
        if new.any() || !names.new.is_empty() || names.tables.has_pending() {
            new.announce(&mut message, names);
        }
        drop(message);
        self.writer.end_packet();
        self.fresh = false;
        if self.options.is_plain() && site.is_plain() {
            self.sites.check_and_set(number);
        }
        if self.options.intercepted {
            self.writer.flush();
        }
    }

    /// Returns the timestamp of an event with its own time. If the clock is the program's, the
    /// sequence first writes the clock's anchor.
    fn foreign_timestamp(&mut self, at: timestamp::Timestamp, now: u64) -> Timestamp {
        let (value, clock, custom) = at.resolve(now);
        if let Some((custom, anchor)) = custom {
            let known = self.clocks.iter_mut().find(|(id, _)| *id == custom.id());
            if known.as_ref().is_none_or(|(_, known)| *known != anchor) {
                match known {
                    Some((_, known)) => *known = anchor,
                    None => self.clocks.push((custom.id(), anchor)),
                }
                let mut packet = self.writer.new_packet();
                let mut packet: TracePacketWriter<'_> = packet.typed();
                packet.sequence_flags(FLAG_NEEDS_STATE);
                custom.write(anchor, &mut packet.clock_snapshot());
            }
        }
        Timestamp { value, clock }
    }

    /// Collects the values of other counters of an event, and describes their tracks.
    fn extra_counters(&mut self, args: &[Arg<'_>], is_on_thread: bool, now: u64) -> ExtraCounters {
        let mut extra = ExtraCounters::default();
        if self.options.thread_time && is_on_thread {
            let uuid = crate::track_uuid::thread_uuid(self.thread.tid) ^ super::THREAD_TIME;
            extra.push(uuid, CounterValue::Int(self.counters.thread_time(now, self.options)));
            extra.defaults = 1;
        }
        for arg in args {
            if let Arg::Extra((track, value)) = arg {
                let uuid = track.uuid();
                self.describe(track, uuid, now);
                extra.push(uuid, self.counters.written(uuid, *value));
            }
        }
        extra
    }
}

/// The arguments that need separate handling.
struct Parts<'a> {
    category: Option<&'static Category>,
    track: Option<&'a Track>,
    at: Option<timestamp::Timestamp>,
}

impl<'a> Parts<'a> {
    fn of(site: &'static Site, args: &[Arg<'a>]) -> Self {
        let mut parts = Self { category: site.written_category(), track: None, at: None };
        for arg in args {
            match arg {
                Arg::Category(category) if parts.category.is_some() => parts.category = Some(category),
                Arg::Track(track) => parts.track = Some(track),
                Arg::At(at) => parts.at = Some(**at),
                _ => {}
            }
        }
        parts
    }
}

/// The values of counters other than the event's own. Integers and floats have separate lists.
#[derive(Default)]
struct ExtraCounters {
    all: [Option<(u64, CounterValue)>; MAX_EXTRA_COUNTERS],
    len: usize,
    /// The first integers, this many, belong to the default counters of the sequence.
    defaults: usize,
}

impl ExtraCounters {
    /// Adds a value, unless there are too many.
    fn push(&mut self, uuid: u64, value: CounterValue) {
        if let Some(slot) = self.all.get_mut(self.len) {
            *slot = Some((uuid, value));
            self.len += 1;
        }
    }

    fn write(&self, event: &mut Message<'_>) {
        let ints = || self.all.iter().flatten().filter(|(_, value)| matches!(value, CounterValue::Int(_)));
        // A list of counters replaces the default one.
        let names_counters = ints().count() > self.defaults;
        for (uuid, value) in self.all.iter().flatten() {
            match value {
                CounterValue::Int(v) => {
                    if names_counters {
                        event.varint(track_event::field::EXTRA_COUNTER_TRACK_UUIDS, *uuid);
                    }
                    event.int(track_event::field::EXTRA_COUNTER_VALUES, *v);
                }
                CounterValue::Double(v) => {
                    event.varint(track_event::field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS, *uuid);
                    event.double(track_event::field::EXTRA_DOUBLE_COUNTER_VALUES, *v);
                }
            }
        }
    }
}

/// The names that an event uses for the first time on its sequence.
#[derive(Default)]
struct NewNames {
    categories: [Option<&'static Category>; Category::MAX_GROUP],
    event: Option<&'static Name>,
}

impl NewNames {
    fn any(&self) -> bool {
        self.categories[0].is_some() || self.event.is_some()
    }

    /// Writes the texts into the packet of the event.
    #[cold]
    #[inline(never)]
    fn announce(self, packet: &mut Message<'_>, annotations: &mut AnnotationNames) {
        let mut data = InternedDataWriter::from(packet.begin(trace_packet::field::INTERNED_DATA));
        for category in self.categories.into_iter().flatten() {
            let name = category.interned_name();
            data.event_categories().iid(u64::from(name.iid())).name(name.text());
        }
        if let Some(name) = self.event {
            data.event_names().iid(u64::from(name.iid())).name(name.text());
        }
        for name in annotations.new.drain(..) {
            data.debug_annotation_names().iid(u64::from(name.iid())).name(name.text());
        }
        annotations.tables.define(data.message());
    }
}
