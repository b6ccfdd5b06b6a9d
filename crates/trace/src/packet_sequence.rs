//! A packet sequence and its incremental state (`docs/spec/track-event.md` §10, §24).

use std::collections::BTreeMap;

use esatto_protozero::Fields;
use esatto_schema::{trace_packet_defaults, track_event_defaults};
use hashbrown::HashMap;

use crate::loss_causes;
use crate::string_table::{Strings, Symbol};

/// Largest number of counter values on one event; more are an error. More tracks for them in the
/// defaults of a sequence are not used.
pub(crate) const MAX_EXTRA_COUNTERS: usize = 8;

/// Bit of `sequence_flags`: the state before this packet is no longer valid.
pub(crate) const STATE_CLEARED: u32 = 1;
/// Bit of `sequence_flags`: the packet uses interned data, defaults or a clock of the sequence.
pub(crate) const NEEDS_STATE: u32 = 2;

/// State that all packets of one `trusted_packet_sequence_id` share.
#[derive(Debug)]
pub(crate) struct Sequence {
    pub(crate) id: u32,
    pub(crate) machine: u32,
    pub(crate) uid: Option<i32>,
    pub(crate) pid: Option<i32>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// The earliest and the latest timestamp of its packets. Until the end of the import, this is
    /// time of its own machine.
    pub(crate) times: Option<(i64, i64)>,
    /// True if the first packet in the file is the first one that was written.
    pub(crate) begins: bool,
    pub(crate) cleared: u64,
    /// Packets that need the state of the sequence.
    pub(crate) needing_state: u64,
    /// Packets that were not usable because the state that they needed was lost.
    pub(crate) skipped: u64,
    /// Those of them that come before the first state and the first loss in the file.
    pub(crate) skipped_at_begin: u64,
    /// Marks of a loss, without the usual mark on the first packet.
    pub(crate) losses: u64,
    /// Packets with a mark of a loss, but for the first packet.
    pub(crate) later_losses: u64,
    pub(crate) causes: BTreeMap<&'static str, u64>,
    pub(crate) state: State,
}

/// State that lasts until the next clear.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) valid: bool,
    pub(crate) interned: HashMap<(u32, u64), Symbol>,
    /// Entries of other tables, as they were written; see [`State::keep_entries`].
    pub(crate) entries: HashMap<(u32, u64), Box<[u8]>>,
    pub(crate) clock: Option<u32>,
    /// `TracePacketDefaults`, as they were written.
    pub(crate) defaults: Vec<u8>,
    pub(crate) track: Option<u64>,
    pub(crate) extra_counters: Vec<u64>,
    pub(crate) extra_double_counters: Vec<u64>,
    /// Sums of incremental counters.
    pub(crate) sums: HashMap<u64, i64>,
    pub(crate) double_sums: HashMap<u64, f64>,
}

impl Sequence {
    pub(crate) fn new(machine: u32, id: u32) -> Self {
        Self {
            id,
            machine,
            uid: None,
            pid: None,
            packets: 0,
            bytes: 0,
            times: None,
            begins: false,
            cleared: 0,
            needing_state: 0,
            skipped: 0,
            skipped_at_begin: 0,
            losses: 0,
            later_losses: 0,
            causes: BTreeMap::new(),
            state: State::default(),
        }
    }

    /// Notes the marks of a packet. Returns whether the packet is usable.
    pub(crate) fn admit(&mut self, bytes: u64, flags: u32, dropped: u32, first: bool) -> bool {
        self.packets += 1;
        self.bytes += bytes;
        self.begins |= first && self.packets == 1;
        // A buffer marks the first packet of each sequence that it returns; that alone is no loss.
        if dropped & !1 != 0 || (dropped != 0 && self.packets > 1) {
            self.losses += 1;
            for cause in loss_causes::of(dropped) {
                *self.causes.entry(cause).or_default() += 1;
            }
        }
        self.later_losses += u64::from(dropped != 0 && self.packets > 1);
        if flags & STATE_CLEARED != 0 {
            self.cleared += 1;
            self.state = State { valid: true, ..State::default() };
        } else if dropped != 0 {
            self.state.valid = false;
        }
        let usable = flags & NEEDS_STATE == 0 || self.state.valid;
        self.needing_state += u64::from(flags & NEEDS_STATE != 0);
        self.skipped += u64::from(!usable);
        self.skipped_at_begin += u64::from(!usable && self.cleared == 0 && self.later_losses == 0 && !self.begins);
        usable
    }
}

