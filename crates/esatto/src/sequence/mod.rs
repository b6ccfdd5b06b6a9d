//! One packet sequence: the events of one thread for one instance, and the incremental state that
//! they build on (`docs/spec/track-event.md` §§10-12).

mod fast_path;
mod foreign_writer;
mod full_path;
mod incremental_counters;
mod thread_name;
mod track_event_instance;

use core::hash::{BuildHasherDefault, Hasher};
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashSet;

use esatto_instances::{InstanceWriter, Slots};
use esatto_protozero::Message;
use esatto_schema::{
    ClockSnapshotWriter, TracePacketWriter, TrackDescriptorWriter, counter_descriptor::BuiltinCounterType, trace_packet,
};
use esatto_shm::TraceWriter;

use crate::event::timestamp::Anchor;
use crate::event::track::{Track, announcement};
use crate::event::{AnnotationNames, Arg, Site};
use crate::hash::fnv;
use crate::name::Announced;
use crate::os::process_info::{self, Pid};
use crate::{clock, slice_stack, start_times, track_uuid};
pub(crate) use foreign_writer::ForeignTrack;
use incremental_counters::{Counters, THREAD_TIME, THREAD_TIME_NAME};
pub(crate) use track_event_instance::TRACK_EVENTS;
pub(crate) use track_event_instance::{Instance, Options};

/// The clock whose timestamps are differences to the previous one.
const INCREMENTAL_CLOCK: u32 = 64;
/// The clock whose timestamps are multiples of the configured unit.
const SCALED_CLOCK: u32 = 65;

const FLAG_CLEARED: u32 = 1;
const FLAG_NEEDS_STATE: u32 = 2;

/// A packet sequence of one thread for one instance.
#[derive(Debug)]
pub struct Sequence {
    writer: TraceWriter,
    options: Options,
    /// Nothing was written since the sequence began or its state was cleared.
    fresh: bool,
    /// Bytes that were written when the sequence last started over.
    written_before_start: u64,
    /// See [`InstanceWriter::is_idle`].
    written_before: u64,
    /// The absolute time of the last incremental timestamp.
    last_ns: u64,
    thread: process_info::Thread,
    /// The number of this process for the service.
    pid: Pid,
    /// When the instance began to record.
    enabled_ns: u64,
    /// When the name of the thread was last read.
    named_ns: u64,
    /// Sites whose names are all announced and whose events qualify for the fast path.
    sites: Announced,
    categories: Announced,
    event_names: Announced,
    annotation_names: AnnotationNames,
    tracks: HashSet<u64, BuildHasherDefault<IdentityHasher>>,
    /// The last track that was used, to skip the look-up.
    last_track: u64,
    counters: Counters,
    /// The anchors of the program's clocks that this sequence has written.
    clocks: Vec<(u32, Anchor)>,
    /// The number of bytes written when the last empty packet was written.
    written_before_empty: Option<u64>,
}

/// Set when a thread of this process records its first event.
static HAS_ANY_BEGUN: AtomicBool = AtomicBool::new(false);

/// Returns whether a thread of this process has recorded an event.
#[cfg(feature = "in-process")]
pub(crate) fn has_any_begun() -> bool {
    HAS_ANY_BEGUN.load(Ordering::Relaxed)
}

impl Sequence {
    fn new(instance: &Instance) -> Self {
        HAS_ANY_BEGUN.store(true, Ordering::Relaxed);
        Self {
            writer: instance.destination.create_writer(),
            options: instance.options,
            fresh: true,
            written_before_start: 0,
            written_before: 0,
            last_ns: 0,
            thread: process_info::Thread::current(),
            pid: instance.destination.pid().clone(),
            enabled_ns: instance.enabled_ns.load(Ordering::Relaxed),
            named_ns: 0,
            sites: Announced::default(),
            categories: Announced::default(),
            event_names: Announced::default(),
            annotation_names: AnnotationNames::default(),
            tracks: HashSet::default(),
            last_track: 0,
            counters: Counters::default(),
            clocks: Vec::new(),
            written_before_empty: None,
        }
    }

    /// Forgets the incremental state. The next event starts the sequence over.
    fn clear(&mut self) {
        self.fresh = true;
        self.sites.clear();
        self.categories.clear();
        self.event_names.clear();
        self.annotation_names.announced.clear();
        self.annotation_names.tables.clear();
        self.tracks.clear();
        self.last_track = 0;
        self.counters.clear();
        self.clocks.clear();
    }

