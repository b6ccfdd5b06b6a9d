//! [`SourceEncoder`]: writes the events that one data source wants as packets.

use core::slice::ChunksExact;

use esatto::producer::TraceWriter;
use esatto_protozero::Message;
use esatto_schema::LOST_EVENTS_NUMBER_FIELD;

use super::compact_sched::{CompactSched, SwitchFormat, WakingFormat};
use super::encode_event::{EventWriter, References, common_pid, is_valid};
use super::event_layout::{EventLayout, KPROBE_EVENT};
use super::event_set::EventSet;
use super::event_table::EventTable;
use super::field_kind::{FieldKind, Width};
use super::kernel_symbols::KernelSymbols;
use super::kprobe::Kprobe;
use super::page::{PageEvents, RawEvent};
use super::page_layout::{LostEvents, PageLayout};
use super::parse_status::{ParseStatus, ParseStatuses};
use super::print_filter::PrintFilter;
use super::symbol_indexes::MAX_ADDRESSES;
use super::syscalls::SyscallSet;
use super::wire_buffer::WireBuffer;
use crate::data_source::Observed;

/// Numbers of events in `FtraceEvent`.
const PRINT: u32 = 3;
const SCHED_SWITCH: u32 = 4;
const SCHED_WAKING: u32 = 20;
const TASK_RENAME: u32 = 236;
const SYS_ENTER: u32 = 329;
const SYS_EXIT: u32 = 330;

/// `TracePacket.sequence_flags`: what came before is not needed to read the packet.
const INCREMENTAL_STATE_CLEARED: u64 = 1;

/// Wishes of a data source for the kernel's events.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceOptions {
    pub(crate) events: EventSet,
    /// Write scheduling events as columns of numbers, if their formats allow it.
    pub(crate) compact_sched: bool,
    pub(crate) print_filter: PrintFilter,
    /// System calls of which `raw_syscalls` events are written.
    pub(crate) syscalls: SyscallSet,
    pub(crate) kprobes: Vec<Kprobe>,
    pub(crate) generic_encoding: GenericEncoding,
}

/// How events are written that the schema does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GenericEncoding {
    /// As messages, which the bundle describes.
    #[default]
    SelfDescribing,
    /// As `GenericFtraceEvent`: with the name of each field.
    Named,
}

/// The trace clock beside CLOCK_BOOTTIME at one moment, for clocks other than `boot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockPair {
    /// Number of `FtraceClock`.
    pub(crate) clock: i32,
    pub(crate) ftrace_ns: i64,
    pub(crate) boot_ns: i64,
}

/// Writes the events that one data source wants as packets.
#[derive(Debug)]
pub(crate) struct SourceEncoder {
    options: SourceOptions,
    /// The action for an event, by its id.
    actions: Vec<Action>,
    compact: Option<Compact>,
    compact_sched_error: Option<String>,
    references: References,
    /// The event that is being written.
    buffer: WireBuffer,
    /// Addresses whose names were written in this read.
    named_addresses: usize,
    /// The next packet with an address is the first of the indexes.
    are_indexes_new: bool,
    /// Time of the last event that was written, by CPU.
    last_times: Vec<u64>,
    errors: ParseStatuses,
    /// Ids of the generic events in the bundle.
    generic: Vec<u16>,
}

#[derive(Debug)]
struct Compact {
    events: CompactSched,
    switch: SwitchFormat,
    waking: Option<WakingFormat>,
}

/// Action for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Skip,
    /// Write its fields.
    Fields,
    CompactSwitch,
    CompactWaking,
    Print,
    Rename,
    Syscall,
    Generic,
    Kprobe,
}

/// Pages that are being encoded.
struct Batch<'p> {
    layout: PageLayout,
    pages: ChunksExact<'p, u8>,
    /// Time of the page.
    page_time: u64,
    /// Events that were lost before the page, until a bundle says so.
    lost: LostEvents,
    events: PageEvents<'p>,
    /// The fault of the page, until a bundle says it.
    error: Option<ParseStatus>,
}

/// All that a batch is written from and to.
pub(crate) struct Surroundings<'a> {
    pub(crate) table: &'a EventTable,
    /// Names of functions, if the data source wants them.
    pub(crate) symbols: Option<&'a KernelSymbols>,
    /// Set if the trace clock is not `boot`.
    pub(crate) clock: Option<ClockPair>,
    pub(crate) writer: &'a mut TraceWriter,
    pub(crate) observed: &'a mut Observed,
}

