//! [`ProcessSmaps`]: the data source `linux.smaps` (`docs/spec/probes.md` §13a).
//!
//! It records the mappings of chosen processes, once or in periods. One process is read per turn of
//! the worker, because the kernel visits all its pages.

mod fields;
mod glob;
mod mappings;
mod redaction;
mod scope;

#[cfg(test)]
mod tests;

use core::hash::BuildHasher as _;
use core::time::Duration;
use std::hash::RandomState;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use esatto::producer::TraceWriter;
use esatto_protozero::Owned as _;
use esatto_schema::redaction_rule::MatchMode;
use esatto_schema::smaps_packet::RecordingType;
use esatto_schema::{DataSourceDescriptor, ProcessSmapsConfig, RedactionRule, SmapsConfig, TracePacketWriter};
use rustix::time::{ClockId, clock_gettime};

use self::fields::Fields;
use self::mappings::Mappings;
use self::redaction::Redaction;
use self::scope::Scope;
use crate::data_source::{Instance, Monotonic, SetupError};
use crate::instances::Source;
use crate::proc_folder::{FileBuffer, ProcFolder};
use crate::process_stats::Status;
use crate::ticks::Ticks;

/// An instance of `linux.smaps`.
pub(crate) struct ProcessSmaps {
    proc: ProcFolder,
    scope: Scope,
    redaction: Redaction,
    period: Option<Duration>,
    max_processes: usize,
    ticks: Option<Ticks>,
    order: RandomState,
    /// Place in the order of the process that was chosen last.
    last_chosen: (u64, i32),
    /// Processes of this period that are still to be read, the next one at the end.
    waiting: Vec<i32>,
    mappings: Mappings,
    status: FileBuffer,
    cmdline: FileBuffer,
    lines: Vec<u8>,
}

const MIN_PERIOD_MS: u32 = 1000;
const MAX_PERIOD_MS: u32 = 24 * 60 * 60 * 1000;

/// Beginning of a command line that has the name of the program.
const MAX_MATCHED_CMDLINE_BYTES: usize = 4096;

/// Beginning of a `status` that has the user. Groups come after it.
const MAX_MATCHED_STATUS_BYTES: usize = 1024;

/// Bytes of `smaps` that are read of a process: 150000 mappings.
const MAX_SMAPS_BYTES: usize = 128 << 20;

/// Longest line of `smaps`: a path of 4096 bytes, of which each may be escaped. The rest of a
/// longer one is left out.
const LINE_BUFFER_SIZE: usize = 32 * 1024;

/// Time for which a flush goes on with the processes that wait.
const MAX_FLUSH_MS: u64 = 500;

impl Source for ProcessSmaps {
    fn descriptor() -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.smaps".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ..Default::default()
        }
    }

    fn set_up(instance: &Instance) -> Result<Self, SetupError> {
        let config = instance.config().process_smaps_config();
        let config = config.map(|config| ProcessSmapsConfig::decode(config.as_bytes())).transpose();
        let config = config.map_err(|error| SetupError(format!("process_smaps_config is no message: {error}")))?;
        Self::new(Path::new("/proc"), &config.unwrap_or_default())
    }

    fn start(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        self.ticks = self.period.map(|period| Ticks::starting(now, period));
        if let Some(ticks) = &mut self.ticks {
            ticks.take(now);
        }
        self.choose_processes();
        self.read_next(writer);
    }

    fn flush(&mut self, writer: &mut TraceWriter) {
        let begin = Instant::now();
        while !self.waiting.is_empty() && begin.elapsed() < Duration::from_millis(MAX_FLUSH_MS) {
            self.read_next(writer);
        }
    }

    fn stop(&mut self, writer: &mut TraceWriter) {
        self.flush(writer);
    }

    fn deadline(&self) -> Option<Monotonic> {
        if !self.waiting.is_empty() {
            return Some(Monotonic::ZERO);
        }
        self.ticks.map(|ticks| ticks.deadline())
    }

    fn tick(&mut self, now: Monotonic, writer: &mut TraceWriter) {
        // A period whose processes are not all read takes the place of the next one.
        if self.ticks.as_mut().is_some_and(|ticks| ticks.take(now)) && self.waiting.is_empty() {
            self.choose_processes();
        }
        self.read_next(writer);
    }
}

impl ProcessSmaps {
    /// Makes an instance that reads the `/proc` at `root`.
    fn new(root: &Path, config: &ProcessSmapsConfig) -> Result<Self, SetupError> {
        let scope = Scope::new(config)?;
        let proc = ProcFolder::open(root).map_err(|error| {
            SetupError(format!("cannot open {}: {error}; mappings are not recorded", root.display()))
        })?;
        let asked_ms = config.read_period_ms.unwrap_or(0);
        let period_ms = if asked_ms == 0 { 0 } else { asked_ms.clamp(MIN_PERIOD_MS, MAX_PERIOD_MS) };
        if period_ms != asked_ms {
            log::info!("linux.smaps: read_period_ms {asked_ms} is out of bounds; reading every {period_ms} ms");
        }
        let max_processes = match config.max_processes_per_period.unwrap_or(0) {
            0 => usize::MAX,
            max => max as usize,
        };
        let smaps = config.smaps_config.clone().unwrap_or_default();
        Ok(Self {
            proc,
            scope,
            redaction: Redaction::new(&smaps),
            period: (period_ms > 0).then(|| Duration::from_millis(period_ms.into())),
            max_processes,
            ticks: None,
            order: RandomState::new(),
            last_chosen: (0, 0),
            waiting: Vec::new(),
            mappings: Mappings::new(Fields::new(smaps.vma_fields.iter().copied()), smaps.unaggregated != Some(true)),
            status: FileBuffer::new(MAX_MATCHED_STATUS_BYTES),
            cmdline: FileBuffer::new(MAX_MATCHED_CMDLINE_BYTES),
            lines: Vec::new(),
        })
    }