    /// Writes an empty packet, unless nothing was written since the last one. Services that read
    /// unfinished chunks skip the last packet in them, so the empty packet makes the previous one
    /// visible.
    pub(crate) fn write_empty(&mut self) {
        if self.written_before_empty != Some(self.writer.written()) {
            drop(self.writer.new_packet());
            self.written_before_empty = Some(self.writer.written());
        }
    }

    /// Writes one event, perhaps on a track that the caller describes.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        site: &'static Site,
        args: &mut [Arg<'_>],
        track: Option<&ForeignTrack<'_>>,
        now: u64,
    ) {
        // The counters of several processors may differ by a few nanoseconds.
        let now = now.max(self.last_ns);
        if !self.sites.contains(site.known_number()) || !self.write_small(site, args, now) {
            self.write_otherwise(site, args, track, now);
        }
    }

    /// Writes an event that cannot take the fast path, perhaps only because the chunk is almost
    /// full.
    #[cold]
    #[inline(never)]
    fn write_otherwise(
        &mut self,
        site: &'static Site,
        args: &mut [Arg<'_>],
        track: Option<&ForeignTrack<'_>>,
        now: u64,
    ) {
        self.renew_if_due();
        let number = site.number();
        let known = self.is_ready() && self.sites.contains(number);
        if known && self.look_at_name(now) && self.write_outlined(site, args, now) {
            return;
        }
        let again = known && self.writer.begin_next_chunk(fast_path::MAX);
        if !again || !self.write_outlined(site, args, now) {
            self.write_any(site, number, args, track, now);
        }
    }

    /// Writes an event with plain stores. Returns false if it does not fit or needs more than that.
    #[inline(always)]
    fn write_small(&mut self, site: &'static Site, args: &[Arg<'_>], now: u64) -> bool {
        if !args.is_empty() {
            return self.write_piecewise(site, args, now);
        }
        let (body, len) = site.body();
        // None: long after the last event.
        let Some(head) = fast_path::head(now - self.last_ns, len) else { return self.write_outlined(site, args, now) };
        let fits = self.writer.small_words(head, (body, len));
        if fits {
            self.last_ns = now;
        }
        fits
    }