impl State {
    /// Reads `TracePacketDefaults`, which replace all earlier ones.
    pub(crate) fn set_defaults(&mut self, defaults: &[u8]) {
        self.clock = None;
        self.defaults = defaults.to_vec();
        self.track = None;
        self.extra_counters.clear();
        self.extra_double_counters.clear();
        for field in Fields::new(defaults) {
            match field.id {
                trace_packet_defaults::field::TIMESTAMP_CLOCK_ID => self.clock = Some(field.as_u32()),
                trace_packet_defaults::field::TRACK_EVENT_DEFAULTS => {
                    for field in Fields::new(field.as_bytes()) {
                        match field.id {
                            track_event_defaults::field::TRACK_UUID => self.track = Some(field.as_u64()),
                            track_event_defaults::field::EXTRA_COUNTER_TRACK_UUIDS
                                if self.extra_counters.len() < MAX_EXTRA_COUNTERS =>
                            {
                                self.extra_counters.push(field.as_u64());
                            }
                            track_event_defaults::field::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS
                                if self.extra_double_counters.len() < MAX_EXTRA_COUNTERS =>
                            {
                                self.extra_double_counters.push(field.as_u64());
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Reads `InternedData`: from each table, the entries that have a number and a string. The
    /// first entry of a number counts.
    pub(crate) fn intern(&mut self, data: &[u8], strings: &mut Strings) {
        // In every table that this reader uses, field 1 is the number and field 2 the string.
        const IID: u32 = 1;
        const STRING: u32 = 2;
        for entry in Fields::new(data).filter(|entry| LOOKED_UP.contains(&entry.id)) {
            let (mut iid, mut string) = (0, &[][..]);
            for field in Fields::new(entry.as_bytes()) {
                match field.id {
                    IID => iid = field.as_u64(),
                    STRING => string = field.as_bytes(),
                    _ => {}
                }
            }
            if iid != 0 {
                self.interned.entry((entry.id, iid)).or_insert_with(|| strings.add(string));
            }
        }
    }

    /// Keeps the entries of tables that have more than a number and a string. The first entry of a
    /// number counts.
    pub(crate) fn keep_entries(&mut self, data: &[u8]) {
        const IID: u32 = 1;
        for entry in Fields::new(data).filter(|entry| !LOOKED_UP.contains(&entry.id)) {
            let iid = Fields::new(entry.as_bytes()).find(|field| field.id == IID).map_or(0, |iid| iid.as_u64());
            if iid != 0 {
                self.entries.entry((entry.id, iid)).or_insert_with(|| entry.as_bytes().into());
            }
        }
    }

    /// Returns an entry of a table with more than a number and a string.
    pub(crate) fn entry(&self, table: u32, iid: u64) -> Option<&[u8]> {
        self.entries.get(&(table, iid)).map(|entry| &**entry)
    }

    pub(crate) fn look_up(&self, table: u32, iid: u64) -> Option<Symbol> {
        self.interned.get(&(table, iid)).copied()
    }
}

/// The tables of `InternedData` that this reader uses.
const LOOKED_UP: [u32; 7] = {
    use esatto_schema::interned_data::field;
    [
        field::EVENT_CATEGORIES,
        field::EVENT_NAMES,
        field::DEBUG_ANNOTATION_NAMES,
        field::DEBUG_ANNOTATION_VALUE_TYPE_NAMES,
        field::DEBUG_ANNOTATION_STRING_VALUES,
        field::CORRELATION_ID_STR,
        field::KERNEL_SYMBOLS,
    ]
};
