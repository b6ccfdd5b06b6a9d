//! [`Recording`]: one tracefs instance with the data sources that record from it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use esatto::producer::TraceWriter;
use esatto_schema::ftrace_stats::Phase;

use super::ftrace_request::FtraceRequest;
use super::ftrace_statistics::{FtraceStatistics, SourceStatistics, read_cpu, write_preserved};
use super::kernel_symbols::KernelSymbols;
use super::page_reader::{End, PAGES_PER_BATCH, PageReader};
use super::parse_status::ParseStatuses;
use super::source_encoder::{ClockPair, SourceEncoder, SourceOptions, Surroundings};
use super::tracefs::Tracefs;
use super::tracer::{Failures, Machine, TraceClock, Tracer, page_kb};
use super::unknown_events;
use crate::data_source::{InstanceId, Observations, Observed, TracingSession};
use crate::metatrace;
use crate::problem;

/// Pages of a CPU in one read of all CPUs. A CPU that has more gets its turn again when the others
/// had theirs.
const PAGES_PER_CPU: usize = 256;
/// Pages of all CPUs in one turn, before other data sources and commands get theirs: 4 MiB.
const PAGES_PER_TURN: usize = 1024;

/// One tracefs instance with the data sources that record from it.
pub(crate) struct Recording {
    /// Pipes of all CPUs, while a data source is started.
    readers: Vec<PageReader>,
    tracer: Tracer,
    sources: BTreeMap<InstanceId, Source>,
    /// Pages of a batch.
    buffer: Vec<u8>,
    pass: Option<Pass>,
    /// Statuses of reads that failed, since the start.
    read_errors: ParseStatuses,
    machine: Machine,
}

/// A read of all CPUs that is not complete.
#[derive(Clone, Copy, Debug)]
struct Pass {
    /// The next CPU, as index of its reader.
    next: usize,
    /// Pages of this CPU that were read.
    pages: usize,
    clock: Option<ClockPair>,
    /// A CPU has more pages than one read takes.
    is_behind: bool,
}

/// A data source.
struct Source {
    session: TracingSession,
    request: FtraceRequest,
    options: Option<SourceOptions>,
    failures: Failures,
    started: Option<Started>,
}

struct Started {
    encoder: SourceEncoder,
    writer: TraceWriter,
    observed: Observed,
    at_start: FtraceStatistics,
}

impl Recording {
    /// Prepares the instance for its first data source.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be used.
    pub(crate) fn new(tracefs: Tracefs, machine: Machine, request: &FtraceRequest) -> Result<Self, String> {
        let tracer = Tracer::new(tracefs, &machine, request)?;
        Ok(Self {
            readers: Vec::new(),
            tracer,
            sources: BTreeMap::new(),
            buffer: Vec::new(),
            pass: None,
            read_errors: ParseStatuses::default(),
            machine,
        })
    }

    /// Adds a data source.
    ///
    /// # Errors
    ///
    /// The reason why it cannot record.
    pub(crate) fn set_up(
        &mut self,
        id: InstanceId,
        session: TracingSession,
        request: FtraceRequest,
    ) -> Result<(), String> {
        let _setting_up = metatrace::scope("ftrace set up");
        let set_up = self.tracer.set_up(id, &request, &self.machine)?;
        let (options, failures) = (Some(set_up.options), set_up.failures);
        unknown_events::log(session, &failures.unknown, &self.machine.top);
        self.sources.insert(id, Source { session, request, options, failures, started: None });
        Ok(())
    }

    /// Starts a data source.
    pub(crate) fn start(&mut self, id: InstanceId, mut writer: TraceWriter) {
        let Some(source) = self.sources.get_mut(&id) else { return };
        let Some(options) = source.options.take() else { return };
        if source.request.preserves_buffer {
            write_preserved(&mut writer);
        }
        let encoder = SourceEncoder::new(options, self.tracer.table());
        self.tracer.start(id);
        let at_start = FtraceStatistics::read(&self.tracer);
        if let Some(reason) = &source.failures.buffer_size {
            problem::write(&mut writer, "linux.ftrace", reason);
        }
        source.started = Some(Started { encoder, writer, observed: Observed::default(), at_start });
        if self.readers.is_empty() {
            self.open_pipes(id);
        }
    }

