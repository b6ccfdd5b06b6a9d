//! Records between the two stages of the import, as bytes.

use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, Row};

/// Kind of a record: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A track event, see [`TrackEventRecord`].
    TrackEvent,
    /// A described track, by its slot.
    Descriptor,
    /// A packet of another kind: the number of its field, then its bytes.
    Packet,
    /// An event of the kernel: the processor, then its bytes.
    Ftrace,
    /// A switch of the compact form.
    CompactSwitch,
    /// A wake-up of the compact form.
    CompactWaking,
    /// A sample of the kernel's perf events.
    PerfSample,
    /// A sample of a call stack that a program took.
    StackSample,
    /// Allocations of a call stack.
    HeapSample,
    /// A log message of Android.
    Log,
}

impl Kind {
    pub(crate) fn of(byte: u64) -> Option<Self> {
        Some(match byte {
            0 => Self::TrackEvent,
            1 => Self::Descriptor,
            2 => Self::Packet,
            3 => Self::Ftrace,
            4 => Self::CompactSwitch,
            5 => Self::CompactWaking,
            6 => Self::PerfSample,
            7 => Self::StackSample,
            8 => Self::HeapSample,
            9 => Self::Log,
            _ => return None,
        })
    }
}

/// Appends numbers to a record.
pub(crate) trait Put {
    fn number(&mut self, v: u64);
    fn word(&mut self, v: u64);

    fn kind(&mut self, kind: Kind) {
        self.number(kind as u64);
    }

    fn symbol(&mut self, symbol: Option<Symbol>) {
        self.number(symbol.map_or(0, |symbol| u64::from(symbol.number())));
    }

    fn signed(&mut self, v: i64) {
        self.number(esatto_protozero::wire::zigzag(v));
    }

    fn index(&mut self, v: usize) {
        self.number(v as u64);
    }
}

impl Put for Vec<u8> {
    fn number(&mut self, mut v: u64) {
        while v >= 0x80 {
            self.push((v & 0x7f) as u8 | 0x80);
            v >>= 7;
        }
        self.push((v & 0x7f) as u8);
    }

    fn word(&mut self, v: u64) {
        self.extend(v.to_ne_bytes());
    }
}

/// Reads numbers of a record. Records are ours, so a missing number cannot be; it reads as 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Get<'r>(pub(crate) &'r [u8]);

impl<'r> Get<'r> {
    pub(crate) fn number(&mut self) -> u64 {
        let mut v = 0;
        let mut shift = 0;
        while let Some((&byte, rest)) = self.0.split_first() {
            self.0 = rest;
            v |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 || shift >= 64 {
                break;
            }
        }
        v
    }

    pub(crate) fn word(&mut self) -> u64 {
        let Some((bytes, rest)) = self.0.split_first_chunk() else { return 0 };
        self.0 = rest;
        u64::from_ne_bytes(*bytes)
    }

    pub(crate) fn symbol(&mut self) -> Option<Symbol> {
        Symbol::from_number(u32::try_from(self.number()).unwrap_or(0))
    }

    pub(crate) fn row(&mut self) -> Option<Row> {
        usize::try_from(self.number()).ok()?.checked_sub(1).map(Row::new)
    }

    pub(crate) fn signed(&mut self) -> i64 {
        esatto_protozero::wire::unzigzag(self.number())
    }

    pub(crate) fn index(&mut self) -> usize {
        usize::try_from(self.number()).unwrap_or(usize::MAX)
    }

    pub(crate) fn rest(self) -> &'r [u8] {
        self.0
    }
}

pub(crate) fn put_args(out: &mut Vec<u8>, args: &[Arg]) {
    out.index(args.len());
    for arg in args {
        out.symbol(Some(arg.flat_key));
        out.symbol((arg.key != arg.flat_key).then_some(arg.key));
        match arg.value {
            ArgValue::Int(v) => {
                out.push(0);
                out.signed(v);
            }
            ArgValue::Uint(v) => {
                out.push(1);
                out.number(v);
            }
            ArgValue::Bool(v) => {
                out.push(2);
                out.push(u8::from(v));
            }
            ArgValue::Real(v) => {
                out.push(3);
                out.word(v.to_bits());
            }
            ArgValue::Text(v) => {
                out.push(4);
                out.symbol(v);
            }
            ArgValue::Pointer(v) => {
                out.push(5);
                out.number(v);
            }
            ArgValue::Json(v) => {
                out.push(6);
                out.symbol(Some(v));
            }
            ArgValue::Null => out.push(7),
        }
    }
}

