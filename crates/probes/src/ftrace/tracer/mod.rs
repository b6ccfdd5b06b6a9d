//! [`Tracer`]: the settings of one tracefs instance for all data sources that use it.
//!
//! The kernel has one ring buffer per instance. All data sources share it: events are on that any
//! of them wants, and each gets its own by its encoder. The first config of an instance decides on
//! the clock and on the size of the buffer.
//!
//! Other programs use tracefs too. The tracer switches on what is off, and at its end sets what it
//! has changed back to what it was. If events are on before the first config, another program
//! records with them: then the tracer neither stops tracing nor clears the buffer, keeps the clock,
//! and only enlarges the buffer.

mod event_switches;
mod ring_buffer;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::changes::Changes;
use super::event_selection::EventSelection;
use super::event_set::EventSet;
use super::event_table::EventTable;
use super::ftrace_request::{ExclusiveFeatures, FtraceRequest, FunctionGraph};
use super::instance_lock::InstanceLock;
use super::journal::JournalFolder;
use super::page_layout::PageLayout;
use super::printk_formats::PrintkFormats;
use super::source_encoder::SourceOptions;
use super::tracefs::{Tracefs, TracefsError, shown};
use crate::data_source::InstanceId;

/// Entries of each list of events in the statistics of a data source.
const MAX_LISTED_EVENTS: usize = 1000;

/// Settings of one tracefs instance.
#[derive(Debug)]
pub(crate) struct Tracer {
    tracefs: Tracefs,
    changes: Changes,
    table: EventTable,
    clock: TraceClock,
    /// Another program had events on before the first config.
    is_shared: bool,
    preserves_buffer: bool,
    /// State of `tracing_on` before the first config.
    tracing_on: String,
    requested_pages: u32,
    /// By the kernel's id: how the event was switched on.
    switched_on: BTreeMap<u16, Switch>,
    sources: BTreeMap<InstanceId, TracerSource>,
    has_function_graph: bool,
    /// Kept until all changes are undone.
    _lock: Option<InstanceLock>,
}

/// Machine on which a tracer works.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Folder of the tracefs itself, for what its instances lack.
    pub(crate) top: Tracefs,
    pub(crate) journals: JournalFolder,
    /// List of the CPUs that are online.
    pub(crate) online_cpus: PathBuf,
    pub(crate) memory_bytes: u64,
}

/// Clock of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceClock {
    Boot,
    /// Number of `FtraceClock`.
    Other(i32),
}

/// Part of the tracer that belongs to a data source.
#[derive(Debug)]
struct TracerSource {
    events: EventSet,
    syscalls: Option<Vec<u16>>,
    uses_function_graph: bool,
    has_exclusive_features: bool,
    drain_percent: u32,
    is_active: bool,
}

/// Result of a config.
#[derive(Debug, Default)]
pub(crate) struct SetUp {
    pub(crate) options: SourceOptions,
    pub(crate) failures: Failures,
}

/// Parts of a config that do not work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Failures {
    /// Events that do not exist.
    pub(crate) unknown: Vec<String>,
    /// Events that cannot be switched on.
    pub(crate) failed: Vec<String>,
    /// Other parts, with the reason.
    pub(crate) notes: Vec<String>,
    /// The reason for which the kernel's buffer has another size.
    pub(crate) buffer_size: Option<String>,
}

/// How an event was switched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Switch {
    Enable,
    SetEvent,
}

