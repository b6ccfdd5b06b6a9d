//! [`Ftrace`]: the data source `linux.ftrace`.

use core::time::Duration;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use esatto::producer::TraceWriter;
use esatto_protozero::Owned as _;
use esatto_schema::{DataSourceConfig, DataSourceDescriptor, FtraceConfig};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::ftrace_request::FtraceRequest;
use super::journal::JournalFolder;
use super::kernel_symbols::KernelSymbols;
use super::recording::Recording;
use super::symbol_file::read_symbols;
use super::tracefs::{MOUNT_POINTS, Tracefs};
use super::tracer::Machine;
use crate::data_source::{DataSource, Instance, InstanceId, Monotonic, Observations, SetupError, TracingSession};
use crate::metatrace;
use crate::ticks::Ticks;

/// Period of reads if no config names one.
const DEFAULT_PERIOD: Duration = Duration::from_millis(100);
/// Period of reads if all data sources wait for full buffers.
const WATERMARK_PERIOD: Duration = Duration::from_secs(1);

/// The data source `linux.ftrace` with all its instances.
pub(crate) struct Ftrace {
    places: Places,
    /// By the name of the tracefs instance.
    recordings: BTreeMap<String, Recording>,
    /// Which tracefs instance a data source uses.
    tracefs_of: BTreeMap<InstanceId, String>,
    symbols: Option<KernelSymbols>,
    ticks: Option<(Duration, Ticks)>,
    /// A read has left pages to the next turn.
    is_behind: bool,
    clock: fn() -> Monotonic,
}

/// Where the kernel's files are.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) mount_points: Vec<PathBuf>,
    pub(crate) proc: PathBuf,
    pub(crate) online_cpus: PathBuf,
    pub(crate) journals: JournalFolder,
}

impl Places {
    /// Those of this machine.
    pub(crate) fn of_this_machine() -> Self {
        Self {
            mount_points: MOUNT_POINTS.map(PathBuf::from).to_vec(),
            proc: "/proc".into(),
            online_cpus: "/sys/devices/system/cpu/online".into(),
            journals: JournalFolder::of_this_user(),
        }
    }

    /// Finds tracefs, which may be mounted or allowed only now.
    fn machine(&self) -> Result<Machine, String> {
        let info = rustix::system::sysinfo();
        Ok(Machine {
            top: Tracefs::find(&self.mount_points)?,
            journals: self.journals.clone(),
            online_cpus: self.online_cpus.clone(),
            memory_bytes: info.totalram.saturating_mul(u64::from(info.mem_unit)),
        })
    }
}

impl Ftrace {
    /// Cleans up after daemons that were killed. `clock` reads CLOCK_MONOTONIC.
    pub(crate) fn new(places: Places, clock: fn() -> Monotonic) -> Self {
        let undone = places.journals.undo_leftovers();
        if undone != 0 {
            log::info!("ftrace: undid {undone} changes that a killed process has left");
        }
        Self {
            places,
            recordings: BTreeMap::new(),
            tracefs_of: BTreeMap::new(),
            symbols: None,
            ticks: None,
            is_behind: false,
            clock,
        }
    }

    fn try_set_up(&mut self, id: InstanceId, session: TracingSession, config: &FtraceConfig) -> Result<(), String> {
        let request = FtraceRequest::from_config(config)?;
        let machine = self.places.machine()?;
        let name = request.instance_name.clone();
        if !self.recordings.contains_key(&name) {
            let tracefs = machine.top.instance(&name);
            if !tracefs.has("tracing_on") {
                let path = tracefs.path("");
                return Err(format!("there is no tracefs instance {0}; make it with `mkdir {0}`", path.display()));
            }
            self.recordings.insert(name.clone(), Recording::new(tracefs, machine, &request)?);
        }
        let Some(recording) = self.recordings.get_mut(&name) else { return Ok(()) };
        let set_up = recording.set_up(id, session, request);
        if recording.is_unused() {
            recording.tear_down();
            self.recordings.remove(&name);
        }
        set_up?;
        self.tracefs_of.insert(id, name);
        Ok(())
    }

    fn recording_of(&mut self, id: InstanceId) -> Option<&mut Recording> {
        self.recordings.get_mut(self.tracefs_of.get(&id)?)
    }