impl SourceEncoder {
    /// `table` has looked up all events of the options.
    pub(crate) fn new(options: SourceOptions, table: &EventTable) -> Self {
        let (compact, compact_sched_error) = match Compact::of(&options, table) {
            Ok(compact) => (compact, None),
            Err(error) => (None, Some(error)),
        };
        let mut actions = Vec::new();
        for id in options.events.iter() {
            let Some(layout) = table.layout(id) else { continue };
            actions.resize(usize::from(id) + 1, Action::Skip);
            actions[usize::from(id)] = action(layout, compact.as_ref());
        }
        Self {
            options,
            actions,
            compact,
            compact_sched_error,
            references: References::new(),
            buffer: WireBuffer::new(),
            named_addresses: 0,
            are_indexes_new: true,
            last_times: Vec::new(),
            errors: ParseStatuses::default(),
            generic: Vec::new(),
        }
    }

    /// Returns why scheduling events are not compact, although the options ask for it, as an entry
    /// for `failed_ftrace_events`.
    pub(crate) fn compact_sched_error(&self) -> Option<&str> {
        self.compact_sched_error.as_deref()
    }

    /// Begins a read of all CPUs: threads are observed again, and the indexes of addresses begin
    /// again.
    pub(crate) fn begin_read(&mut self) {
        self.references.clear();
        self.named_addresses = 0;
        self.are_indexes_new = true;
    }

    /// Writes the events of a CPU. `pages` are whole pages of its ring buffer, in their order.
    pub(crate) fn encode(&mut self, cpu: u32, pages: &[u8], around: &mut Surroundings<'_>) {
        let mut batch = Batch::new(*around.table.page_layout(), pages);
        while self.find_start(&mut batch, around.table) {
            self.write_bundle(cpu, &mut batch, around);
        }
    }

    /// Returns the statuses of all pages and events so far that were not as they should be.
    pub(crate) const fn errors(&self) -> ParseStatuses {
        self.errors
    }

    /// Goes to the next event, loss or error that a bundle must be begun for. Returns false at the
    /// end of the batch.
    fn find_start(&self, batch: &mut Batch<'_>, table: &EventTable) -> bool {
        loop {
            if batch.lost != LostEvents::None || batch.error.is_some() {
                return true;
            }
            let before = batch.events;
            match batch.events.next() {
                Ok(Some(event)) if self.wants(&event, table) => {
                    batch.events = before;
                    return true;
                }
                Ok(Some(_)) => {}
                Ok(None) if batch.next_page() => {}
                Ok(None) => return false,
                Err(status) => batch.error = Some(status),
            }
        }
    }

    #[inline(always)]
    fn action(&self, id: u16) -> Action {
        self.actions.get(usize::from(id)).copied().unwrap_or(Action::Skip)
    }

    /// True if the event is written.
    fn wants(&self, event: &RawEvent<'_>, table: &EventTable) -> bool {
        match self.action(event.id) {
            Action::Skip => false,
            Action::CompactSwitch | Action::CompactWaking => true,
            action => table.layout(event.id).is_some_and(|layout| self.passes(action, layout, event.data)),
        }
    }

    /// True if the event passes the filters.
    fn passes(&self, action: Action, layout: &EventLayout, data: &[u8]) -> bool {
        match action {
            Action::Print => print_text(layout, data).is_none_or(|text| self.options.print_filter.allows(text)),
            Action::Syscall => syscall_id(layout, data).is_none_or(|id| self.options.syscalls.contains(id)),
            _ => true,
        }
    }

    fn write_bundle(&mut self, cpu: u32, batch: &mut Batch<'_>, around: &mut Surroundings<'_>) {
        if self.references.symbols.addresses().len() >= MAX_ADDRESSES {
            self.references.symbols.clear();
            self.named_addresses = 0;
            self.are_indexes_new = true;
        }
        let mut packet = around.writer.new_packet();
        let mut message = packet.message();
        let mut bundle = message.begin(1);
        self.write_header(&mut bundle, cpu, batch, around.clock);
        let last_time = self.write_events(&mut bundle, batch, around.table, around.observed);
        if let Some(compact) = &mut self.compact {
            compact.events.write(&mut bundle);
        }
        for id in self.generic.drain(..) {
            if let Some(generic) = around.table.layout(id).and_then(|layout| layout.generic.as_ref()) {
                bundle.bytes(11, &generic.descriptor);
            }
        }
        drop(bundle);
        if let Some(time) = last_time {
            *self.last_time(cpu) = time;
        }
        self.write_symbols(&mut message, around.symbols);
    }

    fn write_header(&mut self, bundle: &mut Message<'_>, cpu: u32, batch: &mut Batch<'_>, clock: Option<ClockPair>) {
        bundle.varint(1, u64::from(cpu));
        match core::mem::replace(&mut batch.lost, LostEvents::None) {
            LostEvents::None => {}
            lost => {
                bundle.bool(3, true);
                if let LostEvents::Number(number) = lost {
                    bundle.varint(LOST_EVENTS_NUMBER_FIELD, number);
                }
            }
        }
        bundle.varint(10, *self.last_time(cpu));
        if let Some(clock) = clock {
            bundle.int(5, i64::from(clock.clock));
            bundle.int(6, clock.ftrace_ns);
            bundle.int(7, clock.boot_ns);
        }
    }

