//! The state from earlier packets that is needed to show an event: names, tracks and open slices.

use core::mem;
use std::sync::Arc;

use esatto::schema::{
    ClockSnapshotReader, InternedDataReader, TracePacketReader, TrackDescriptorReader, TrackEventReader, track_event,
};
use esatto_map::Map;

use crate::colors::{self, Color};

const STATE_CLEARED: u32 = 1;

/// Titles are cut to this many bytes.
const TITLE_BYTES: usize = 15;

/// The title of a track, shared by its events.
pub(crate) type Title = Arc<str>;

/// Texts by their numbers in packets.
type Names = Map<u64, Vec<u8>>;

/// Tracks of a session, by uuid.
#[derive(Default)]
pub(crate) struct Tracks(Map<u64, Track>);

/// A track, with the slices that are open on it.
#[derive(Default)]
struct Track {
    number: u32,
    title: Option<Title>,
    stack: Vec<Open>,
}

/// An open slice.
struct Open {
    name: Vec<u8>,
    category: Vec<u8>,
    begin_ns: u64,
}

/// The announcements of one sequence.
#[derive(Default)]
pub(crate) struct Sequence {
    event_names: Names,
    categories: Names,
    annotation_names: Names,
    strings: Names,
    /// Clocks that it defines.
    clocks: Map<u32, Clock>,
    default_clock: u32,
    default_track: u64,
}

struct Clock {
    unit_ns: u64,
    is_incremental: bool,
    last_ns: u64,
}

/// An event to be shown.
pub(crate) struct Event<'p> {
    pub(crate) fields: TrackEventReader<'p>,
    pub(crate) kind: Kind,
    pub(crate) time_ns: u64,
    /// Set for ends.
    pub(crate) duration_ns: u64,
    pub(crate) title: Title,
    pub(crate) track_color: Color,
    pub(crate) category: Vec<u8>,
    pub(crate) name: Vec<u8>,
    pub(crate) depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Begin,
    End,
    Instant,
}

