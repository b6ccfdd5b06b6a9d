//! [`CompactSched`]: scheduling events as columns of numbers (`docs/spec/probes.md` §8).

use esatto_protozero::Message;

use super::event_layout::EventLayout;
use super::field_kind::{FieldKind, Width};
use super::page::RawEvent;
use super::wire_buffer::WireBuffer;

/// Scheduling events in a bundle. A batch of 32 small pages has about as many.
const MAX_SCHED_EVENTS_PER_BUNDLE: u32 = 2048;
/// Names in a bundle.
const MAX_COMMS_PER_BUNDLE: usize = 64;

/// Size of a thread's name in an event.
const COMM_SIZE: usize = 16;
/// Slots of the hash table of names: a power of two, far more than names.
const COMM_SLOTS: usize = 256;

/// Where `sched/sched_switch` has the fields that are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchFormat {
    min_len: usize,
    prev_state_at: usize,
    is_prev_state_long: bool,
    next_pid_at: usize,
    next_prio_at: usize,
    next_comm_at: usize,
}

/// Where `sched/sched_waking` has the fields that are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakingFormat {
    min_len: usize,
    pid_at: usize,
    target_cpu_at: usize,
    prio_at: usize,
    comm_at: usize,
    common_flags_at: usize,
}

/// The scheduling events of a bundle.
#[derive(Debug)]
pub(crate) struct CompactSched {
    comms: Comms,
    switches: Columns<4>,
    wakings: Columns<5>,
    /// Events for which there is room; 0 when there is none for further names.
    room: u32,
}

/// A list of events: the time of each, and its `N` other values.
#[derive(Debug)]
struct Columns<const N: usize> {
    times: WireBuffer,
    values: [WireBuffer; N],
    last_time: u64,
}

/// Names of threads by their index in the bundle.
#[derive(Debug)]
struct Comms {
    names: Vec<[u64; 2]>,
    /// Indexes + 1; 0 is a free slot.
    slots: [u8; COMM_SLOTS],
}

const NUMBER: FieldKind = FieldKind::Signed(Width::W4);
const LONG: FieldKind = FieldKind::Signed(Width::W8);

impl SwitchFormat {
    /// Returns `None` if the kernel's format is not as expected.
    pub(crate) fn of(layout: &EventLayout) -> Option<Self> {
        let at = |number, kinds: &[FieldKind]| layout.copy_of(number, kinds).map(|copy| usize::from(copy.offset));
        Some(Self {
            min_len: layout.min_len,
            prev_state_at: at(4, &[NUMBER, LONG])?,
            is_prev_state_long: layout.copy_of(4, &[LONG]).is_some(),
            next_pid_at: at(6, &[FieldKind::Pid])?,
            next_prio_at: at(7, &[NUMBER])?,
            next_comm_at: comm_at(layout, 5)?,
        })
    }
}

impl WakingFormat {
    /// Returns `None` if the kernel's format is not as expected.
    pub(crate) fn of(layout: &EventLayout) -> Option<Self> {
        let at = |number, kind| layout.copy_of(number, &[kind]).map(|copy| usize::from(copy.offset));
        Some(Self {
            min_len: layout.min_len,
            pid_at: at(2, FieldKind::Pid)?,
            target_cpu_at: at(5, NUMBER)?,
            prio_at: at(3, NUMBER)?,
            comm_at: comm_at(layout, 1)?,
            common_flags_at: usize::from(layout.common_flags_at?),
        })
    }
}

fn comm_at(layout: &EventLayout, number: u32) -> Option<usize> {
    let copy = layout.copy_of(number, &[FieldKind::FixedString])?;
    (usize::from(copy.size) == COMM_SIZE).then_some(usize::from(copy.offset))
}

impl CompactSched {
    pub(crate) fn new() -> Self {
        let comms = Comms { names: Vec::new(), slots: [0; COMM_SLOTS] };
        Self { comms, switches: Columns::new(), wakings: Columns::new(), room: MAX_SCHED_EVENTS_PER_BUNDLE }
    }

    /// True if the bundle must end before the next event.
    #[inline(always)]
    pub(crate) const fn is_full(&self) -> bool {
        self.room == 0
    }

    /// Adds a `sched_switch`. Returns the thread that runs next, or `None` if the event is too
    /// short.
    #[inline]
    pub(crate) fn push_switch(&mut self, event: &RawEvent<'_>, format: &SwitchFormat) -> Option<i32> {
        let data = event.data;
        if data.len() < format.min_len {
            return None;
        }
        let prev_state = if format.is_prev_state_long {
            i64::from_le_bytes(read(data, format.prev_state_at)?)
        } else {
            i64::from(read_i32(data, format.prev_state_at)?)
        };
        let next_pid = read_i32(data, format.next_pid_at)?;
        let next_prio = read_i32(data, format.next_prio_at)?;
        let comm = self.index_of(&read(data, format.next_comm_at)?);
        let values = [prev_state as u64, i64::from(next_pid) as u64, i64::from(next_prio) as u64, comm];
        self.switches.push(event.time, values);
        Some(next_pid)
    }

