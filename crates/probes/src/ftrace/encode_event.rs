//! Writing of one event, field by field, after its layout.

use std::collections::HashSet;

use esatto_protozero::Message;

use super::event_layout::EventLayout;
use super::field_copy::FieldCopy;
use super::field_kind::{ARGUMENTS, FieldKind, Width};
use super::kprobe::Kprobe;
use super::page::RawEvent;
use super::printk_formats::PrintkFormats;
use super::schema::FieldType;
use super::seen_tids::SeenTids;
use super::symbol_indexes::SymbolIndexes;
use super::wire_buffer::{Tag, WireBuffer};
use crate::data_source::Observed;

/// Field of `FtraceEventBundle`.
const EVENT: u32 = 2;

/// Fields of `FtraceEvent`.
const TIMESTAMP: Tag = Tag::varint(1);
const PID: Tag = Tag::varint(2);
/// The older encoding of events that the schema does not have.
const GENERIC: Tag = Tag::bytes(327);

/// Fields of `GenericFtraceEvent` and of `KprobeEvent`.
const NAME: Tag = Tag::bytes(1);
const FIELD: Tag = Tag::bytes(2);
const KPROBE_TYPE: Tag = Tag::varint(2);

/// Files that one read may report to other data sources.
const MAX_INODES_PER_READ: usize = 8192;
/// Inodes of an event that are reported: a file, its folder and two more.
const INODES_PER_EVENT: usize = 4;

/// Things to which the events of one read refer.
#[derive(Debug)]
pub(crate) struct References {
    pub(crate) tids: SeenTids,
    pub(crate) inodes: HashSet<(u64, u64)>,
    pub(crate) symbols: SymbolIndexes,
    /// Files of the event that is being written; empty between events.
    files: EventFiles,
}

/// Writes the fields of events.
pub(crate) struct EventWriter<'a> {
    pub(crate) printk_formats: &'a PrintkFormats,
    pub(crate) references: &'a mut References,
    pub(crate) observed: &'a mut Observed,
    /// The event that is being written.
    pub(crate) buffer: &'a mut WireBuffer,
}

/// Files that an event names: inodes of one device, in any order.
#[derive(Debug, Default)]
struct EventFiles {
    device: Option<u64>,
    inodes: [u64; INODES_PER_EVENT],
    /// How many there are.
    count: usize,
}

impl References {
    pub(crate) fn new() -> Self {
        Self {
            tids: SeenTids::new(),
            inodes: HashSet::new(),
            symbols: SymbolIndexes::default(),
            files: EventFiles::default(),
        }
    }

    /// Prepares for the next read.
    pub(crate) fn clear(&mut self) {
        self.tids.clear();
        self.inodes.clear();
        self.symbols.clear();
    }
}

/// True if the data has all fields of its layout, and dynamic fields lie within it.
#[inline]
pub(crate) fn is_valid(layout: &EventLayout, data: &[u8]) -> bool {
    data.len() >= layout.min_len && (!layout.has_dynamic_fields || are_dynamic_fields_valid(layout, data))
}

fn are_dynamic_fields_valid(layout: &EventLayout, data: &[u8]) -> bool {
    layout.copies.iter().all(|copy| !copy.kind.is_dynamic() || dynamic(copy, data).is_some())
}