    fn last_time(&mut self, cpu: u32) -> &mut u64 {
        let cpu = cpu as usize;
        if cpu >= self.last_times.len() {
            self.last_times.resize(cpu + 1, 0);
        }
        &mut self.last_times[cpu]
    }

    /// Writes events until the batch or the bundle ends. Returns the time of the last one.
    fn write_events(
        &mut self,
        bundle: &mut Message<'_>,
        batch: &mut Batch<'_>,
        table: &EventTable,
        observed: &mut Observed,
    ) -> Option<u64> {
        let mut last_time = None;
        loop {
            let mut error = batch.error.take();
            loop {
                if self.compact.as_ref().is_some_and(|compact| compact.events.is_full()) {
                    self.write_error(bundle, batch.page_time, error);
                    return last_time;
                }
                match batch.events.next() {
                    Ok(Some(event)) => match self.write_event(bundle, &event, table, observed) {
                        Ok(true) => last_time = Some(event.time),
                        Ok(false) => {}
                        Err(status) => error = error.or(Some(status)),
                    },
                    Ok(None) => break,
                    Err(status) => {
                        error = Some(status);
                        break;
                    }
                }
            }
            self.write_error(bundle, batch.page_time, error);
            if !batch.next_page() || batch.lost != LostEvents::None {
                return last_time;
            }
        }
    }

    /// Writes an event if the data source wants it. Returns true if it did.
    #[inline(always)]
    fn write_event(
        &mut self,
        bundle: &mut Message<'_>,
        event: &RawEvent<'_>,
        table: &EventTable,
        observed: &mut Observed,
    ) -> Result<bool, ParseStatus> {
        let action = self.action(event.id);
        let next = match (action, &mut self.compact) {
            (Action::Skip, _) => return Ok(false),
            (Action::CompactSwitch, Some(compact)) => compact.events.push_switch(event, &compact.switch),
            (Action::CompactWaking, Some(Compact { events, waking: Some(waking), .. })) => {
                events.push_waking(event, waking)
            }
            _ => return self.write_full_event(action, bundle, event, table, observed),
        };
        let tid = next.ok_or(ParseStatus::ShortCompactEvent)?;
        if self.references.tids.insert(tid) {
            observed.tids.push(tid);
        }
        Ok(true)
    }

    #[inline(never)]
    fn write_full_event(
        &mut self,
        action: Action,
        bundle: &mut Message<'_>,
        event: &RawEvent<'_>,
        table: &EventTable,
        observed: &mut Observed,
    ) -> Result<bool, ParseStatus> {
        let Some(layout) = table.layout(event.id) else { return Ok(false) };
        if !is_valid(layout, event.data) {
            return Err(ParseStatus::InvalidEvent);
        }
        if matches!(action, Action::Print | Action::Syscall) {
            if !self.passes(action, layout, event.data) {
                return Ok(false);
            }
            if action == Action::Syscall && !is_syscall(layout) {
                return Err(ParseStatus::InvalidEvent);
            }
        }
        let printk_formats = table.printk_formats();
        let (references, buffer) = (&mut self.references, &mut self.buffer);
        let mut writer = EventWriter { printk_formats, references, observed, buffer };
        let is_named = self.options.generic_encoding == GenericEncoding::Named;
        match action {
            Action::Kprobe => {
                let kprobe = self.options.kprobes.iter().find(|kprobe| kprobe.id == event.id);
                writer.write_kprobe(bundle, layout, event, kprobe);
            }
            Action::Generic if is_named => writer.write_named(bundle, layout, event),
            _ => writer.write(bundle, layout, event),
        }
        if action == Action::Generic && !is_named && !self.generic.contains(&event.id) {
            self.generic.push(event.id);
        }
        if action == Action::Rename {
            observed.renamed.extend(renamed_thread(layout, event.data));
        }
        Ok(true)
    }

    fn write_error(&mut self, bundle: &mut Message<'_>, page_time: u64, error: Option<ParseStatus>) {
        if let Some(status) = error {
            self.errors.insert(status);
            let mut message = bundle.begin(8);
            message.varint(1, page_time);
            message.varint(2, status as u64);
        }
    }

    /// Writes the names of the addresses that are new since the packet before.
    fn write_symbols(&mut self, packet: &mut Message<'_>, symbols: Option<&KernelSymbols>) {
        let Some(symbols) = symbols else { return };
        let addresses = self.references.symbols.addresses();
        if addresses.len() == self.named_addresses {
            return;
        }
        if core::mem::take(&mut self.are_indexes_new) {
            packet.varint(13, INCREMENTAL_STATE_CLEARED);
        }
        let mut interned = packet.begin(12);
        let mut name = Vec::new();
        for (index, address) in (1_u64..).zip(addresses).skip(self.named_addresses) {
            if symbols.look_up(*address, &mut name) {
                let mut symbol = interned.begin(26);
                symbol.varint(1, index);
                symbol.bytes(2, &name);
            }
        }
        self.named_addresses = addresses.len();
    }
}

