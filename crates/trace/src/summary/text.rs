//! The summary as text.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use super::losses::{END_MISSING, EndMissing, FINAL_FLUSH_FAILED, FLUSHES_FAILED, LOST_EVENTS, STOP_FAILED};
use super::machine_column::MachineColumn;
use super::table::Table;
use super::{SequenceSummary, Summary, ThreadSummary};
use crate::clock_conversion::clock_name;
use crate::escape::Line;
use crate::machines::HOST;
use crate::problems::UNMATCHED_ENDS;
use crate::service_report::{
    ENDED_DATA_SOURCES, READ_COMPLETED, RELAY_DISCONNECTED, SHARED_MACHINE_ID, SLOW_STOPPING, ServiceEvent, UNREACHED,
};

/// Advice for programs whose first events are missing.
const HOW_TO_RECORD_THE_START: &str = "
  Programs run until the service enables them, and their events of this time are missing. To record
  them, set ESATTO_WAIT_MS=5000 for the program, or call `Tracing::wait_until_enabled` or
  `StartupTracing` in it. `esatto record -- COMMAND` sets the variable.
";

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machines = MachineColumn::new(self);
        self.overview(f)?;
        if !self.parts.is_empty() {
            write!(f, "{}", self.part_table())?;
        }
        write!(f, "{}", self.packet_table())?;
        write!(f, "{}", self.machine_table(&machines))?;
        write!(f, "{}", self.sequence_table(&machines))?;
        write!(f, "{}", self.process_table(&machines))?;
        self.start_table(&machines, f)?;
        write!(f, "{}", self.category_table())?;
        write!(f, "{}", self.slice_table())?;
        write!(f, "{}", self.track_table(&machines))?;
        write!(f, "{}", self.counter_table(&machines))?;
        write!(f, "{}", self.buffer_table())?;
        write!(f, "{}", self.clock_table(&machines))?;
        write!(f, "{}", self.event_table(&machines))?;
        if let Some(text) = &self.config_text {
            writeln!(f, "\nConfig")?;
            for line in text.split('\n') {
                writeln!(f, "  {}", Line(line))?;
            }
        }
        write!(f, "{}", self.data_source_problem_table())?;
        write!(f, "{}", self.problem_table())?;
        self.loss_lines(f)
    }
}