impl EventWriter<'_> {
    /// Writes the fields of an event as its message.
    #[inline]
    pub(crate) fn write(&mut self, bundle: &mut Message<'_>, layout: &EventLayout, event: &RawEvent<'_>) {
        self.begin(layout, event);
        let message = self.buffer.begin(layout.tag);
        for copy in &layout.copies {
            self.field(copy, copy.tag, event.data);
        }
        self.buffer.end(message);
        self.finish(bundle);
    }

    /// Writes the fields of an event in the older encoding for events that the schema does not
    /// have: each with its name.
    pub(crate) fn write_named(&mut self, bundle: &mut Message<'_>, layout: &EventLayout, event: &RawEvent<'_>) {
        self.begin(layout, event);
        let message = self.buffer.begin(GENERIC);
        self.buffer.bytes_field(NAME, layout.name.as_bytes());
        let names = layout.generic.as_ref().map(|generic| &*generic.field_names).unwrap_or_default();
        for (copy, name) in layout.copies.iter().zip(names) {
            let number = match copy.kind.generic_type() {
                FieldType::Int64 => 4,
                FieldType::Uint64 => 5,
                FieldType::String => 3,
                _ => continue,
            };
            let field = self.buffer.begin(FIELD);
            self.buffer.bytes_field(NAME, name.as_bytes());
            self.field(copy, copy.kind.tag(number), event.data);
            self.buffer.end(field);
        }
        self.buffer.end(message);
        self.finish(bundle);
    }

    /// Writes an event of a kernel probe.
    pub(crate) fn write_kprobe(
        &mut self,
        bundle: &mut Message<'_>,
        layout: &EventLayout,
        event: &RawEvent<'_>,
        kprobe: Option<&Kprobe>,
    ) {
        self.begin(layout, event);
        let message = self.buffer.begin(layout.tag);
        self.buffer.bytes_field(NAME, kprobe.map_or(&*layout.name, |kprobe| &*kprobe.name).as_bytes());
        if let Some(kprobe) = kprobe {
            self.buffer.varint_field(KPROBE_TYPE, kprobe.kind as u64);
        }
        self.buffer.end(message);
        self.finish(bundle);
    }

    /// Writes time and thread.
    #[inline(always)]
    fn begin(&mut self, layout: &EventLayout, event: &RawEvent<'_>) {
        self.buffer.clear();
        self.buffer.varint_field(TIMESTAMP, event.time);
        if let Some(pid) = common_pid(layout, event.data) {
            self.buffer.varint_field(PID, i64::from(pid) as u64);
            self.see(pid);
        }
    }

    #[inline(always)]
    fn finish(&mut self, bundle: &mut Message<'_>) {
        bundle.bytes(EVENT, self.buffer.as_slice());
        let files = &self.references.files;
        if files.device.is_some() || files.count > 0 {
            self.see_files();
        }
    }

    /// Notes a thread for the other data sources.
    #[inline]
    pub(crate) fn see(&mut self, tid: i32) {
        if self.references.tids.insert(tid) {
            self.observed.tids.push(tid);
        }
    }

    /// Notes the files of an event for the other data sources.
    #[cold]
    fn see_files(&mut self) {
        let EventFiles { device, inodes, count } = core::mem::take(&mut self.references.files);
        let Some(device) = device else { return };
        for &inode in &inodes[..count] {
            if self.references.inodes.len() < MAX_INODES_PER_READ && self.references.inodes.insert((device, inode)) {
                self.observed.inodes.push((device, inode));
            }
        }
    }

    /// Writes one field. The data is valid.
    #[inline(always)]
    fn field(&mut self, copy: &FieldCopy, tag: Tag, data: &[u8]) {
        let field = data.get(usize::from(copy.offset)..).unwrap_or_default();
        match copy.kind {
            FieldKind::Signed(width) => self.buffer.varint_field(tag, signed(field, width) as u64),
            FieldKind::Unsigned(width) => self.buffer.varint_field(tag, unsigned(field, width)),
            FieldKind::Pid | FieldKind::CommonPid => {
                let pid = signed(field, Width::W4);
                self.buffer.varint_field(tag, pid as u64);
                self.see(pid as i32);
            }
            FieldKind::FixedString => match field.get(..usize::from(copy.size)).map(<&[u8; 16]>::try_from) {
                Some(Ok(name)) => self.buffer.short_field(tag, name, length_before_nul(name)),
                _ => self.buffer.bytes_field(tag, until_nul(&field[..usize::from(copy.size).min(field.len())])),
            },
            _ => self.rare_field(copy, tag, field, data),
        }
    }

    /// Writes a field of one of the less frequent kinds.
    #[inline(never)]
    fn rare_field(&mut self, copy: &FieldCopy, tag: Tag, field: &[u8], data: &[u8]) {
        match copy.kind {
            FieldKind::Signed(_)
            | FieldKind::Unsigned(_)
            | FieldKind::Pid
            | FieldKind::CommonPid
            | FieldKind::FixedString => {}
            FieldKind::Bool => self.buffer.varint_field(tag, unsigned(field, Width::W1)),
            FieldKind::RestString => self.buffer.bytes_field(tag, until_nul(field)),
            FieldKind::ConstantString(width) => {
                self.buffer.bytes_field(tag, self.printk_formats.get(unsigned(field, width)));
            }
            FieldKind::DynamicString(_) => match dynamic(copy, data) {
                Some([]) | None => {}
                Some(text) => self.buffer.bytes_field(tag, until_nul(text)),
            },
            FieldKind::DynamicBytes(_) => match dynamic(copy, data) {
                Some([]) | None => {}
                Some(bytes) => self.buffer.bytes_field(tag, bytes),
            },
            FieldKind::Inode(width) => {
                let inode = unsigned(field, width);
                let files = &mut self.references.files;
                if let Some(place) = files.inodes.get_mut(files.count) {
                    *place = inode;
                    files.count += 1;
                }
                self.buffer.varint_field(tag, inode);
            }
            FieldKind::Device(width) => {
                let device = user_space_device(unsigned(field, width));
                self.references.files.device = Some(device);
                self.buffer.varint_field(tag, device);
            }
            FieldKind::Address(width) => {
                let index = self.references.symbols.index_of(unsigned(field, width));
                self.buffer.varint_field(tag, u64::from(index));
            }
            FieldKind::Arguments(width) => {
                for argument in field.chunks_exact(width as usize).take(ARGUMENTS) {
                    self.buffer.varint_field(tag, unsigned(argument, width));
                }
            }
        }
    }
}