pub(crate) fn get_args(record: &mut Get<'_>, args: &mut Vec<Arg>) {
    for _ in 0..record.index() {
        let flat_key = record.symbol();
        let key = record.symbol().or(flat_key);
        let value = match record.number() {
            0 => ArgValue::Int(record.signed()),
            1 => ArgValue::Uint(record.number()),
            2 => ArgValue::Bool(record.number() != 0),
            3 => ArgValue::Real(f64::from_bits(record.word())),
            4 => ArgValue::Text(record.symbol()),
            5 => ArgValue::Pointer(record.number()),
            7 => ArgValue::Null,
            _ => match record.symbol() {
                Some(text) => ArgValue::Json(text),
                None => ArgValue::Text(None),
            },
        };
        let (Some(flat_key), Some(key)) = (flat_key, key) else { return };
        args.push(Arg { flat_key, key, value });
    }
}

/// A track event with all interned values resolved.
#[derive(Debug, Default)]
pub(crate) struct TrackEventRecord {
    /// 1 begin, 2 end, 3 instant, 4 counter, or 0 for an event of the older form.
    pub(crate) action: u8,
    /// The track, by its slot; none if the event names track 0 or no track.
    pub(crate) track: usize,
    /// True if the event or the defaults of its sequence name the track.
    pub(crate) has_track: bool,
    pub(crate) sequence: usize,
    pub(crate) name: Option<Symbol>,
    pub(crate) category: Option<Symbol>,
    pub(crate) flows: Vec<u64>,
    pub(crate) terminating: Vec<u64>,
    pub(crate) value: f64,
    /// Counters sampled with the event: slots of tracks, and values.
    pub(crate) extra: Vec<(usize, f64)>,
    pub(crate) legacy: Option<LegacyRecord>,
    pub(crate) log: Option<LogRecord>,
    pub(crate) args: Vec<Arg>,
    /// Its position in the list of details, if these are kept.
    pub(crate) detail: Option<usize>,
    /// Fields whose types were not known when they were read, encoded.
    pub(crate) late: Vec<u8>,
}

/// The older form of events.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LegacyRecord {
    pub(crate) phase: u8,
    pub(crate) duration_us: i64,
    pub(crate) thread_duration_us: Option<i64>,
    /// The id, and its field.
    pub(crate) id: u64,
    pub(crate) id_field: u8,
    pub(crate) id_scope: Option<Symbol>,
    pub(crate) bind_id: Option<u64>,
    pub(crate) direction: u8,
    pub(crate) bind_to_enclosing: bool,
    pub(crate) instant_scope: u8,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
}

/// A log message of a track event.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct LogRecord {
    pub(crate) priority: u32,
    pub(crate) tag: Option<Symbol>,
    pub(crate) body: Option<Symbol>,
}

const FLOWS: u64 = 1;
const EXTRA: u64 = 2;
const LEGACY: u64 = 4;
const LOG: u64 = 8;
const ARGS: u64 = 16;
const HAS_TRACK: u64 = 32;
const VALUE: u64 = 64;
const DETAIL: u64 = 128;
const LATE: u64 = 256;
/// Bits of the flags.
const FLAG_BITS: u32 = 9;

impl TrackEventRecord {
    pub(crate) fn clear(&mut self) {
        self.flows.clear();
        self.terminating.clear();
        self.extra.clear();
        self.args.clear();
        self.late.clear();
        (self.legacy, self.log, self.detail) = (None, None, None);
        (self.name, self.category) = (None, None);
        (self.action, self.value) = (0, 0.0);
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.kind(Kind::TrackEvent);
        let flag = |bit, is_set: bool| if is_set { bit } else { 0 };
        let flags = flag(FLOWS, !self.flows.is_empty() || !self.terminating.is_empty())
            | flag(EXTRA, !self.extra.is_empty())
            | flag(LEGACY, self.legacy.is_some())
            | flag(LOG, self.log.is_some())
            | flag(ARGS, !self.args.is_empty())
            | flag(HAS_TRACK, self.has_track)
            | flag(VALUE, self.action == 4)
            | flag(DETAIL, self.detail.is_some())
            | flag(LATE, !self.late.is_empty());
        out.number(u64::from(self.action) << FLAG_BITS | flags);
        out.index(self.track);
        out.index(self.sequence);
        out.symbol(self.name);
        out.symbol(self.category);
        if flags & FLOWS != 0 {
            for list in [&self.flows, &self.terminating] {
                out.index(list.len());
                list.iter().for_each(|&flow| out.word(flow));
            }
        }
        if flags & VALUE != 0 {
            out.word(self.value.to_bits());
        }
        if flags & EXTRA != 0 {
            out.index(self.extra.len());
            for &(slot, value) in &self.extra {
                out.index(slot);
                out.word(value.to_bits());
            }
        }
        if let Some(legacy) = &self.legacy {
            legacy.put(out);
        }
        if let Some(log) = &self.log {
            out.number(u64::from(log.priority));
            out.symbol(log.tag);
            out.symbol(log.body);
        }
        if flags & ARGS != 0 {
            put_args(out, &self.args);
        }
        if let Some(detail) = self.detail {
            out.index(detail);
        }
        out.extend(&self.late);
    }