impl Compact {
    /// Returns the formats of the scheduling events; `None` if they are not wanted compact.
    ///
    /// # Errors
    ///
    /// A format is not as expected.
    fn of(options: &SourceOptions, table: &EventTable) -> Result<Option<Self>, String> {
        let layout_of = |number| {
            let mut layouts = options.events.iter().filter_map(|id| table.layout(id));
            layouts.find(|layout| layout.number == number)
        };
        let (true, Some(switch)) = (options.compact_sched, layout_of(SCHED_SWITCH)) else { return Ok(None) };
        let unexpected = |name| format!("perfetto/compact_sched (the format of {name} is not as expected)");
        let switch = SwitchFormat::of(switch).ok_or_else(|| unexpected("sched/sched_switch"))?;
        let waking = match layout_of(SCHED_WAKING) {
            Some(layout) => Some(WakingFormat::of(layout).ok_or_else(|| unexpected("sched/sched_waking"))?),
            None => None,
        };
        Ok(Some(Self { events: CompactSched::new(), switch, waking }))
    }
}

impl<'p> Batch<'p> {
    fn new(layout: PageLayout, pages: &'p [u8]) -> Self {
        let pages = pages.chunks_exact(layout.page_size());
        let mut batch =
            Self { layout, pages, page_time: 0, lost: LostEvents::None, events: PageEvents::new(0, &[]), error: None };
        batch.next_page();
        batch
    }

    /// Goes to the next page. Returns false after the last.
    fn next_page(&mut self) -> bool {
        let Some(page) = self.pages.next() else { return false };
        match self.layout.split(page) {
            Ok((header, payload)) => {
                self.page_time = header.timestamp;
                self.lost = header.lost;
                self.events = PageEvents::new(header.timestamp, payload);
            }
            Err(time) => {
                self.page_time = time;
                self.events = PageEvents::new(time, &[]);
                self.error = Some(ParseStatus::InvalidPageHeader);
            }
        }
        true
    }
}

fn action(layout: &EventLayout, compact: Option<&Compact>) -> Action {
    match layout.number {
        SCHED_SWITCH if compact.is_some() => Action::CompactSwitch,
        SCHED_WAKING if compact.is_some_and(|compact| compact.waking.is_some()) => Action::CompactWaking,
        PRINT => Action::Print,
        TASK_RENAME => Action::Rename,
        SYS_ENTER | SYS_EXIT => Action::Syscall,
        KPROBE_EVENT => Action::Kprobe,
        _ if layout.generic.is_some() => Action::Generic,
        _ => Action::Fields,
    }
}

/// Returns the text of a `print` event, without what follows the first NUL.
fn print_text<'d>(layout: &EventLayout, data: &'d [u8]) -> Option<&'d [u8]> {
    let copy = layout.copy_of(2, &[FieldKind::RestString])?;
    data.get(usize::from(copy.offset)..)?.split(|byte| *byte == 0).next()
}

/// Returns the number of the system call of a `raw_syscalls` event.
fn syscall_id(layout: &EventLayout, data: &[u8]) -> Option<i64> {
    let copy = layout.copies.first()?;
    let field = data.get(usize::from(copy.offset)..)?;
    match copy.kind {
        FieldKind::Signed(Width::W4) => Some(i64::from(i32::from_le_bytes(*field.first_chunk()?))),
        FieldKind::Signed(Width::W8) => Some(i64::from_le_bytes(*field.first_chunk()?)),
        _ => None,
    }
}

/// True if a `raw_syscalls` event has the fields that it has in all kernels.
fn is_syscall(layout: &EventLayout) -> bool {
    let is_number = |kind| matches!(kind, FieldKind::Signed(Width::W4 | Width::W8));
    match &*layout.copies {
        [id, arguments] if layout.number == SYS_ENTER => {
            is_number(id.kind) && matches!(arguments.kind, FieldKind::Arguments(_))
        }
        [id, result] => is_number(id.kind) && is_number(result.kind),
        _ => false,
    }
}

/// Returns the thread that a `task_rename` event renames. New kernels leave it out if it is the one
/// that was running.
fn renamed_thread(layout: &EventLayout, data: &[u8]) -> Option<i32> {
    match layout.copy_of(1, &[FieldKind::Pid, FieldKind::Signed(Width::W4)]) {
        Some(copy) => Some(i32::from_le_bytes(*data.get(usize::from(copy.offset)..)?.first_chunk()?)),
        None => common_pid(layout, data),
    }
}