impl Sequence {
    /// Reads a packet into the state. Returns its event, if there is one to show.
    pub(crate) fn read<'p>(&mut self, tracks: &mut Tracks, packet: &'p [u8]) -> Option<Event<'p>> {
        let packet = TracePacketReader::new(packet);
        if packet.sequence_flags().unwrap_or(0) & STATE_CLEARED != 0 {
            let (clocks, default_clock) = (mem::take(&mut self.clocks), self.default_clock);
            *self = Self { clocks, default_clock, ..Self::default() };
        }
        if let Some(snapshot) = packet.clock_snapshot() {
            self.clocks(&snapshot);
        }
        if let Some(data) = packet.interned_data() {
            self.names(&data);
        }
        if let Some(defaults) = packet.trace_packet_defaults() {
            self.default_clock = defaults.timestamp_clock_id().unwrap_or(self.default_clock);
            if let Some(event) = defaults.track_event_defaults() {
                self.default_track = event.track_uuid().unwrap_or(self.default_track);
            }
        }
        if let Some(descriptor) = packet.track_descriptor() {
            tracks.describe(&descriptor);
        }
        let time_ns = self.time(packet.timestamp().unwrap_or(0), packet.timestamp_clock_id());
        self.event(tracks, packet.track_event()?, time_ns)
    }

    /// Returns the text of a debug annotation's name.
    pub(crate) fn annotation_name(&self, iid: u64) -> &[u8] {
        self.annotation_names.get(&iid).map_or(&[], Vec::as_slice)
    }

    /// Returns the text of an interned string value.
    pub(crate) fn string(&self, iid: u64) -> &[u8] {
        self.strings.get(&iid).map_or(&[], Vec::as_slice)
    }

    fn clocks(&mut self, snapshot: &ClockSnapshotReader<'_>) {
        for clock in snapshot.clocks() {
            let unit_ns = clock.unit_multiplier_ns().unwrap_or(1).max(1);
            let last_ns = clock.timestamp().unwrap_or(0).saturating_mul(unit_ns);
            let is_incremental = clock.is_incremental().unwrap_or(false);
            self.clocks.insert(clock.clock_id().unwrap_or(0), Clock { unit_ns, is_incremental, last_ns });
        }
    }

    fn time(&mut self, timestamp: u64, clock: Option<u32>) -> u64 {
        match self.clocks.get_mut(&clock.unwrap_or(self.default_clock)) {
            Some(clock) if clock.is_incremental => {
                clock.last_ns = clock.last_ns.saturating_add(timestamp.saturating_mul(clock.unit_ns));
                clock.last_ns
            }
            Some(clock) => timestamp.saturating_mul(clock.unit_ns),
            None => timestamp,
        }
    }

    fn names(&mut self, data: &InternedDataReader<'_>) {
        for entry in data.event_names() {
            note(&mut self.event_names, entry.iid(), entry.name());
        }
        for entry in data.event_categories() {
            note(&mut self.categories, entry.iid(), entry.name());
        }
        for entry in data.debug_annotation_names() {
            note(&mut self.annotation_names, entry.iid(), entry.name());
        }
        for entry in data.debug_annotation_string_values() {
            note(&mut self.strings, entry.iid(), entry.str());
        }
    }

    fn event<'p>(&self, tracks: &mut Tracks, fields: TrackEventReader<'p>, time_ns: u64) -> Option<Event<'p>> {
        use track_event::Type;
        let kind = match fields.r#type()? {
            Type::TYPE_SLICE_BEGIN => Kind::Begin,
            Type::TYPE_SLICE_END => Kind::End,
            Type::TYPE_INSTANT => Kind::Instant,
            _ => return None,
        };
        let interned = |names: &Names, iid: u64| names.get(&iid).cloned().unwrap_or_default();
        let mut category = match (fields.category_iids().next(), fields.categories().next()) {
            (Some(iid), _) => interned(&self.categories, iid),
            (None, text) => text.unwrap_or_default().to_vec(),
        };
        let mut name = match fields.name_iid() {
            Some(iid) if iid != 0 => interned(&self.event_names, iid),
            _ => fields.name().unwrap_or_default().to_vec(),
        };
        let uuid = fields.track_uuid().unwrap_or(self.default_track);
        let track = tracks.track(uuid);
        let mut depth = track.stack.len();
        let mut duration_ns = 0;
        match kind {
            Kind::Instant => {}
            Kind::Begin => {
                track.stack.push(Open { name: name.clone(), category: category.clone(), begin_ns: time_ns });
            }
            Kind::End => {
                if let Some(open) = track.stack.pop() {
                    duration_ns = time_ns.saturating_sub(open.begin_ns);
                    (name, category) = (open.name, open.category);
                    depth -= 1;
                }
            }
        }
        let title = track.title.get_or_insert_with(|| title(&uuid.to_string())).clone();
        let track_color = colors::of_track(track.number);
        Some(Event { fields, kind, time_ns, duration_ns, title, track_color, category, name, depth })
    }
}

impl Tracks {
    fn track(&mut self, uuid: u64) -> &mut Track {
        let number = self.0.len() as u32 + 1;
        self.0.get_or_insert_with(uuid, || Track { number, ..Track::default() })
    }

    /// Stores the name of a track, or the name of its thread or process.
    fn describe(&mut self, descriptor: &TrackDescriptorReader<'_>) {
        let own = descriptor.name().or_else(|| descriptor.static_name());
        let (process, thread) = (descriptor.process(), descriptor.thread());
        let of_process = process.as_ref().and_then(|process| process.process_name());
        let of_thread = thread.as_ref().and_then(|thread| thread.thread_name());
        let name = [own, of_process, of_thread].into_iter().flatten().find(|name| !name.is_empty());
        let pid = match &process {
            Some(process) => process.pid(),
            None => thread.as_ref().and_then(|thread| thread.pid()),
        };
        let tid = thread.and_then(|thread| thread.tid());
        let uuid = descriptor.uuid().unwrap_or(0);
        let text = match (name, pid.filter(|&pid| pid != 0), tid.filter(|&tid| tid != 0)) {
            (Some(name), ..) => String::from_utf8_lossy(name).into_owned(),
            (None, Some(pid), Some(tid)) => format!("{pid}:{tid}"),
            (None, Some(pid), None) => pid.to_string(),
            (None, None, _) => uuid.to_string(),
        };
        self.track(uuid).title = Some(title(&text));
    }
}

fn note(names: &mut Names, iid: Option<u64>, text: Option<&[u8]>) {
    names.insert(iid.unwrap_or(0), text.unwrap_or_default().to_vec());
}

/// Cuts a text to the length of a title.
fn title(text: &str) -> Title {
    let end = (0..=TITLE_BYTES.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    text[..end].into()
}