    /// Reads a record after its kind.
    pub(crate) fn get(&mut self, record: &mut Get<'_>) {
        self.clear();
        let head = record.number();
        let flags = head & ((1 << FLAG_BITS) - 1);
        self.action = u8::try_from(head >> FLAG_BITS).unwrap_or(0);
        self.has_track = flags & HAS_TRACK != 0;
        self.track = record.index();
        self.sequence = record.index();
        self.name = record.symbol();
        self.category = record.symbol();
        if flags & FLOWS != 0 {
            for list in [&mut self.flows, &mut self.terminating] {
                for _ in 0..record.index() {
                    list.push(record.word());
                }
            }
        }
        if flags & VALUE != 0 {
            self.value = f64::from_bits(record.word());
        }
        if flags & EXTRA != 0 {
            for _ in 0..record.index() {
                let slot = record.index();
                self.extra.push((slot, f64::from_bits(record.word())));
            }
        }
        if flags & LEGACY != 0 {
            self.legacy = Some(LegacyRecord::get(record));
        }
        if flags & LOG != 0 {
            let priority = u32::try_from(record.number()).unwrap_or(0);
            self.log = Some(LogRecord { priority, tag: record.symbol(), body: record.symbol() });
        }
        if flags & ARGS != 0 {
            get_args(record, &mut self.args);
        }
        if flags & DETAIL != 0 {
            self.detail = Some(record.index());
        }
        if flags & LATE != 0 {
            self.late.extend(record.rest());
        }
    }
}

impl LegacyRecord {
    fn put(&self, out: &mut Vec<u8>) {
        out.number(u64::from(self.phase));
        out.signed(self.duration_us);
        out.number(u64::from(self.thread_duration_us.is_some()));
        out.signed(self.thread_duration_us.unwrap_or(0));
        out.number(self.id);
        out.number(u64::from(self.id_field));
        out.symbol(self.id_scope);
        out.number(u64::from(self.bind_id.is_some()));
        out.number(self.bind_id.unwrap_or(0));
        out.number(u64::from(self.direction));
        out.push(u8::from(self.bind_to_enclosing));
        out.number(u64::from(self.instant_scope));
        for id in [self.pid, self.tid] {
            out.number(u64::from(id.is_some()));
            out.signed(id.unwrap_or(0));
        }
    }

    fn get(record: &mut Get<'_>) -> Self {
        let small = |v: u64| u8::try_from(v).unwrap_or(0);
        let mut legacy = Self { phase: small(record.number()), duration_us: record.signed(), ..Self::default() };
        let has_thread_duration = record.number() != 0;
        let thread_duration = record.signed();
        legacy.thread_duration_us = has_thread_duration.then_some(thread_duration);
        legacy.id = record.number();
        legacy.id_field = small(record.number());
        legacy.id_scope = record.symbol();
        let has_bind_id = record.number() != 0;
        let bind_id = record.number();
        legacy.bind_id = has_bind_id.then_some(bind_id);
        legacy.direction = small(record.number());
        legacy.bind_to_enclosing = record.number() != 0;
        legacy.instant_scope = small(record.number());
        let mut ids = [None, None];
        for id in &mut ids {
            let is_there = record.number() != 0;
            let value = record.signed();
            *id = is_there.then_some(value);
        }
        [legacy.pid, legacy.tid] = ids;
        legacy
    }
}