    /// Ends a data source. Without any, the recording is to be dropped after
    /// [`tear_down`](Self::tear_down).
    pub(crate) fn stop(&mut self, id: InstanceId) {
        if let Some(source) = self.sources.remove(&id) {
            if let Some(Started { mut writer, at_start, .. }) = source.started {
                writer.flush();
                self.log_losses(source.session, &at_start);
            }
        }
        if !self.has_started_sources() {
            self.close_pipes();
        }
        self.tracer.remove(id);
        if self.tracer.has_unused_function_graph() && !self.tracer.is_unused() {
            let were_open = !self.readers.is_empty();
            self.close_pipes();
            self.tracer.end_function_graph();
            if were_open {
                self.open_pipes(id);
            }
        }
        if self.tracer.is_unused() {
            self.tear_down();
        }
    }

    /// Logs how many events the kernel has lost during a session.
    fn log_losses(&self, session: TracingSession, at_start: &FtraceStatistics) {
        let lost = FtraceStatistics::read(&self.tracer).lost_since(at_start);
        if lost > 0 {
            log::warn!(
                "session {}: the kernel lost {lost} ftrace events, because its buffer of {} KiB per CPU was full; a \
                 larger buffer_size_kb or a shorter drain_period_ms in the ftrace_config helps",
                session.0,
                self.tracer.pages_per_cpu().saturating_mul(page_kb(self.tracer.table()))
            );
        }
    }

    /// Undoes all changes of the instance.
    pub(crate) fn tear_down(&mut self) {
        let _tearing_down = metatrace::scope("ftrace tear down");
        self.close_pipes();
        self.tracer.tear_down(&self.machine);
    }

    /// Reads what is there, as much as one turn allows. Returns true if there is more.
    pub(crate) fn read_turn(&mut self, symbols: Option<&KernelSymbols>, observations: &mut Observations) -> bool {
        let is_behind = self.read(PAGES_PER_TURN, PAGES_PER_CPU, symbols);
        self.take_observations(observations);
        self.pass.is_some() || is_behind
    }

    /// Reads all that is there now, and writes the statistics of a data source.
    pub(crate) fn flush(&mut self, id: InstanceId, symbols: Option<&KernelSymbols>, observations: &mut Observations) {
        // A read that is not complete is the first part of this one.
        let pages = (self.tracer.pages_per_cpu() as usize).max(PAGES_PER_CPU);
        self.read(usize::MAX, pages, symbols);
        self.take_observations(observations);
        let reading = metatrace::scope("ftrace statistics");
        let now = FtraceStatistics::read(&self.tracer);
        drop(reading);
        let read_errors = self.read_errors;
        let Some(Source { request, failures, started: Some(started), .. }) = self.sources.get_mut(&id) else { return };
        let mut errors = started.encoder.errors();
        errors.extend(read_errors);
        let symbols = symbols.filter(|_| request.symbolize).map(|symbols| {
            let kib = u32::try_from(symbols.memory_bytes() / 1024).unwrap_or(u32::MAX);
            (u32::try_from(symbols.len()).unwrap_or(u32::MAX), kib)
        });
        let statistics = SourceStatistics {
            failures,
            compact_sched_error: started.encoder.compact_sched_error(),
            errors,
            preserves_buffer: request.preserves_buffer,
            symbols,
        };
        started.at_start.write(Phase::START_OF_TRACE, &statistics, &mut started.writer);
        now.write(Phase::END_OF_TRACE, &statistics, &mut started.writer);
        started.writer.flush();
    }

    /// True if no data source uses the instance.
    pub(crate) fn is_unused(&self) -> bool {
        self.sources.is_empty()
    }

    pub(crate) fn has_started_sources(&self) -> bool {
        self.sources.values().any(|source| source.started.is_some())
    }

    /// Iterates over the configs of the started data sources.
    pub(crate) fn started_requests(&self) -> impl Iterator<Item = &FtraceRequest> {
        self.sources.values().filter(|source| source.started.is_some()).map(|source| &source.request)
    }