/// Returns the thread that was running.
#[inline]
pub(crate) fn common_pid(layout: &EventLayout, data: &[u8]) -> Option<i32> {
    let field = data.get(usize::from(layout.common_pid_at?)..)?;
    Some(i32::from_le_bytes(*field.first_chunk()?))
}

/// Returns what a dynamic field refers to; `None` if that is not in the event.
fn dynamic<'d>(copy: &FieldCopy, data: &'d [u8]) -> Option<&'d [u8]> {
    let (FieldKind::DynamicString(origin) | FieldKind::DynamicBytes(origin)) = copy.kind else { return None };
    let place = u32::from_le_bytes(*data.get(usize::from(copy.offset)..)?.first_chunk()?);
    let (begin, len) = ((place & 0xffff) as usize + origin.base(copy.offset), (place >> 16) as usize);
    if len == 0 { Some(&[]) } else { data.get(begin..begin + len) }
}

#[inline(always)]
fn unsigned(field: &[u8], width: Width) -> u64 {
    match width {
        Width::W1 => field.first().copied().map(u64::from),
        Width::W2 => field.first_chunk().map(|bytes| u64::from(u16::from_le_bytes(*bytes))),
        Width::W4 => field.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes))),
        Width::W8 => field.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
    }
    .unwrap_or_default()
}

#[inline(always)]
fn signed(field: &[u8], width: Width) -> i64 {
    let value = unsigned(field, width);
    match width {
        Width::W1 => i64::from(value as i8),
        Width::W2 => i64::from(value as i16),
        Width::W4 => i64::from(value as i32),
        Width::W8 => value as i64,
    }
}

/// Returns the text before the first NUL.
#[inline]
fn until_nul(text: &[u8]) -> &[u8] {
    text.iter().position(|byte| *byte == 0).map_or(text, |end| &text[..end])
}

/// Returns the number of bytes before the first 0 of a thread's name.
#[inline]
fn length_before_nul(name: &[u8; 16]) -> usize {
    const LOW: u64 = 0x0101_0101_0101_0101;
    let word = u128::from_le_bytes(*name);
    // The lowest bit that is set marks the first byte that is 0; all 64 bits are 0 if there is
    // none.
    let [low, high] = [word as u64, (word >> 64) as u64].map(|word| {
        let mark = word.wrapping_sub(LOW) & !word & (LOW << 7);
        mark.trailing_zeros() as usize / 8
    });
    if low < 8 { low } else { 8 + high }
}

/// Converts the kernel's number of a device to that of `stat`.
const fn user_space_device(device: u64) -> u64 {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    (major & !0xfff) << 32 | (major & 0xfff) << 8 | (minor & !0xff) << 12 | minor & 0xff
}
