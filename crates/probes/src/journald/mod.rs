//! `linux.systemd_journald`: new entries of the journal, as `journald_event`.
//!
//! The journal is read from its files, without systemd's library. journald writes the files with
//! `mmap` while we read; each piece is copied and then checked. Another program than journald, or a
//! broken disk, may have written anything, so time and memory have bounds. `docs/spec/probes.md`
//! §17 tells what is written.
//!
//! Reading may wait for the disk. This data source must not share a thread with others that have to
//! be punctual.
//!
//! | file | is about |
//! |---|---|
//! | `journal` | all files: which there are, and the order of their entries |
//! | `journal_file` | entries of one file |
//! | `data_reader`, `decompress`, `field` | fields of an entry |
//! | `file_format` | objects of the file, without I/O |

mod bytes_at;
mod data_reader;
mod decompress;
mod field;
mod file_format;
mod filter;
mod folder_watch;
mod fuzz;
mod journal;
mod journal_file;
mod recent_entries;

pub use self::fuzz::fuzz;

use core::time::Duration;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use esatto::producer::TraceWriter;
use esatto_schema::{BuiltinClock, DataSourceDescriptor, SystemdJournaldConfigReader, TracePacketWriter};
use rustix::time::ClockId;

use self::field::{Field, Values};
use self::file_format::EntryHeader;
use self::filter::Filter;
use self::journal::{Journal, Places};
use crate::data_source::{Instance, Monotonic, SetupError};
use crate::instances::Source;
use crate::metatrace;
use crate::problem;
use crate::ticks::Ticks;

/// Entries that are read before other data sources of the thread get their turn.
const ENTRIES_PER_TURN: usize = 1024;
/// Entries that a flush reads. So it ends even if entries come faster than they are read.
const ENTRIES_PER_FLUSH: usize = 1 << 16;

/// Period of looking for entries where the system cannot watch files.
const POLL_PERIOD: Duration = Duration::from_secs(2);

/// An instance of `linux.systemd_journald`.
#[derive(Debug)]
pub(crate) struct Journald {
    journal: Journal,
    filter: Filter,
    values: Values,
    is_started: bool,
    /// Set if the journal cannot be watched.
    polls: Option<Ticks>,
    /// Entries written into the trace.
    total: u64,
    /// Entries that could not be read.
    failed: u64,
    /// The trace says that entries are missing.
    has_told: bool,
}

impl Journald {
    fn new(config: &SystemdJournaldConfigReader<'_>, places: &Places) -> Result<Self, SetupError> {
        let journal = Journal::open(places)?;
        let filter = Filter::new(config);
        Ok(Self {
            journal,
            filter,
            values: Values::default(),
            is_started: false,
            polls: None,
            total: 0,
            failed: 0,
            has_told: false,
        })
    }

    fn read(&mut self, budget: usize, writer: &mut TraceWriter) {
        let _reading = metatrace::scope("journal read");
        let total = &mut self.total;
        let progress = self.journal.read(&self.filter, budget, &mut self.values, &mut |entry, values| {
            write_entry(entry, values, writer);
            *total += 1;
        });
        self.failed += progress.failed;
        metatrace::counter("journal entries", self.total);
    }

    fn write_totals(&self, writer: &mut TraceWriter) {
        let mut packet = writer.new_packet();
        let mut fields = packet.typed::<TracePacketWriter<'_>>();
        fields.timestamp(now_us(ClockId::Boottime) * 1000);
        fields.timestamp_clock_id(BuiltinClock::BUILTIN_CLOCK_BOOTTIME.0 as u32);
        fields.journald_event().num_total(self.total).num_failed(self.failed);
    }
}

impl Source for Journald {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.systemd_journald".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(instance: &Instance) -> Result<Self, SetupError> {
        let places = Places {
            roots: ["/run/log/journal", "/var/log/journal"].map(PathBuf::from).into(),
            machine_id: "/etc/machine-id".into(),
            boot_id: "/proc/sys/kernel/random/boot_id".into(),
        };
        Self::new(&instance.config().journald_config().unwrap_or_default(), &places)
    }

    fn start(&mut self, now: Monotonic, _: &mut TraceWriter) {
        self.journal.start(now_us(ClockId::Monotonic), now_us(ClockId::Realtime));
        self.is_started = true;
        if self.journal.descriptor().is_none() {
            self.polls = Some(Ticks::starting(now, POLL_PERIOD));
        }
    }

    fn flush(&mut self, writer: &mut TraceWriter) {
        self.journal.look_for_changes();
        self.read(ENTRIES_PER_FLUSH, writer);
        self.write_totals(writer);
        if self.failed > 0 && !self.has_told {
            self.has_told = true;
            let reason = "entries of the journal could not be read: they are damaged, or of another boot";
            log::warn!("linux.systemd_journald: {reason}");
            problem::write(writer, "linux.systemd_journald", reason);
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        if self.is_started && self.journal.has_more() {
            return Some(Duration::ZERO);
        }
        self.polls.as_ref().map(Ticks::deadline)
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        let is_due = match &mut self.polls {
            Some(polls) => polls.take(now) && self.journal.look_for_changes() || self.journal.has_more(),
            None => self.journal.look_for_changes(),
        };
        if is_due {
            self.read(ENTRIES_PER_TURN, writer);
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        if self.is_started { self.journal.descriptor().into_iter().collect() } else { Vec::new() }
    }
}

fn write_entry(entry: &EntryHeader, values: &Values, writer: &mut TraceWriter) {
    let mut packet = writer.new_packet();
    let mut fields = packet.typed::<TracePacketWriter<'_>>();
    fields.timestamp(entry.monotonic_us.saturating_mul(1000));
    fields.timestamp_clock_id(BuiltinClock::BUILTIN_CLOCK_MONOTONIC.0 as u32);
    let mut event = fields.journald_event();
    values.number(Field::Pid).map(|value| event.pid(value));
    values.number(Field::Tid).map(|value| event.tid(value));
    values.number(Field::Uid).map(|value| event.uid(value));
    values.number(Field::Gid).map(|value| event.gid(value));
    values.number(Field::Priority).map(|value| event.prio(value));
    values.text(Field::Identifier).map(|value| event.tag(value));
    values.text(Field::Message).map(|value| event.message_(value));
    values.text(Field::Comm).map(|value| event.comm(value));
    values.text(Field::Exe).map(|value| event.exe(value));
    values.text(Field::Unit).map(|value| event.systemd_unit(value));
    values.text(Field::Hostname).map(|value| event.hostname(value));
    values.text(Field::Transport).map(|value| event.transport(value));
}

fn now_us(clock: ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1000
}

#[cfg(test)]
mod tests;