impl Tracer {
    /// Prepares an instance for its first config.
    ///
    /// # Errors
    ///
    /// The instance cannot be used. What was changed until then is undone.
    pub(crate) fn new(tracefs: Tracefs, machine: &Machine, request: &FtraceRequest) -> Result<Self, String> {
        let error = |error: TracefsError| error.to_string();
        let tracing_on = tracefs.read_line("tracing_on").map_err(error)?;
        let lock = InstanceLock::take(&tracefs)?;
        let current_tracer = tracefs.read_line("current_tracer").unwrap_or_default();
        let preserves_buffer = request.preserves_buffer;
        if !preserves_buffer && !matches!(current_tracer.as_str(), "" | "nop") {
            return Err(format!(
                "{} is in use by the tracer `{}`; end it with `echo nop > {}`",
                tracefs.path("").display(),
                shown(&current_tracer),
                tracefs.path("current_tracer").display()
            ));
        }
        let is_shared = tracefs.read_line("events/enable").is_ok_and(|enabled| !enabled.starts_with('0'));
        let mut tracer = Self {
            changes: Changes::new(tracefs.clone(), machine.journals.clone()),
            table: event_table(&tracefs, &machine.top),
            clock: TraceClock::Boot,
            is_shared,
            preserves_buffer,
            tracing_on,
            requested_pages: 0,
            switched_on: BTreeMap::new(),
            sources: BTreeMap::new(),
            has_function_graph: false,
            tracefs,
            _lock: lock,
        };
        if !preserves_buffer && !is_shared {
            tracer.changes.set("tracing_on", "0", &tracer.tracing_on).map_err(error)?;
        }
        let is_cleared = tracer.set_clock(request);
        if !preserves_buffer && !is_shared {
            tracer.clear_trace(machine, is_cleared);
        }
        Ok(tracer)
    }

    /// Adds a data source.
    ///
    /// # Errors
    ///
    /// The data source cannot record. It changes nothing then.
    pub(crate) fn set_up(
        &mut self,
        id: InstanceId,
        request: &FtraceRequest,
        machine: &Machine,
    ) -> Result<SetUp, String> {
        let others = self.sources.values();
        let has_exclusive_features = !request.exclusive.is_empty();
        if has_exclusive_features && !self.sources.is_empty()
            || others.clone().any(|other| other.has_exclusive_features)
        {
            return Err(
                "tids_to_trace, tracefs_options and tracing_cpumask hold for a whole tracefs instance: a data source \
                 with them must be the only one; record into another instance (instance_name) or stop the other \
                 session"
                    .to_owned(),
            );
        }
        let is_first = self.sources.is_empty();
        let source = TracerSource {
            events: EventSet::default(),
            syscalls: request.names_syscalls().then(|| request.syscall_numbers.clone()),
            uses_function_graph: request.function_graph.is_some(),
            has_exclusive_features,
            drain_percent: request.drain_percent,
            is_active: false,
        };
        self.sources.insert(id, source);
        let mut set_up = SetUp::default();
        if is_first {
            self.set_buffer_size(request, machine, &mut set_up.failures);
        }
        let configured = self.configure(id, request, &mut set_up);
        if let Err(reason) = configured {
            self.remove(id);
            return Err(reason);
        }
        set_up.failures.bound();
        Ok(set_up)
    }

    /// Switches tracing on for a data source. The caller then opens the pipes.
    pub(crate) fn start(&mut self, id: InstanceId) {
        let Some(source) = self.sources.get_mut(&id) else { return };
        source.is_active = true;
        self.set_buffer_percent();
        self.switch_tracing("1");
    }

    /// Removes a data source, and switches off what no other one wants. Pipes must be closed if it
    /// is the last one.
    pub(crate) fn remove(&mut self, id: InstanceId) {
        if self.sources.remove(&id).is_none() {
            return;
        }
        if self.sources.is_empty() {
            return;
        }
        if !self.is_active() && !self.is_shared {
            self.switch_tracing("0");
        }
        let mut wanted = EventSet::default();
        self.sources.values().for_each(|source| wanted.extend(&source.events));
        let unwanted: Vec<_> = self.switched_on.iter().filter(|(id, _)| !wanted.contains(**id)).collect();
        let unwanted: Vec<_> = unwanted.into_iter().map(|(id, switch)| (*id, *switch)).collect();
        for (event, switch) in unwanted {
            self.switched_on.remove(&event);
            self.switch_off(event, switch);
        }
        self.set_syscall_filter(&mut Failures::default());
        if self.is_active() {
            self.set_buffer_percent();
        }
    }