    /// Sets the period to the smallest that a started data source wants.
    fn set_period(&mut self) {
        let mut started = self.recordings.values().flat_map(Recording::started_requests).peekable();
        if started.peek().is_none() {
            drop(started);
            self.ticks = None;
            self.is_behind = false;
            return;
        }
        let wish = |request: &FtraceRequest| {
            let default = if request.drain_percent == 0 { DEFAULT_PERIOD } else { WATERMARK_PERIOD };
            request.period.unwrap_or(default)
        };
        let period = started.map(wish).min().unwrap_or(DEFAULT_PERIOD);
        if self.ticks.is_none_or(|(before, _)| before != period) {
            self.ticks = Some((period, Ticks::starting((self.clock)(), period)));
        }
    }

    fn drop_unused_symbols(&mut self) {
        let mut requests = self.recordings.values().flat_map(Recording::requests);
        if requests.all(|request| !request.symbolize) {
            self.symbols = None;
        }
    }
}

impl DataSource for Ftrace {
    fn descriptor(&self) -> DataSourceDescriptor {
        DataSourceDescriptor {
            name: Some("linux.ftrace".into()),
            will_notify_on_start: Some(true),
            will_notify_on_stop: Some(true),
            ftrace_descriptor: Some(esatto_schema::FtraceDescriptor::default()),
            ..DataSourceDescriptor::default()
        }
    }

    fn set_up(&mut self, instance: Instance) -> Result<(), SetupError> {
        let config = DataSourceConfig::decode(&instance.config);
        let config = config.map_err(|why| SetupError(format!("the config cannot be decoded: {why}")))?;
        let config = config.ftrace_config.unwrap_or_default();
        self.try_set_up(instance.id, instance.session, &config).map_err(SetupError)
    }

    fn start(&mut self, id: InstanceId, writer: TraceWriter) {
        let Some(recording) = self.recording_of(id) else { return };
        recording.start(id, writer);
        let wants_symbols = recording.started_requests().any(|request| request.symbolize);
        if wants_symbols && self.symbols.is_none() {
            let _reading = metatrace::scope("kernel symbols");
            self.symbols = Some(read_symbols(&self.places.proc, &self.places.journals));
        }
        self.set_period();
    }

    fn flush(&mut self, id: InstanceId, observations: &mut Observations) {
        let Some(name) = self.tracefs_of.get(&id) else { return };
        if let Some(recording) = self.recordings.get_mut(name) {
            recording.flush(id, self.symbols.as_ref(), observations);
        }
    }

    fn stop(&mut self, id: InstanceId) {
        let Some(name) = self.tracefs_of.remove(&id) else { return };
        let Some(recording) = self.recordings.get_mut(&name) else { return };
        let retains_symbols = recording.requests().any(|request| request.retains_symbols);
        recording.stop(id);
        if recording.is_unused() {
            self.recordings.remove(&name);
        }
        self.set_period();
        if !retains_symbols {
            self.drop_unused_symbols();
        }
    }

    fn deadline(&self) -> Option<Monotonic> {
        let (_, ticks) = self.ticks.as_ref()?;
        Some(if self.is_behind { Monotonic::ZERO } else { ticks.deadline() })
    }

    fn tick(&mut self, now: Monotonic, observations: &mut Observations) {
        let is_due = self.ticks.as_mut().is_some_and(|(_, ticks)| ticks.take(now)) || self.is_behind;
        self.is_behind = false;
        for recording in self.recordings.values_mut() {
            if recording.has_started_sources() && (is_due || is_any_readable(&recording.watermark_pipes())) {
                self.is_behind |= recording.read_turn(self.symbols.as_ref(), observations);
            }
        }
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.recordings.values().flat_map(Recording::watermark_pipes).collect()
    }
}

/// True if one of the pipes is readable now.
fn is_any_readable(pipes: &[BorrowedFd<'_>]) -> bool {
    let mut fds: Vec<_> = pipes.iter().map(|pipe| PollFd::from_borrowed_fd(*pipe, PollFlags::IN)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    !fds.is_empty() && poll(&mut fds, Some(&now)).is_ok_and(|ready| ready != 0)
}