    /// Iterates over the configs of all data sources.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &FtraceRequest> {
        self.sources.values().map(|source| &source.request)
    }

    /// Returns the pipes that are readable when a buffer is full enough, if a data source wants
    /// that.
    pub(crate) fn watermark_pipes(&self) -> Vec<BorrowedFd<'_>> {
        if self.started_requests().all(|request| request.drain_percent == 0) {
            return Vec::new();
        }
        self.readers.iter().map(|reader| reader.as_fd()).collect()
    }

    /// Reads all CPUs, or goes on with a read that is not complete. Returns true if a CPU had more
    /// pages than `per_cpu`. At most `budget` pages are read, in whole batches.
    fn read(&mut self, budget: usize, per_cpu: usize, symbols: Option<&KernelSymbols>) -> bool {
        let layout = *self.tracer.table().page_layout();
        self.buffer.resize(PAGES_PER_BATCH * layout.page_size(), 0);
        let mut pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.begin_pass(),
        };
        let mut budget = budget;
        while let Some(reader) = self.readers.get_mut(pass.next) {
            if budget == 0 {
                self.pass = Some(pass);
                return pass.is_behind;
            }
            let _draining = metatrace::scope("ftrace drain").with("cpu", reader.cpu());
            let batch = reader.read(&layout, &mut self.buffer, pass.pages == 0);
            pass.pages += batch.pages;
            budget = budget.saturating_sub(batch.pages.max(1));
            if let Some(End::Failed(status)) = batch.end {
                self.read_errors.insert(status);
            }
            let pages = &self.buffer[..batch.pages * layout.page_size()];
            if !pages.is_empty() {
                for source in self.sources.values_mut() {
                    let Some(started) = &mut source.started else { continue };
                    let mut around = Surroundings {
                        table: self.tracer.table(),
                        symbols: symbols.filter(|_| source.request.symbolize),
                        clock: pass.clock,
                        writer: &mut started.writer,
                        observed: &mut started.observed,
                    };
                    started.encoder.encode(reader.cpu(), pages, &mut around);
                }
            }
            let is_full = pass.pages >= per_cpu;
            if batch.end.is_some() || is_full {
                pass.is_behind |= batch.end.is_none() && is_full;
                pass.next += 1;
                pass.pages = 0;
            }
        }
        pass.is_behind
    }

    fn begin_pass(&mut self) -> Pass {
        for source in self.sources.values_mut() {
            if let Some(started) = &mut source.started {
                started.encoder.begin_read();
            }
        }
        Pass { next: 0, pages: 0, clock: self.clock_pair(), is_behind: false }
    }

    /// Reads the trace clock beside CLOCK_BOOTTIME, if it is another one.
    fn clock_pair(&self) -> Option<ClockPair> {
        let TraceClock::Other(clock) = self.tracer.clock() else { return None };
        let cpu = self.readers.first()?.cpu();
        let ftrace_ns = read_cpu(self.tracer.tracefs(), cpu)?.now_ns;
        let boot_ns = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let boot_ns = boot_ns.tv_sec.saturating_mul(1_000_000_000).saturating_add(boot_ns.tv_nsec);
        Some(ClockPair { clock, ftrace_ns, boot_ns })
    }

    /// Passes on what the sources have observed. Each observation is passed once.
    fn take_observations(&mut self, observations: &mut Observations) {
        for source in self.sources.values_mut() {
            let Some(started) = &mut source.started else { continue };
            if started.observed != Observed::default() {
                observations.push((source.session, core::mem::take(&mut started.observed)));
            }
        }
    }

    /// Opens the pipes of all CPUs. The data source `id` tells of those that cannot be opened.
    fn open_pipes(&mut self, id: InstanceId) {
        let tracefs = self.tracer.tracefs();
        let mut reason = None;
        for cpu in tracefs.cpus() {
            match tracefs.open_pipe(&format!("per_cpu/cpu{cpu}/trace_pipe_raw")) {
                Ok(pipe) => self.readers.push(PageReader::new(cpu, pipe)),
                // The CPU is offline.
                Err(error) if error.kind() == io::ErrorKind::NotFound => log::debug!("{error}"),
                Err(error) => reason = reason.or_else(|| Some(error.to_string())),
            }
        }
        if let Some(reason) = reason {
            log::warn!("{reason}");
            if let Some(Source { started: Some(started), .. }) = self.sources.get_mut(&id) {
                problem::write(&mut started.writer, "linux.ftrace", &reason);
            }
        }
    }

    fn close_pipes(&mut self) {
        self.readers = Vec::new();
        self.buffer = Vec::new();
        self.pass = None;
    }
}