    /// Undoes all changes. Pipes must be closed.
    pub(crate) fn tear_down(&mut self, machine: &Machine) {
        if !self.is_shared && !self.preserves_buffer {
            self.switch_tracing("0");
            let is_cleared = self.changes.undo("trace_clock");
            self.clear_trace(machine, is_cleared);
        }
        self.changes.undo_all();
    }

    /// True if the function graph is on, and no data source wants it. It ends with
    /// [`end_function_graph`](Self::end_function_graph).
    pub(crate) fn has_unused_function_graph(&self) -> bool {
        self.has_function_graph && !self.sources.values().any(|source| source.uses_function_graph)
    }

    /// Ends the function graph. Pipes must be closed.
    pub(crate) fn end_function_graph(&mut self) {
        for file in ["current_tracer", "max_graph_depth", "set_graph_function", "set_ftrace_filter"] {
            self.changes.undo(file);
        }
        self.has_function_graph = false;
    }

    /// True if no data source uses the instance.
    pub(crate) fn is_unused(&self) -> bool {
        self.sources.is_empty()
    }

    /// True if a data source is started.
    pub(crate) fn is_active(&self) -> bool {
        self.sources.values().any(|source| source.is_active)
    }

    pub(crate) const fn tracefs(&self) -> &Tracefs {
        &self.tracefs
    }

    pub(crate) const fn table(&self) -> &EventTable {
        &self.table
    }

    pub(crate) const fn clock(&self) -> TraceClock {
        self.clock
    }

    /// Returns the pages per CPU that the first config asked for.
    pub(crate) const fn requested_pages(&self) -> u32 {
        self.requested_pages
    }

    /// Returns the pages per CPU that the kernel has, 0 if that is not known.
    pub(crate) fn pages_per_cpu(&self) -> u32 {
        buffer_kb(&self.tracefs, "buffer_size_kb")
            .or_else(|| {
                let sizes = self.tracefs.cpus().into_iter().take(1);
                sizes.filter_map(|cpu| buffer_kb(&self.tracefs, &format!("per_cpu/cpu{cpu}/buffer_size_kb"))).next()
            })
            .map_or(0, |kb| kb / page_kb(&self.table))
    }

    fn configure(&mut self, id: InstanceId, request: &FtraceRequest, set_up: &mut SetUp) -> Result<(), String> {
        self.set_exclusive_features(&request.exclusive)?;
        if let Some(graph) = &request.function_graph {
            self.set_function_graph(graph)?;
        }
        let selection = EventSelection::new(request, &self.tracefs);
        let mut events = EventSet::default();
        for event in &selection.events {
            self.switch_on(event, request, &mut events, &mut set_up.failures);
        }
        let mut kprobes = Vec::new();
        for probe in &request.kprobes {
            self.add_kprobe(probe, &mut events, &mut kprobes, &mut set_up.failures);
        }
        set_up.failures.unknown.extend(selection.unknown);
        if let Some(source) = self.sources.get_mut(&id) {
            source.events = events.clone();
        }
        self.set_syscall_filter(&mut set_up.failures);
        set_up.options = SourceOptions {
            events,
            compact_sched: request.compact_sched,
            print_filter: request.print_filter.clone(),
            syscalls: request.syscalls.clone(),
            kprobes,
            generic_encoding: request.generic_encoding,
        };
        Ok(())
    }

    fn set_exclusive_features(&mut self, features: &ExclusiveFeatures) -> Result<(), String> {
        if !features.tids.is_empty() {
            let other = self.tracefs.read_line("set_event_pid").map_err(|error| error.to_string())?;
            if other.bytes().any(|byte| byte.is_ascii_digit()) {
                return Err(format!(
                    "another program has chosen threads in {}; clear it with `echo > {0}`",
                    self.tracefs.path("set_event_pid").display()
                ));
            }
            let tids: Vec<String> = features.tids.iter().map(u32::to_string).collect();
            self.changes.set("set_event_pid", &tids.join(" "), "").map_err(|error| error.to_string())?;
        }
        for (name, is_on) in &features.options {
            self.set_remembering(&format!("options/{name}"), if *is_on { "1" } else { "0" })?;
        }
        if let Some(cpumask) = &features.cpumask {
            self.set_remembering("tracing_cpumask", cpumask)?;
        }
        Ok(())
    }