impl Summary {
    fn overview(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.errors {
            writeln!(f, "ERROR     {}", Line(error))?;
        }
        if self.more_errors > 0 {
            writeln!(f, "ERROR     … and {} more errors", self.more_errors)?;
        }
        if !self.errors.is_empty() {
            let good = self.good_packets();
            match (
                self.end_of_reading().filter(|_| self.parts.is_empty()),
                self.unread_bytes.filter(|bytes| *bytes > 0),
            ) {
                (Some(end), Some(unread)) => {
                    let offset = end.offset();
                    writeln!(f, "Readable  {good} packets, up to byte {offset}; {unread} bytes after it are not read")?;
                }
                (Some(end), None) => writeln!(f, "Readable  {good} packets, up to byte {}", end.offset())?,
                (None, _) => writeln!(f, "Readable  {good} packets")?,
            }
        }
        let in_compressed = match self.compressed_packets {
            0 => String::new(),
            n => format!(", in {n} compressed ones"),
        };
        let gzipped = if self.gzipped { ", gzipped" } else { "" };
        let (packets, sequences) = (self.packets, self.sequences.len());
        let size = bytes(self.packet_bytes);
        writeln!(f, "Packets   {packets} ({size}{gzipped}{in_compressed}) in {sequences} sequences")?;
        if let Some(duration) = self.duration_ns() {
            writeln!(f, "Duration  {}", time(duration))?;
        }
        let states = match self.states {
            0 => String::new(),
            n => format!(", {n} changes of state"),
        };
        writeln!(
            f,
            "Contents  {} processes, {} threads, {} slices ({} of them instants), {} counter values, {} flows, {} annotations{states}",
            self.processes.len(),
            self.thread_count(),
            self.slices.count,
            self.slices.instants,
            self.counter_values(),
            self.flows,
            self.annotations,
        )?;
        match self.end_missing() {
            None => {}
            Some(EndMissing::Full { limit }) => {
                writeln!(f, "End       missing: the file has reached max_file_size_bytes ({limit}) of its config")?;
            }
            Some(EndMissing::BeingWritten) => {
                writeln!(f, "End       missing: the recording still runs, and its file is not complete yet")?;
            }
            Some(EndMissing::Unknown) => {
                let why = "the program or the service that wrote the file was killed, the disk was full, or the \
                           recording still runs";
                writeln!(f, "End       missing: {why}; the last events may be lost")?;
            }
        }
        if self.ftrace_events > 0 {
            writeln!(f, "Kernel    {} events", self.ftrace_events)?;
        }
        for (id, names) in self.shared_machine_ids() {
            let names = names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" and ");
            let why = "their machines are shown as one; if they are two, start each relay with another";
            writeln!(f, "Machines  relays {} have one machine id, {id}: {why} ESATTO_MACHINE_ID_HINT", Line(names))?;
        }
        if let Some(uuid) = &self.uuid {
            writeln!(f, "UUID      {uuid}")?;
        }
        if let Some(system) = &self.system {
            writeln!(f, "Service   {}", Line(&system.service_version))?;
            // A service inside a program tells nothing of the system.
            let names = [&system.sysname, &system.release, &system.machine].map(String::as_str);
            let cpus = system.num_cpus.map(|n| format!("{n} CPUs"));
            let ram = system.ram_bytes.map(|n| format!("{} RAM", bytes(n)));
            let mut facts: Vec<String> = vec![names.join(" ").trim().to_owned()];
            facts.extend(cpus.into_iter().chain(ram));
            facts.retain(|fact| !fact.is_empty());
            if !facts.is_empty() {
                writeln!(f, "System    {}", Line(facts.join(", ")))?;
            }
        }
        Ok(())
    }

    /// Returns the ids of machines that two relays have, and the names of the relays.
    fn shared_machine_ids(&self) -> BTreeMap<u32, &[String]> {
        let events = self.service_events.iter().filter(|event| event.name == SHARED_MACHINE_ID);
        events.filter_map(|event| Some((event.machine_id?, &event.machine_names[..]))).collect()
    }

    fn packet_table(&self) -> Table {
        let mut table = Table::new("Packets by type", &["type", "packets#", "bytes#"]);
        let mut types: Vec<_> = self.packets_by_type.iter().collect();
        types.sort_by_key(|(_, entry)| core::cmp::Reverse(entry.bytes));
        for (name, entry) in types {
            table.row(|| [name.clone(), entry.packets.to_string(), entry.bytes.to_string()]);
        }
        table
    }

    /// Shows the machines, if there are several.
    fn machine_table(&self, machines: &MachineColumn) -> Table {
        let headers = ["id#", "system", "clocks ahead by#", "packets#", ""];
        let mut table = Table::new(format!("Machines ({})", self.machines.len()), &machines.headers(&headers));
        if self.machines.len() < 2 {
            return table;
        }
        let shared = self.shared_machine_ids();
        let mut packets: BTreeMap<u32, u64> = BTreeMap::new();
        for sequence in &self.sequences {
            *packets.entry(sequence.machine_id).or_default() += sequence.packets;
        }
        for machine in &self.machines {
            table.row(|| {
                let system = machine.system.as_ref();
                let system = system.map(|system| format!("{} {}", system.sysname, system.release));
                let ahead = machine.ahead_ns.filter(|_| machine.id != HOST);
                let shared = shared.get(&machine.id).map(|names| format!("one id for {}", names.join(" and ")));
                let clock = "no RemoteClockSync: times of its own clock".to_owned();
                let clock = machine.ahead_ns.is_none().then_some(clock);
                let remark = shared.into_iter().chain(clock).collect::<Vec<_>>().join("; ");
                let cells = [
                    machine.id.to_string(),
                    system.unwrap_or_default(),
                    ahead.map_or_else(String::new, time),
                    packets.get(&machine.id).copied().unwrap_or(0).to_string(),
                    remark,
                ];
                machines.cells(machine.id, cells)
            });
        }
        table
    }

    fn sequence_table(&self, machines: &MachineColumn) -> Table {
        let headers = ["id#", "pid#", "uid#", "packets#", "bytes#", "clears#", "skipped#", "losses#", "remarks"];
        let mut table = Table::new("Sequences", &machines.headers(&headers));
        for sequence in &self.sequences {
            let optional = |value: Option<i32>| value.map_or_else(String::new, |value| value.to_string());
            table.row(|| {
                machines.cells(
                    sequence.machine_id,
                    [
                        sequence.id.to_string(),
                        optional(sequence.pid),
                        optional(sequence.uid),
                        sequence.packets.to_string(),
                        sequence.bytes.to_string(),
                        sequence.state_clears.to_string(),
                        sequence.skipped_packets.to_string(),
                        sequence.losses.to_string(),
                        remarks(sequence),
                    ],
                )
            });
        }
        table
    }

    fn process_table(&self, machines: &MachineColumn) -> Table {
        let headers = machines.headers(&["pid#", "tid#", "name", "slices#"]);
        let mut table = Table::new("Processes and threads", &headers);
        for process in &self.processes {
            let name = || process.name.clone().unwrap_or_default();
            table.row(|| {
                let cells = [process.pid.to_string(), String::new(), name(), process.slices.to_string()];
                machines.cells(process.machine_id, cells)
            });
            // A main thread without a name and without slices is left out.
            let telling = |t: &&ThreadSummary| t.tid != process.pid || t.name.is_some() || t.slices > 0;
            for thread in process.threads.iter().filter(telling) {
                let name = || format!("  {}", thread.name.as_deref().unwrap_or_default());
                table.row(|| {
                    machines.continued([String::new(), thread.tid.to_string(), name(), thread.slices.to_string()])
                });
            }
        }
        table
    }

    /// Shows when each program connected and began to be recorded, from the trace's start on.
    fn start_table(&self, machines: &MachineColumn, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = ["pid#", "name", "connected#", "enabled#", "first packet#", ""];
        let mut table = Table::new("Starts of programs", &machines.headers(&headers));
        let known = self.processes.iter().filter(|process| process.first_packet_ns.is_some());
        let start = self.trace_start_ns();
        for process in known {
            let connected = || match (process.connected_ns, start) {
                (Some(connected), Some(start)) if connected < start => "before".to_owned(),
                (connected, _) => since(start, connected),
            };
            let missing = process.missing_ns.filter(|&ns| ns > 0);
            table.row(|| {
                machines.cells(
                    process.machine_id,
                    [
                        process.pid.to_string(),
                        without_folder(process.name.as_deref().unwrap_or_default()).to_owned(),
                        connected(),
                        since(start, process.enabled_ns),
                        since(start, process.first_packet_ns),
                        missing.map_or_else(String::new, |ns| format!("its first {} are missing", time(ns))),
                    ],
                )
            });
        }
        write!(f, "{table}")?;
        if self.processes.iter().any(|process| process.missing_ns.is_some_and(|ns| ns > 0)) {
            f.write_str(HOW_TO_RECORD_THE_START)?;
        }
        Ok(())
    }

    fn category_table(&self) -> Table {
        let mut table = Table::new("Categories", &["name", "slices#"]);
        let mut categories: Vec<_> = self.categories.iter().collect();
        categories.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
        for (name, count) in categories {
            table.row(|| [name.clone(), count.to_string()]);
        }
        table
    }

    fn slice_table(&self) -> Table {
        let slices = &self.slices;
        let unfinished = match slices.unfinished {
            0 => String::new(),
            n => format!(", {n} unfinished"),
        };
        let ends = match self.problems.get(UNMATCHED_ENDS) {
            None => String::new(),
            Some(1) => ", 1 end without begin".to_owned(),
            Some(n) => format!(", {n} ends without begin"),
        };
        let title = format!("Slices (nested up to {} deep{unfinished}{ends})", slices.max_depth);
        let headers = ["name", "track", "count#", "instants#", "total#", "shortest#", "longest#"];
        let mut table = Table::new(title, &headers);
        for entry in &slices.by_name {
            table.row(|| {
                let durations = [entry.total_ns, entry.min_ns, entry.max_ns];
                let has_durations = entry.count > entry.instants + entry.unfinished;
                let [mut total, min, max] = durations.map(|ns| if has_durations { time(ns) } else { String::new() });
                if !has_durations && entry.unfinished > 0 {
                    "unfinished".clone_into(&mut total);
                }
                let name = entry.name.clone().unwrap_or_else(|| "(no name)".to_owned());
                let track = entry.track_type.name().to_owned();
                [name, track, entry.count.to_string(), entry.instants.to_string(), total, min, max]
            });
        }
        table
    }

    fn track_table(&self, machines: &MachineColumn) -> Table {
        let title = format!("Tracks ({}, {} with slices)", self.track_count(), self.tracks_with_slices());
        let headers = ["kind", "name", "process", "thread", "lanes#", "slices#", "values#"];
        let mut table = Table::new(title, &machines.headers(&headers));
        for track in &self.tracks {
            table.row(|| {
                machines.cells(
                    track.machine_id,
                    [
                        track.track_type.name().to_owned(),
                        track.name.clone().unwrap_or_default(),
                        numbered(track.pid, track.process_name.as_deref()),
                        numbered(track.tid, track.thread_name.as_deref()),
                        track.lanes.to_string(),
                        track.slices.to_string(),
                        track.counter_values.to_string(),
                    ],
                )
            });
        }
        table
    }

    fn counter_table(&self, machines: &MachineColumn) -> Table {
        let title = format!("Counters ({}, {} values)", self.counters.len(), self.counter_values());
        let mut table = Table::new(title, &machines.headers(&["name", "of", "values#", "min#", "max#", "last#"]));
        for counter in &self.counters {
            table.row(|| {
                let [min, max, last] = [counter.min, counter.max, counter.last].map(number);
                machines.cells(
                    counter.machine_id,
                    [counter.name.clone(), counter.scope.clone(), counter.values.to_string(), min, max, last],
                )
            });
        }
        table
    }

    fn buffer_table(&self) -> Table {
        let headers = ["buffer#", "size#", "written#", "overwritten#", "read#", "chunks#", "patches#", "wraps#"];
        let mut table = Table::new("Buffers", &headers);
        for (index, buffer) in self.stats.iter().flat_map(|stats| &stats.buffers).enumerate() {
            let get = |field: &str| buffer.get(field).copied().unwrap_or(0);
            table.row(|| {
                [
                    index.to_string(),
                    bytes(get("buffer_size")),
                    bytes(get("bytes_written")),
                    bytes(get("bytes_overwritten")),
                    bytes(get("bytes_read")),
                    get("chunks_written").to_string(),
                    get("patches_succeeded").to_string(),
                    get("write_wrap_count").to_string(),
                ]
            });
        }
        table
    }

    fn clock_table(&self, machines: &MachineColumn) -> Table {
        let title =
            format!("Clocks ({} snapshots, {} clocks of sequences)", self.clock_snapshots, self.sequence_clocks);
        let mut table = Table::new(title, &machines.headers(&["id#", "name", "snapshots#", "first#", "last#", ""]));
        for clock in &self.clocks {
            table.row(|| {
                let name = clock_name(clock.id).unwrap_or("custom").to_owned();
                let is_trace_clock = clock.machine_id == HOST && clock.id == self.trace_clock;
                let remark = if is_trace_clock { "trace clock" } else { "" };
                let snapshots = clock.snapshots.to_string();
                let (first, last) = (clock.first.to_string(), clock.last.to_string());
                machines
                    .cells(clock.machine_id, [clock.id.to_string(), name, snapshots, first, last, remark.to_owned()])
            });
        }
        table
    }

    fn event_table(&self, machines: &MachineColumn) -> Table {
        let mut table = Table::new("Recording", &["at#", "event"]);
        let start = self.trace_start_ns();
        let at = |ts: Option<i64>| since(start, ts);
        let is_read = |event: &ServiceEvent| event.name == READ_COMPLETED;
        let mut reads_left = self.service_events.iter().filter(|event| is_read(event)).count();
        let reads = match reads_left {
            0 | 1 => String::new(),
            reads => format!(", {reads} times until here"),
        };
        for event in &self.service_events {
            // A session that is read while it records has many of them.
            if is_read(event) {
                reads_left -= 1;
                if reads_left == 0 {
                    table.row(|| [at(event.ts_ns), format!("{READ_COMPLETED}{reads}")]);
                }
                continue;
            }
            let cells = || {
                let machine = event.machine_id.map(|id| format!(" of machine {}", machines.label(id)));
                [at(event.ts_ns), event.name.clone() + &machine.unwrap_or_default()]
            };
            match event.is_failure() {
                true => table.important_row(cells),
                false => table.row(cells),
            }
            for source in &event.data_sources {
                table.important_row(|| [String::new(), format!("  {} of {}", source.name, source.producer)]);
            }
        }
        for trigger in &self.triggers {
            table.row(|| [at(trigger.ts_ns), format!("trigger {}", trigger.name)]);
        }
        table
    }

    fn data_source_problem_table(&self) -> Table {
        let mut table = Table::new("Data sources that did not record everything", &["data source", "reason"]);
        for problem in &self.data_source_problems {
            table.important_row(|| [problem.data_source.clone(), problem.reason.clone()]);
        }
        for (event, reason) in self.ftrace_report.missing_events() {
            table.row(|| ["linux.ftrace".to_owned(), format!("{event}: {reason}")]);
        }
        table
    }

    fn problem_table(&self) -> Table {
        let mut table = Table::new("Rules of the format that this trace breaks", &["rule", "times#"]);
        // The title of the slices tells the ends without a begin: a recording can begin in a slice.
        let is_told = |rule: &str| rule == UNMATCHED_ENDS && self.unmatched_ends().is_some();
        for (rule, number) in self.problems.iter().filter(|(rule, _)| !is_told(rule)) {
            table.row(|| [(*rule).to_owned(), number.to_string()]);
        }
        table
    }

    /// Names the producers in the last event of this name: those that did not answer.
    fn silent_in(&self, name: &str) -> String {
        let events = self.service_events.iter().rev();
        let last = events.filter(|event| event.name == name).find(|e| !e.data_sources.is_empty());
        let mut producers: Vec<&str> =
            last.iter().flat_map(|event| &event.data_sources).map(|source| source.producer.as_str()).collect();
        producers.dedup();
        if producers.is_empty() { String::new() } else { format!("no answer from {}", producers.join(", ")) }
    }

    /// Names the programs that disconnected while they recorded their machine.
    fn ended_producers(&self) -> String {
        let ends = self.service_events.iter().filter(|event| event.name == ENDED_DATA_SOURCES);
        let producers = ends.flat_map(|event| &event.data_sources).map(|source| source.producer.as_str());
        let producers: BTreeSet<&str> = producers.collect();
        format!("{} ended early", producers.into_iter().collect::<Vec<_>>().join(", "))
    }

    fn loss_lines(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new("Losses", &["where", "what", "number#", ""]);
        for loss in self.losses() {
            let remark = || match loss.what.as_str() {
                // The line `End` tells the reason.
                END_MISSING => String::new(),
                _ if loss.expected => "normal for a ring buffer".to_owned(),
                FLUSHES_FAILED | FINAL_FLUSH_FAILED => self.silent_in("last_flush_slow_data_sources"),
                STOP_FAILED => self.silent_in(SLOW_STOPPING),
                ENDED_DATA_SOURCES => self.ended_producers(),
                UNREACHED => "it ended before the recording reached it".to_owned(),
                RELAY_DISCONNECTED => "the last events of its programs may be missing".to_owned(),
                LOST_EVENTS => "buffer full: raise buffer_size_kb, shorten drain_period_ms".to_owned(),
                _ => String::new(),
            };
            table.row(|| [loss.place.clone(), loss.what.clone(), loss.number.to_string(), remark()]);
        }
        let of_ring = self.skipped_of_ring();
        let lost = self.skipped_packets.saturating_sub(of_ring);
        let remark = match self.begins_in_another_file() {
            true => "the state that they need was read before",
            false => "the state that they need was lost",
        };
        for (number, remark) in [(lost, remark), (of_ring, "the oldest ones: normal for a ring buffer")] {
            if number > 0 {
                table.row(|| ["trace".to_owned(), "packets skipped".to_owned(), number.to_string(), remark.to_owned()]);
            }
        }
        let shown = table.to_string();
        match shown.is_empty() {
            true if self.errors.is_empty() => writeln!(f, "\nLosses    none"),
            true => writeln!(f, "\nLosses    none in the part that can be read"),
            false => f.write_str(&shown),
        }
    }
}