    /// Adds a `sched_waking`. Returns the thread that is woken, or `None` if the event is too
    /// short.
    #[inline]
    pub(crate) fn push_waking(&mut self, event: &RawEvent<'_>, format: &WakingFormat) -> Option<i32> {
        let data = event.data;
        if data.len() < format.min_len {
            return None;
        }
        let pid = read_i32(data, format.pid_at)?;
        let target_cpu = read_i32(data, format.target_cpu_at)?;
        let prio = read_i32(data, format.prio_at)?;
        let flags = *data.get(format.common_flags_at)?;
        let comm = self.index_of(&read(data, format.comm_at)?);
        let [pid_value, target_cpu, prio] = [pid, target_cpu, prio].map(|value| i64::from(value) as u64);
        self.wakings.push(event.time, [pid_value, target_cpu, prio, comm, u64::from(flags)]);
        Some(pid)
    }

    /// Writes the events into a bundle, if there are any, and forgets them.
    pub(crate) fn write(&mut self, bundle: &mut Message<'_>) {
        if self.comms.names.is_empty() {
            return;
        }
        let mut message = bundle.begin(4);
        for name in &self.comms.names {
            let name = [name[0].to_le_bytes(), name[1].to_le_bytes()];
            let name = name.as_flattened();
            let len = name.iter().position(|byte| *byte == 0).unwrap_or(COMM_SIZE);
            message.bytes(5, &name[..len]);
        }
        self.switches.write(&mut message, 1, [2, 3, 4, 6]);
        self.wakings.write(&mut message, 7, [8, 9, 10, 11, 12]);
        self.comms.names.clear();
        self.comms.slots.fill(0);
        self.room = MAX_SCHED_EVENTS_PER_BUNDLE;
    }

    /// Returns the index of the name in the event that is being added.
    #[inline(always)]
    fn index_of(&mut self, comm: &[u8; COMM_SIZE]) -> u64 {
        self.room = self.room.saturating_sub(1);
        let (index, is_new) = self.comms.index_of(comm);
        if is_new && self.comms.names.len() >= MAX_COMMS_PER_BUNDLE {
            self.room = 0;
        }
        index
    }
}

impl<const N: usize> Columns<N> {
    fn new() -> Self {
        Self { times: WireBuffer::new(), values: [(); N].map(|()| WireBuffer::new()), last_time: 0 }
    }

    #[inline(always)]
    fn push(&mut self, time: u64, values: [u64; N]) {
        self.times.varint(time.wrapping_sub(self.last_time));
        self.last_time = time;
        for (column, value) in self.values.iter_mut().zip(values) {
            column.varint(value);
        }
    }

    /// Writes the columns as packed fields and empties them.
    fn write(&mut self, message: &mut Message<'_>, times: u32, numbers: [u32; N]) {
        if self.times.is_empty() {
            return;
        }
        let columns = core::iter::once(&mut self.times).chain(&mut self.values);
        for (column, number) in columns.zip([times].into_iter().chain(numbers)) {
            message.bytes(number, column.as_slice());
            column.clear();
        }
        self.last_time = 0;
    }
}

impl Comms {
    /// Returns the index of a name, and true if the name is new.
    #[inline]
    fn index_of(&mut self, comm: &[u8; COMM_SIZE]) -> (u64, bool) {
        let name = up_to_nul(comm);
        let mut slot = hash(name);
        loop {
            let Some(index) = self.slots[slot].checked_sub(1) else { return (self.add(name, slot), true) };
            if self.names[usize::from(index)] == name {
                return (u64::from(index), false);
            }
            slot = (slot + 1) % COMM_SLOTS;
        }
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, name: [u64; 2], slot: usize) -> u64 {
        self.names.push(name);
        self.slots[slot] = self.names.len() as u8;
        self.names.len() as u64 - 1
    }
}

const _: () = assert!(MAX_COMMS_PER_BUNDLE < u8::MAX as usize && MAX_COMMS_PER_BUNDLE < COMM_SLOTS);

/// Returns a name as two words, with zeros after its end. Kernels leave there what they like.
#[inline]
fn up_to_nul(comm: &[u8; COMM_SIZE]) -> [u64; 2] {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let word = u128::from_le_bytes(*comm);
    let words = [word as u64, (word >> 64) as u64];
    // The lowest bit that is set marks the first byte that is 0.
    let [first, second] = words.map(|word| word.wrapping_sub(LOW) & !word & (LOW << 7));
    // All bits below the mark belong to the bytes before that, and seven bits to the byte itself.
    if first != 0 {
        [words[0] & (first ^ (first - 1)), 0]
    } else if second != 0 {
        [words[0], words[1] & (second ^ (second - 1))]
    } else {
        words
    }
}

#[inline]
fn hash([low, high]: [u64; 2]) -> usize {
    let mixed = (low ^ high.rotate_left(29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as usize % COMM_SLOTS
}

#[inline(always)]
fn read<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

#[inline(always)]
fn read_i32(data: &[u8], at: usize) -> Option<i32> {
    read(data, at).map(i32::from_le_bytes)
}
