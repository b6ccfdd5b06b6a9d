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

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::changes::Changes;
use super::event_selection::{EventSelection, KPROBE_GROUP, KRETPROBE_GROUP, SelectedEvent};
use super::event_set::EventSet;
use super::event_table::EventTable;
use super::ftrace_request::{ExclusiveFeatures, FtraceRequest, FunctionGraph, KprobeRequest};
use super::journal::JournalFolder;
use super::kprobe::{Kprobe, KprobeKind};
use super::page_layout::PageLayout;
use super::printk_formats::PrintkFormats;
use super::source_encoder::SourceOptions;
use super::tracefs::{Tracefs, shown};
use crate::data_source::InstanceId;

/// Entries of each list of events in the statistics of a data source.
const MAX_LISTED_EVENTS: usize = 1000;
/// Longest filter that the kernel takes: a page, with its end.
const MAX_FILTER_BYTES: usize = 4095;
/// Calls of a function that return events may be waiting for.
const MAX_ACTIVE_CALLS: u32 = 1024;

/// Buffers of a CPU on machines with much and with little memory.
const LARGE_BUFFER_KB: u32 = 8192;
const SMALL_BUFFER_KB: u32 = 2048;
/// Memory from which on a machine gets large buffers. It is less than 8 GiB, because firmware and
/// kernel take a part.
const MUCH_MEMORY_BYTES: u64 = 7 << 30;