fn remarks(sequence: &SequenceSummary) -> String {
    let mut remarks: Vec<String> = Vec::new();
    match sequence.id {
        0 => remarks.push("packets without sequence".to_owned()),
        1 => remarks.push("the service".to_owned()),
        _ if !sequence.begins => remarks.push("beginning missing".to_owned()),
        _ => {}
    }
    remarks.extend(sequence.loss_causes.iter().map(|(cause, number)| format!("{cause} {number}")));
    remarks.join(", ")
}

/// Returns the file name of a program that is named by its path.
fn without_folder(name: &str) -> &str {
    match name.rsplit_once('/') {
        Some((_, file)) if name.starts_with('/') && !file.is_empty() => file,
        _ => name,
    }
}

/// Formats the number and the name of a process or thread.
fn numbered(number: Option<i64>, name: Option<&str>) -> String {
    match (number, name) {
        (Some(number), Some(name)) => format!("{number} {}", without_folder(name)),
        (Some(number), None) => number.to_string(),
        (None, _) => String::new(),
    }
}

/// Formats the time since the trace's start.
fn since(start: Option<i64>, ts: Option<i64>) -> String {
    ts.zip(start).map_or_else(String::new, |(ts, start)| time(ts.saturating_sub(start)))
}

/// Formats a duration with a suitable unit.
fn time(ns: i64) -> String {
    let magnitude = ns.unsigned_abs();
    let (value, unit) = match magnitude {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (ns as f64 / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{value:.3} {unit}")
}

fn bytes(count: u64) -> String {
    let (value, unit) = match count {
        0..1024 => return format!("{count} B"),
        1024..0x10_0000 => (count as f64 / 1024.0, "KiB"),
        0x10_0000..0x4000_0000 => (count as f64 / f64::from(1 << 20), "MiB"),
        _ => (count as f64 / f64::from(1 << 30), "GiB"),
    };
    format!("{value:.1} {unit}")
}

/// Formats a number without a fraction if it has none.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value:.0}") } else { format!("{value:.3}") }
}