    #[inline(never)]
    fn write_outlined(&mut self, site: &'static Site, args: &[Arg<'_>], now: u64) -> bool {
        self.write_piecewise(site, args, now)
    }

    #[inline(always)]
    fn write_piecewise(&mut self, site: &'static Site, args: &[Arg<'_>], now: u64) -> bool {
        let Self { writer, last_ns, tracks, last_track, .. } = self;
        let since_last = now - *last_ns;
        // Events in quick succession soon fill their chunk, and the sequence looks then.
        if since_last >= fast_path::LONG_NS && thread_name::is_look_due(self.named_ns, now) {
            return false;
        }
        let Some(mut packet) = writer.small_packet(fast_path::MIN) else { return false };
        let event = fast_path::begin(&mut packet, since_last);
        let (body, len) = site.body();
        packet.words(body, len);
        let is_described = |uuid: u64| {
            let known = uuid == *last_track || tracks.contains(&uuid);
            *last_track = if known { uuid } else { *last_track };
            known
        };
        if !fast_path::arguments(&mut packet, site.arguments(), args, is_described) {
            return false;
        }
        packet.close(event);
        let fits = packet.finish();
        if fits {
            *last_ns = now;
        }
        fits
    }

    /// Returns the timestamp for `now` in the default clock of the sequence, or in the trace clock
    /// if time went backwards.
    #[inline]
    fn timestamp(&mut self, now: u64) -> Timestamp {
        let Options { incremental_timestamps, unit_ns, .. } = self.options;
        if !incremental_timestamps {
            return Timestamp { value: now / unit_ns, clock: 0 };
        }
        match now.checked_sub(self.last_ns) {
            Some(delta) if unit_ns == 1 => {
                self.last_ns = now;
                Timestamp { value: delta, clock: 0 }
            }
            Some(delta) => {
                let units = delta / unit_ns;
                self.last_ns += units * unit_ns;
                Timestamp { value: units, clock: 0 }
            }
            None => Timestamp {
                value: now / unit_ns,
                clock: if unit_ns == 1 { clock::trace_clock_id() } else { SCALED_CLOCK },
            },
        }
    }

    /// Writes the start of a sequence: its defaults and clocks, its thread and its process. Returns
    /// false if there is no memory for all of it. The event is then lost, and the next one tries
    /// again.
    #[cold]
    #[inline(never)]
    fn start(&mut self, now: u64) -> bool {
        self.clear();
        self.written_before_start = self.writer.written();
        let Options { incremental_timestamps, unit_ns, .. } = self.options;
        let trace_clock = clock::trace_clock_id();
        let thread_uuid = track_uuid::thread_uuid(self.thread.tid);
        let default_clock = match (incremental_timestamps, unit_ns) {
            (true, _) => INCREMENTAL_CLOCK,
            (false, 1) => trace_clock,
            (false, _) => SCALED_CLOCK,
        };
        self.last_ns = now;
        {
            let mut packet = self.writer.new_packet();
            let mut packet: TracePacketWriter<'_> = packet.typed();
            packet.sequence_flags(FLAG_CLEARED);
            packet.timestamp(if incremental_timestamps { 0 } else { now / unit_ns });
            {
                let mut defaults = packet.trace_packet_defaults();
                defaults.timestamp_clock_id(default_clock);
                let mut event = defaults.track_event_defaults();
                event.track_uuid(thread_uuid);
                if self.options.thread_time {
                    event.extra_counter_track_uuids(thread_uuid ^ THREAD_TIME);
                }
            }
            if default_clock != clock::trace_clock_id() {
                write_clocks(&mut packet.clock_snapshot(), now, incremental_timestamps, unit_ns);
            }
        }
        if self.writer.is_dropping() {
            return false;
        }
        // That packet has the mark of all losses before it.
        self.writer.accept_losses();
        self.fresh = false;
        self.named_ns = now;
        self.thread = self.thread.renamed().unwrap_or(self.thread);
        let process_uuid = track_uuid::process_uuid();
        self.tracks.extend([thread_uuid, process_uuid]);
        self.describe_thread(now);
        let announced = announcement::get(process_uuid);
        let pid = self.pid.clone();
        let enabled = self.enabled_ns;
        self.write_descriptor(now, |descriptor| {
            match &announced {
                Some(track) => track.describe(&pid, descriptor),
                None => {
                    descriptor.uuid(process_uuid);
                    process_info::describe("", &pid, &mut descriptor.process());
                }
            }
            start_times::write(enabled, descriptor.message());
        });
        if self.options.thread_time {
            self.write_descriptor(now, |descriptor| {
                descriptor.uuid(thread_uuid ^ THREAD_TIME).parent_uuid(thread_uuid).static_name(THREAD_TIME_NAME);
                let mut counter = descriptor.counter();
                counter.r#type(BuiltinCounterType::COUNTER_THREAD_TIME_NS).is_incremental(true);
                if unit_ns > 1 {
                    counter.unit_multiplier(i64::try_from(unit_ns).unwrap_or(i64::MAX));
                }
            });
        }
        !self.writer.has_lost()
    }

    fn describe_thread(&mut self, now: u64) {
        let thread = self.thread;
        let thread_uuid = track_uuid::thread_uuid(thread.tid);
        let announced = announcement::get(thread_uuid);
        let pid = self.pid.clone();
        self.write_descriptor(now, |descriptor| match &announced {
            Some(track) => track.describe(&pid, descriptor),
            None => {
                descriptor.uuid(thread_uuid);
                descriptor.parent_uuid(track_uuid::process_uuid());
                thread.describe("", &pid, &mut descriptor.thread());
                if announcement::are_apart_from_system_tracks() {
                    descriptor.disallow_merging_with_system_tracks(true);
                }
            }
        });
    }

    /// Describes a track, and first its ancestors, if this sequence has not done so.
    #[cold]
    #[inline(never)]
    fn describe(&mut self, track: &Track, uuid: u64, now: u64) {
        if track.is_incremental() {
            // Not marked as described: the fast path cannot write its values.
            if self.counters.begin(uuid) {
                self.write_track(track, now);
            }
            return;
        }
        if self.tracks.insert(uuid) {
            self.write_track(track, now);
        }
        self.last_track = uuid;
    }

    fn write_track(&mut self, track: &Track, now: u64) {
        if let Some(parent) = track.parent_track() {
            self.describe(parent, parent.uuid(), now);
        }
        let pid = self.pid.clone();
        self.write_descriptor(now, |descriptor| track.describe(&pid, descriptor));
    }

    /// Describes a track, even if the sequence has done so before.
    pub(crate) fn describe_again(&mut self, track: &Track, now: u64) {
        let now = now.max(self.last_ns);
        if self.is_ready() || self.start(now) {
            self.describe(track, track.uuid(), now);
            let pid = self.pid.clone();
            self.write_descriptor(now, |descriptor| track.describe(&pid, descriptor));
        }
    }

    /// Forgets the incremental state if so much of a ring was written that the ring could lose it.
    /// Called at least once for each chunk.
    fn renew_if_due(&mut self) {
        if self.writer.written() - self.written_before_start >= self.options.renewal_bytes {
            self.clear();
        }
    }

    /// Returns whether events can be written: the sequence has begun and lost nothing since.
    fn is_ready(&self) -> bool {
        !(self.fresh || self.writer.is_dropping() || self.writer.has_lost())
    }

    fn write_descriptor(&mut self, now: u64, describe: impl FnOnce(&mut TrackDescriptorWriter<'_>)) {
        if self.writer.has_lost() {
            // Readers could not use it. The next event starts the sequence over.
            return;
        }
        let time = self.timestamp(now);
        let mut packet = self.writer.new_packet();
        let mut message = packet.message();
        time.write(&mut message);
        message.varint(trace_packet::field::SEQUENCE_FLAGS, u64::from(FLAG_NEEDS_STATE));
        describe(&mut TrackDescriptorWriter::from(message.begin(trace_packet::field::TRACK_DESCRIPTOR)));
    }
}