    /// Chooses the processes of a period. If they are too many, those come first that come after
    /// the last one of the last period, in an order that does not depend on their ages.
    fn choose_processes(&mut self) {
        let Some(pids) = self.proc.processes() else { return };
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        let pids = pids.filter_map(|pid| i32::try_from(pid).ok()).filter(|&pid| pid != own);
        let mut all: Vec<(u64, i32)> = pids.map(|pid| (self.order.hash_one(pid), pid)).collect();
        all.sort_unstable();
        let begin = all.partition_point(|&place| place <= self.last_chosen);
        for &place in all[begin..].iter().chain(&all[..begin]) {
            if self.waiting.len() >= self.max_processes {
                break;
            }
            if self.is_wanted(place.1) {
                self.waiting.push(place.1);
                self.last_chosen = place;
            }
        }
        self.waiting.reverse();
    }

    fn is_wanted(&mut self, pid: i32) -> bool {
        if self.scope.wants_users() {
            let status = self.proc.read(pid, b"status", &mut self.status).map(Status::parse);
            if status.is_none_or(|status| !self.scope.has_user(status.effective_uid)) {
                return false;
            }
        }
        if !self.scope.wants_cmdlines() {
            return true;
        }
        let cmdline = self.proc.read(pid, b"cmdline", &mut self.cmdline);
        cmdline.is_some_and(|cmdline| self.scope.has_cmdline(cmdline))
    }

    /// Reads a process and writes its packet.
    fn read_next(&mut self, writer: &mut TraceWriter) {
        let Some(pid) = self.waiting.pop() else { return };
        let Some(file) = self.proc.open_file(pid, b"smaps") else { return };
        let time = clock_gettime(ClockId::Boottime);
        self.mappings.clear();
        if !for_each_line(&file, &mut self.lines, |line| self.mappings.read_line(line)) {
            // It ended, is a thread of the kernel, or belongs to a user whose memory is hidden.
            return;
        }
        let mut packet = writer.new_packet();
        let mut packet = packet.typed::<TracePacketWriter<'_>>();
        packet.timestamp(u64::try_from(Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_nanos()).unwrap_or(0));
        let mut smaps = packet.smaps_packet();
        smaps.pid(pid.unsigned_abs()).recording_type(RecordingType::RECORDING_TYPE_STANDALONE);
        self.mappings.write(&self.redaction, &mut smaps.packed_entries());
    }
}

/// Reads the lines of a file. Returns false if it has none.
fn for_each_line(file: impl AsFd, buffer: &mut Vec<u8>, mut take: impl FnMut(&[u8])) -> bool {
    buffer.resize(LINE_BUFFER_SIZE, 0);
    let (mut filled, mut total) = (0, 0);
    while total < MAX_SMAPS_BYTES {
        let count = match rustix::io::read(&file, &mut buffer[filled..]) {
            Err(rustix::io::Errno::INTR) => continue,
            Ok(count) if count > 0 => count,
            _ => break,
        };
        (filled, total) = (filled + count, total + count);
        let mut begin = 0;
        while let Some(length) = memchr::memchr(b'\n', &buffer[begin..filled]) {
            take(&buffer[begin..begin + length]);
            begin += length + 1;
        }
        if begin == 0 && filled == buffer.len() {
            take(&buffer[..filled]);
            begin = filled;
        }
        buffer.copy_within(begin..filled, 0);
        filled -= begin;
    }
    total > 0
}

/// Reads the bytes after the first NUL as `smaps`; those before it are a pattern for the names.
pub fn fuzz(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |&byte| byte == 0);
    let (pattern, text) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let rule = RedactionRule {
        pattern: Some(pattern.into()),
        match_mode: Some(MatchMode(i32::from(pattern.first().copied().unwrap_or(0) % 4))),
        keep_file_extension: Some(pattern.len() % 2 == 1),
        keep_path_elements: Some(pattern.len() as u32 % 5),
        ..Default::default()
    };
    let redaction = Redaction::new(&SmapsConfig { name_redaction_rules: vec![rule], ..Default::default() });
    for is_aggregated in [false, true] {
        let mut mappings = Mappings::new(Fields::new([].into_iter()), is_aggregated);
        text.split(|&byte| byte == b'\n').for_each(|line| mappings.read_line(line));
        let mut writer = TraceWriter::null();
        let mut packet = writer.new_packet();
        let mut packet = packet.typed::<TracePacketWriter<'_>>();
        mappings.write(&redaction, &mut packet.smaps_packet().packed_entries());
    }
}