    /// Sets a file, which later gets back what it reads now.
    fn set_remembering(&mut self, file: &str, value: &str) -> Result<(), String> {
        let original = self.tracefs.read_line(file).map_err(|error| error.to_string())?;
        self.changes.set(file, value, &original).map_err(|error| error.to_string())
    }

    fn set_function_graph(&mut self, graph: &FunctionGraph) -> Result<(), String> {
        let error = |error: TracefsError| error.to_string();
        if !self.has_function_graph {
            let tracers = self.tracefs.read_line("available_tracers").map_err(error)?;
            if !tracers.split_ascii_whitespace().any(|tracer| tracer == "function_graph") {
                return Err("enable_function_graph: this kernel has no tracer function_graph; it needs \
                            CONFIG_FUNCTION_GRAPH_TRACER"
                    .to_owned());
            }
            for file in ["set_ftrace_filter", "set_graph_function"] {
                let original = listed(&self.tracefs.read(file).map_err(error)?);
                self.changes.clear_list(file, &original).map_err(error)?;
            }
            self.set_remembering("max_graph_depth", "0")?;
            self.has_function_graph = true;
        }
        for (file, functions) in [("set_ftrace_filter", &graph.filters), ("set_graph_function", &graph.roots)] {
            if !functions.is_empty() {
                self.tracefs.append(file, &(functions.join("\n") + "\n")).map_err(error)?;
            }
        }
        self.tracefs.write("max_graph_depth", &graph.max_depth.to_string()).map_err(error)?;
        if !self.changes.has("current_tracer") {
            self.changes.set("current_tracer", "function_graph", "nop").map_err(error)?;
        }
        Ok(())
    }
}

impl Failures {
    /// Keeps the begin of each list.
    fn bound(&mut self) {
        for list in [&mut self.unknown, &mut self.failed, &mut self.notes] {
            if list.len() > MAX_LISTED_EVENTS {
                let more = list.len() - MAX_LISTED_EVENTS;
                list.truncate(MAX_LISTED_EVENTS);
                list.push(format!("… and {more} more"));
            }
        }
    }
}

/// Reads what the parsing of events needs.
pub(crate) fn event_table(tracefs: &Tracefs, top: &Tracefs) -> EventTable {
    let header = tracefs.read("events/header_page").or_else(|_| top.read("events/header_page")).unwrap_or_default();
    let layout = PageLayout::parse(&header).unwrap_or(PageLayout::FALLBACK);
    let printk_formats = PrintkFormats::parse(&top.read("printk_formats").unwrap_or_default());
    let mut table = EventTable::new(layout, printk_formats);
    if let Some(kb) = number_at_start(&tracefs.read("buffer_subbuf_size_kb").unwrap_or_default()) {
        table.set_page_size(kb.saturating_mul(1024) as usize);
    }
    table
}

/// Returns the entries of a list of functions, without the comment that stands for all or none.
fn listed(content: &[u8]) -> String {
    let content = String::from_utf8_lossy(content);
    content.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect()
}

/// Returns the size of a buffer; `None` if the CPUs have different ones.
pub(super) fn buffer_kb(tracefs: &Tracefs, file: &str) -> Option<u32> {
    number_at_start(&tracefs.read(file).ok()?)
}

fn number_at_start(content: &[u8]) -> Option<u32> {
    core::str::from_utf8(content).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

pub(super) fn page_kb(table: &EventTable) -> u32 {
    u32::try_from(table.page_layout().page_size() / 1024).unwrap_or(u32::MAX).max(1)
}