impl InstanceWriter for Sequence {
    fn clear_incremental_state(&mut self) {
        self.clear();
    }

    fn flush(&mut self) {
        self.writer.flush();
    }

    fn is_idle(&mut self) -> bool {
        let written = self.writer.written();
        core::mem::replace(&mut self.written_before, written) == written
    }
}

impl esatto_instances::Sequence for Sequence {
    type Instance = Instance;

    #[inline(always)]
    fn slots() -> &'static Slots<Instance> {
        &TRACK_EVENTS
    }

    fn new(slot: usize, instance: &Instance) -> Self {
        slice_stack::forget_instance(slot);
        Self::new(instance)
    }
}

#[derive(Clone, Copy)]
struct Timestamp {
    value: u64,
    /// 0: the default of the sequence.
    clock: u32,
}

impl Timestamp {
    #[inline]
    fn write(self, message: &mut Message<'_>) {
        message.varint(trace_packet::field::TIMESTAMP, self.value);
        if self.clock != 0 {
            message.varint(trace_packet::field::TIMESTAMP_CLOCK_ID, u64::from(self.clock));
        }
    }
}

/// Writes the anchors of the sequence's clocks in the trace clock.
fn write_clocks(snapshot: &mut ClockSnapshotWriter<'_>, now: u64, incremental: bool, unit_ns: u64) {
    snapshot.clocks().clock_id(clock::trace_clock_id()).timestamp(now);
    if incremental {
        let mut clock = snapshot.clocks();
        clock.clock_id(INCREMENTAL_CLOCK).timestamp(now / unit_ns).is_incremental(true).unit_multiplier_ns(unit_ns);
    }
    if unit_ns > 1 {
        let mut clock = snapshot.clocks();
        clock.clock_id(SCALED_CLOCK).timestamp(now / unit_ns).is_incremental(false).unit_multiplier_ns(unit_ns);
    }
}

/// Passes ids through: they are hashes or numbers of the program, so hashing them again gains
/// nothing.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = fnv(bytes);
    }

    fn write_u64(&mut self, v: u64) {
        // The table takes the bucket from the low bits and the tag from the high ones.
        self.0 = v ^ v.rotate_left(32);
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;
    use std::sync::Arc;

    use esatto_schema::TrackEventConfig;
    use esatto_shm::{Arbiter, ExhaustedPolicy, PrivateRegion, abi::PageSize};

    use super::*;
    use crate::destination::Destination;

    #[test]
    fn an_empty_packet_is_written_only_after_another() {
        let arbiter = Arbiter::new(Arc::new(PrivateRegion::new(16384)), PageSize::DEFAULT, Arc::new(())).unwrap();
        let config = TrackEventConfig::default();
        let options = Options::new(&config);
        let destination = Destination::buffer(arbiter, 1, ExhaustedPolicy::Drop);
        let instance = Instance { destination, config: Arc::new(config), options, enabled_ns: AtomicU64::new(0) };
        let mut sequence = Sequence::new(&instance);
        assert!(sequence.start(1000));
        for _ in 0..2 {
            let before = sequence.writer.written();
            sequence.write_empty();
            let after = sequence.writer.written();
            assert!(after > before, "its size, 0");
            sequence.write_empty();
            assert_eq!(sequence.writer.written(), after);
            sequence.describe(&Track::unique("track"), 7, 2000);
            sequence.tracks.clear();
        }
    }
}