/// Events that the system makes of others, with the command that makes them.
const SYNTHETIC_TRIGGERS: [(&str, &str, &str); 2] = [
    (
        "rss_stat_throttled",
        "events/kmem/rss_stat/trigger",
        "hist:keys=mm_id,member:bucket=size/0x80000:onchange($bucket).rss_stat_throttled(mm_id,curr,member,size)",
    ),
    (
        "suspend_resume_minimal",
        "events/power/suspend_resume/trigger",
        "hist:keys=start:size=128:onmatch(power.suspend_resume).trace(suspend_resume_minimal,start) \
         if action == 'syscore_resume'",
    ),
];

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
        let error = |error: super::tracefs::TracefsError| error.to_string();
        let tracing_on = tracefs.read_line("tracing_on").map_err(error)?;
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
        };
        if !preserves_buffer && !is_shared {
            tracer.changes.set("tracing_on", "0", &tracer.tracing_on).map_err(error)?;
            tracer.clear_trace(machine);
        }
        tracer.set_clock(request);
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
            self.clear_trace(machine);
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

    fn set_clock(&mut self, request: &FtraceRequest) {
        let Ok(line) = self.tracefs.read_line("trace_clock") else { return };
        let mut current = "boot";
        let mut available = Vec::new();
        for word in line.split_ascii_whitespace() {
            let name = word.trim_matches(['[', ']']);
            if name.len() < word.len() {
                current = name;
            }
            available.push(name);
        }
        let raw = request.wants_monotonic_raw.then_some("mono_raw");
        let mut wishes = raw.into_iter().chain(["boot", "global", "local"]);
        let wish = wishes.find(|wish| available.contains(wish)).unwrap_or(current);
        let mut clock = current;
        // Another clock clears the buffer.
        if wish != current && !self.preserves_buffer && !self.is_shared {
            match self.changes.set("trace_clock", wish, current) {
                Ok(()) => clock = wish,
                Err(error) => log::warn!("{error}"),
            }
        }
        self.clock = match clock {
            "boot" => TraceClock::Boot,
            "global" => TraceClock::Other(2),
            "local" => TraceClock::Other(3),
            "mono_raw" => TraceClock::Other(4),
            _ => TraceClock::Other(1),
        };
    }

    fn set_buffer_size(&mut self, request: &FtraceRequest, machine: &Machine, failures: &mut Failures) {
        if self.preserves_buffer {
            self.requested_pages = self.pages_per_cpu();
            return;
        }
        let default_kb = if machine.memory_bytes >= MUCH_MEMORY_BYTES { LARGE_BUFFER_KB } else { SMALL_BUFFER_KB };
        let kb = match request.buffer_size_kb {
            Some(kb) if request.is_size_lower_bound => kb.max(default_kb),
            Some(kb) => kb,
            None => default_kb,
        };
        let page_kb = page_kb(&self.table);
        self.requested_pages = (kb / page_kb).max(1);
        let kb = self.requested_pages.saturating_mul(page_kb);
        let files = match buffer_kb(&self.tracefs, "buffer_size_kb") {
            Some(_) => vec!["buffer_size_kb".to_owned()],
            // The CPUs have different ones.
            None => self.tracefs.cpus().iter().map(|cpu| format!("per_cpu/cpu{cpu}/buffer_size_kb")).collect(),
        };
        for file in files {
            let original = buffer_kb(&self.tracefs, &file).unwrap_or(0);
            if original == kb || original > kb && self.is_shared {
                continue;
            }
            if let Err(error) = self.changes.set(&file, &kb.to_string(), &original.to_string()) {
                log::warn!("{error}");
                failures.notes.push(error.to_string());
                return;
            }
        }
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
        let error = |error: super::tracefs::TracefsError| error.to_string();
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

    /// Switches on an event, and adds it to `events`.
    fn switch_on(
        &mut self,
        event: &SelectedEvent,
        request: &FtraceRequest,
        events: &mut EventSet,
        failures: &mut Failures,
    ) {
        let SelectedEvent { group, name, is_named } = event;
        let path = format!("{group}/{name}");
        let tracefs = &self.tracefs;
        let id = self.table.look_up(group, name, || tracefs.read(&format!("events/{path}/format")).ok());
        let Some(id) = id else {
            if *is_named {
                failures.unknown.push(path);
            }
            return;
        };
        if request.disables_generic_events && self.table.is_generic(id) {
            failures.failed.push(path);
            return;
        }
        // Events of the tracers have no switch.
        if group != "ftrace" && !self.switched_on.contains_key(&id) {
            let enable = format!("events/{path}/enable");
            if !self.tracefs.read(&enable).is_ok_and(|state| state.starts_with(b"1")) {
                self.add_trigger(group, name);
                let switched = match self.changes.switch_on(&enable) {
                    Ok(()) => Ok(Switch::Enable),
                    Err(_) => {
                        let command = format!("{group}:{name}\n");
                        let switched = self.changes.append("set_event", &command, &format!("!{command}"));
                        switched.map(|()| Switch::SetEvent)
                    }
                };
                match switched {
                    Ok(switch) => drop(self.switched_on.insert(id, switch)),
                    Err(error) => {
                        log::debug!("cannot switch on {path}: {error}");
                        failures.failed.push(path);
                        return;
                    }
                }
            }
        }
        events.insert(id);
    }

    fn switch_off(&mut self, event: u16, switch: Switch) {
        let Some((group, name)) = self.table.name_of(event) else { return };
        match switch {
            Switch::Enable => self.changes.undo(&format!("events/{group}/{name}/enable")),
            Switch::SetEvent => self.changes.undo_command("set_event", &format!("!{group}:{name}\n")),
        }
        if let Some((trigger, undo)) = trigger_of(group, name) {
            self.changes.undo_command(trigger, &undo);
        }
    }

    /// Lets the kernel make a synthetic event.
    fn add_trigger(&mut self, group: &str, name: &str) {
        let synthetic = SYNTHETIC_TRIGGERS.iter().find(|(event, ..)| group == "synthetic" && *event == name);
        let Some((_, file, command)) = synthetic else { return };
        let has_it =
            self.tracefs.read(file).is_ok_and(|triggers| triggers.windows(name.len()).any(|at| at == name.as_bytes()));
        if has_it {
            return;
        }
        if let Err(error) = self.changes.append(file, &format!("{command}\n"), &format!("!{command}\n")) {
            log::warn!("{error}");
        }
    }

    /// Makes the events of a kernel probe.
    fn add_kprobe(
        &mut self,
        probe: &KprobeRequest,
        events: &mut EventSet,
        kprobes: &mut Vec<Kprobe>,
        failures: &mut Failures,
    ) {
        let name = &probe.name;
        let entry_kind = if probe.at_return { KprobeKind::Begin } else { KprobeKind::Instant };
        let return_kind = if probe.at_entry { KprobeKind::End } else { KprobeKind::Instant };
        let entry = (KPROBE_GROUP, format!("p:{KPROBE_GROUP}/{name} {name}\n"), entry_kind);
        let back = (KRETPROBE_GROUP, format!("r{MAX_ACTIVE_CALLS}:{KRETPROBE_GROUP}/{name} {name}\n"), return_kind);
        let parts = [probe.at_entry.then_some(entry), probe.at_return.then_some(back)];
        for (group, command, kind) in parts.into_iter().flatten() {
            let path = format!("{group}/{name}");
            // Another data source may have made it.
            if !self.tracefs.has(&format!("events/{path}")) {
                if let Err(error) = self.changes.append("kprobe_events", &command, &format!("-:{path}\n")) {
                    failures.notes.push(error.to_string());
                    failures.failed.push(path);
                    continue;
                }
                // The kernel gives ids of removed events to new ones.
                self.table.forget(group, name);
            }
            let event = SelectedEvent { group: group.to_owned(), name: name.clone(), is_named: true };
            let mut switched = EventSet::default();
            self.switch_on(&event, &FtraceRequest::default(), &mut switched, failures);
            kprobes.extend(switched.iter().map(|id| Kprobe { id, name: name.clone(), kind }));
            events.extend(&switched);
        }
    }

    /// Lets the kernel record only the system calls that a data source wants.
    fn set_syscall_filter(&mut self, failures: &mut Failures) {
        let tracefs = &self.tracefs;
        for event in ["sys_enter", "sys_exit"] {
            let format = || tracefs.read(&format!("events/raw_syscalls/{event}/format")).ok();
            let wants = |source: &&TracerSource, id: u16| source.events.contains(id);
            let is_used = self.sources.values().any(|source| source.syscalls.is_some());
            let file = format!("events/raw_syscalls/{event}/filter");
            if !is_used && !self.changes.has(&file) {
                continue;
            }
            let Some(id) = self.table.look_up("raw_syscalls", event, format) else { continue };
            let users: Vec<_> = self.sources.values().filter(|source| wants(source, id)).collect();
            let mut numbers: Vec<u16> =
                users.iter().flat_map(|source| source.syscalls.iter().flatten().copied()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let terms: Vec<_> = numbers.iter().map(|number| format!("id == {number}")).collect();
            let filter = terms.join(" || ");
            if numbers.is_empty()
                || users.iter().any(|source| source.syscalls.is_none())
                || filter.len() > MAX_FILTER_BYTES
            {
                // All of them; encoders filter too.
                self.changes.undo(&file);
                continue;
            }
            let is_ours = self.changes.has(&file);
            if !is_ours && self.tracefs.read_line(&file).is_ok_and(|filter| !matches!(filter.as_str(), "none" | "")) {
                failures.notes.push(format!(
                    "{} is a filter of another program: system calls that it leaves out are missing",
                    self.tracefs.path(&file).display()
                ));
                continue;
            }
            if let Err(error) = self.changes.set(&file, &filter, "0") {
                failures.notes.push(error.to_string());
            }
        }
    }

    fn set_buffer_percent(&mut self) {
        let active = self.sources.values().filter(|source| source.is_active);
        let percent = active.map(|source| source.drain_percent).filter(|percent| *percent != 0).min();
        let Some(percent) = percent else { return self.changes.undo("buffer_percent") };
        // Kernels before 5.0 do not have it: then only time counts.
        let Ok(original) = self.tracefs.read_line("buffer_percent") else { return };
        if let Err(error) = self.changes.set("buffer_percent", &percent.to_string(), &original) {
            log::debug!("{error}");
        }
    }

    fn switch_tracing(&mut self, state: &str) {
        let is_so = self.tracefs.read_line("tracing_on").is_ok_and(|now| now == state);
        if is_so {
            return;
        }
        if let Err(error) = self.changes.set("tracing_on", state, &self.tracing_on) {
            log::warn!("{error}");
        }
    }

    fn clear_trace(&self, machine: &Machine) {
        if let Err(error) = self.tracefs.write("trace", "") {
            log::debug!("{error}");
        }
        // The kernel clears only the buffers of CPUs that are online.
        let online = super::tracefs::read(&machine.online_cpus).unwrap_or_default();
        let Some(online) = parse_cpu_list(&online) else { return };
        for cpu in self.tracefs.cpus() {
            if !online.iter().any(|range| range.contains(&cpu)) {
                // It may be unknown to the kernel by now.
                let _ = self.tracefs.write(&format!("per_cpu/cpu{cpu}/trace"), "");
            }
        }
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

/// Returns the numbers of a list such as `0-3,8`. `None` if it is none.
fn parse_cpu_list(list: &[u8]) -> Option<Vec<core::ops::RangeInclusive<u32>>> {
    let list = core::str::from_utf8(list).ok()?.trim();
    list.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect()
}

/// Returns file and command that remove the trigger of a synthetic event.
fn trigger_of(group: &str, name: &str) -> Option<(&'static str, String)> {
    let synthetic = SYNTHETIC_TRIGGERS.iter().find(|(event, ..)| group == "synthetic" && *event == name);
    synthetic.map(|(_, file, command)| (*file, format!("!{command}\n")))
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
