//! Writing of one event, field by field, after its layout.

use std::collections::HashSet;

use esatto_protozero::Message;

use super::event_layout::{EventLayout, FieldCopy};
use super::field_kind::{ARGUMENTS, FieldKind, Width};
use super::page::RawEvent;
use super::printk_formats::PrintkFormats;
use super::schema::FieldType;
use super::seen_tids::SeenTids;
use super::symbol_indexes::SymbolIndexes;
use crate::data_source::Observed;

/// Numbers of fields of `FtraceEvent`.
const TIMESTAMP: u32 = 1;
const PID: u32 = 2;
/// The older encoding of events that the schema does not have.
const GENERIC: u32 = 327;

/// Files that one read may report to other data sources.
const MAX_INODES_PER_READ: usize = 8192;

/// What the events of one read refer to.
#[derive(Debug)]
pub(crate) struct References {
    pub(crate) tids: SeenTids,
    pub(crate) inodes: HashSet<(u64, u64)>,
    pub(crate) symbols: SymbolIndexes,
}

/// Writes the fields of events.
pub(crate) struct EventWriter<'a> {
    pub(crate) printk_formats: &'a PrintkFormats,
    pub(crate) references: &'a mut References,
    pub(crate) observed: &'a mut Observed,
    /// Device and inode of the event that is being written.
    pub(crate) device: Option<u64>,
    pub(crate) inode: Option<u64>,
}

impl References {
    pub(crate) fn new() -> Self {
        Self { tids: SeenTids::new(), inodes: HashSet::new(), symbols: SymbolIndexes::default() }
    }

    /// Prepares for the next read.
    pub(crate) fn clear(&mut self) {
        self.tids.clear();
        self.inodes.clear();
        self.symbols.clear();
    }
}

/// True if the data has all fields of its layout, and dynamic fields lie within it.
pub(crate) fn is_valid(layout: &EventLayout, data: &[u8]) -> bool {
    data.len() >= layout.min_len
        && layout.copies.iter().all(|copy| match copy.kind {
            FieldKind::DynamicString(_) | FieldKind::DynamicBytes(_) => dynamic(copy, data).is_some(),
            _ => true,
        })
}

impl EventWriter<'_> {
    /// Writes time and pid of an event, and `write`s its message. Returns the pid.
    #[inline(always)]
    pub(crate) fn write(
        &mut self,
        bundle: &mut Message<'_>,
        layout: &EventLayout,
        event: &RawEvent<'_>,
        write: impl FnOnce(&mut Self, &mut Message<'_>),
    ) {
        let mut message = bundle.begin(2);
        message.varint(TIMESTAMP, event.time);
        if let Some(pid) = common_pid(layout, event.data) {
            message.int(PID, i64::from(pid));
            self.see(pid);
        }
        write(self, &mut message);
    }

    /// Writes the fields of an event as its message.
    #[inline]
    pub(crate) fn fields(&mut self, event: &mut Message<'_>, layout: &EventLayout, data: &[u8]) {
        let mut message = event.begin(layout.number);
        for copy in &layout.copies {
            self.field(&mut message, copy, copy.number, data);
        }
        drop(message);
        self.finish_event();
    }

    /// Writes the fields of an event in the older encoding for events that the schema does not have:
    /// each with its name.
    pub(crate) fn named_fields(&mut self, event: &mut Message<'_>, layout: &EventLayout, data: &[u8]) {
        let Some(generic) = &layout.generic else { return };
        let mut message = event.begin(GENERIC);
        message.string(1, &layout.name);
        for (copy, name) in layout.copies.iter().zip(&generic.field_names) {
            let number = match copy.kind.generic_type() {
                FieldType::Int64 => 4,
                FieldType::Uint64 => 5,
                FieldType::String => 3,
                _ => continue,
            };
            let mut field = message.begin(2);
            field.string(1, name);
            self.field(&mut field, copy, number, data);
        }
        drop(message);
        self.finish_event();
    }

    /// Notes a thread for the other data sources.
    #[inline]
    pub(crate) fn see(&mut self, tid: i32) {
        if self.references.tids.insert(tid) {
            self.observed.tids.push(tid);
        }
    }

    fn finish_event(&mut self) {
        if let (Some(device), Some(inode)) = (self.device.take(), self.inode.take())
            && self.references.inodes.len() < MAX_INODES_PER_READ
            && self.references.inodes.insert((device, inode))
        {
            self.observed.inodes.push((device, inode));
        }
    }

    /// Writes one field as `number`. The data is valid.
    #[inline(always)]
    fn field(&mut self, message: &mut Message<'_>, copy: &FieldCopy, number: u32, data: &[u8]) {
        let at = usize::from(copy.offset);
        let field = data.get(at..).unwrap_or_default();
        match copy.kind {
            FieldKind::Signed(width) => message.int(number, signed(field, width)),
            FieldKind::Unsigned(width) => message.varint(number, unsigned(field, width)),
            FieldKind::Bool => message.varint(number, unsigned(field, Width::W1)),
            FieldKind::Pid | FieldKind::CommonPid => {
                let pid = signed(field, Width::W4);
                message.int(number, pid);
                self.see(pid as i32);
            }
            FieldKind::FixedString => {
                let field = field.get(..usize::from(copy.size)).unwrap_or_default();
                message.bytes(number, until_nul(field));
            }
            FieldKind::RestString => message.bytes(number, until_nul(field)),
            FieldKind::ConstantString(width) => message.bytes(number, self.printk_formats.get(unsigned(field, width))),
            FieldKind::DynamicString(_) => match dynamic(copy, data) {
                Some([]) | None => {}
                Some(text) => message.bytes(number, until_nul(text)),
            },
            FieldKind::DynamicBytes(_) => match dynamic(copy, data) {
                Some([]) | None => {}
                Some(bytes) => message.bytes(number, bytes),
            },
            FieldKind::Inode(width) => {
                let inode = unsigned(field, width);
                self.inode = Some(inode);
                message.varint(number, inode);
            }
            FieldKind::Device(width) => {
                let device = user_space_device(unsigned(field, width));
                self.device = Some(device);
                message.varint(number, device);
            }
            FieldKind::Address(width) => {
                let index = self.references.symbols.index_of(unsigned(field, width));
                message.varint(number, u64::from(index));
            }
            FieldKind::Arguments(width) => {
                for argument in field.chunks_exact(width as usize).take(ARGUMENTS) {
                    message.varint(number, unsigned(argument, width));
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

#[inline]
fn until_nul(text: &[u8]) -> &[u8] {
    text.iter().position(|byte| *byte == 0).map_or(text, |end| &text[..end])
}

/// Converts the kernel's number of a device to that of `stat`.
const fn user_space_device(device: u64) -> u64 {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    (major & !0xfff) << 32 | (major & 0xfff) << 8 | (minor & !0xff) << 12 | minor & 0xff
}
