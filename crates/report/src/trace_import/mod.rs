//! From the tables of a trace to the rows of the page.

mod kernel_events;
mod rows;
mod stacks;

use std::collections::HashMap;

use esatto_trace::tables::{ArgValue, Column as _, Row, Table as _, Tables};
use esatto_trace::{Engine, Summary, Symbol};

use self::kernel_events::Choice;
pub(crate) use self::kernel_events::{LeftOut, MAX_KERNEL_EVENTS};
use self::rows::Rows;
use self::stacks::CallSites;
use crate::arguments::{Argument, ArgumentSet};
use crate::report::{LogRow, Report};
use crate::texts::Text;
use crate::timeline::{Span, SpanId};

/// Adds the content of a trace to a report.
pub(crate) fn add(report: &mut Report, engine: &Engine, summary: &Summary) {
    let tables = &engine.tables;
    let choice = Choice::of(tables, MAX_KERNEL_EVENTS);
    let (begin, end) = bounds(tables, &choice).unwrap_or_default();
    report.duration = end.saturating_sub(begin);
    let mut import = Import { tables, begin, texts: HashMap::new(), sets: HashMap::new() };
    let mut rows = Rows::new(report, tables);
    let spans = import.slices(report, &mut rows);
    for flow in 0..tables.flow.rows() {
        let ends = [tables.flow.slice_out[flow], tables.flow.slice_in[flow]];
        if let [Some(from), Some(to)] = ends.map(|slice| spans.get(slice.index()).copied().flatten()) {
            report.timeline.add_flow(from, to);
        }
    }
    import.scheduling(report, &mut rows);
    import.states(report, &mut rows);
    import.track_states(report, &mut rows);
    import.counters(report, &mut rows);
    import.kernel_events(report, &mut rows, choice);
    let sites = CallSites::new(&import, report);
    import.samples(report, &mut rows, &sites);
    import.heaps(report, &mut rows, &sites);
    import.logs(report, &rows);
    facts(report, tables, summary);
}

/// Returns the time of the first content and that of the last one.
fn bounds(tables: &Tables, choice: &Choice) -> Option<(i64, i64)> {
    let mut bounds: Option<(i64, i64)> = None;
    let mut widen = |ts: i64, dur: i64| {
        let end = ts.saturating_add(dur.max(0));
        bounds = Some(bounds.map_or((ts, end), |(begin, last)| (begin.min(ts), last.max(end))));
    };
    let Tables { slice, sched, counter, state, android_logs: logs, ftrace_event: events, .. } = tables;
    (0..slice.rows()).for_each(|row| widen(slice.ts.get(row), slice.dur.get(row)));
    (0..sched.rows()).for_each(|row| widen(sched.ts.get(row), sched.dur.get(row)));
    (0..counter.rows()).for_each(|row| widen(counter.ts.get(row), 0));
    (0..state.rows()).for_each(|row| widen(state.ts.get(row), state.dur.get(row)));
    (0..logs.rows()).for_each(|row| widen(logs.ts.get(row), 0));
    let is_shown = |row: &usize| events.name.get(*row).is_some_and(|name| choice.shown.contains_key(&name));
    (0..events.rows()).filter(is_shown).for_each(|row| widen(events.ts.get(row), 0));
    let heaps = &tables.heap_profile_allocation.ts;
    let samples = tables.perf_sample.ts.iter().chain(&tables.cpu_profile_stack_sample.ts);
    samples.chain(heaps).for_each(|ts| widen(*ts, 0));
    bounds
}

struct Import<'t> {
    tables: &'t Tables,
    begin: i64,
    texts: HashMap<Symbol, Text>,
    sets: HashMap<Row, ArgumentSet>,
}

impl Import<'_> {
    fn text(&mut self, report: &mut Report, symbol: Option<Symbol>) -> Text {
        let Some(symbol) = symbol else { return Text::default() };
        *self.texts.entry(symbol).or_insert_with(|| report.texts.number(self.tables.strings.get(symbol)))
    }

    fn arguments(&mut self, report: &mut Report, set: Option<Row>) -> ArgumentSet {
        let Some(set) = set else { return ArgumentSet::default() };
        *self.sets.entry(set).or_insert_with(|| {
            let strings = &self.tables.strings;
            let arguments = self.tables.args.set(set).iter().map(|arg| {
                let value = match arg.value {
                    ArgValue::Int(value) => Argument::Integer(value),
                    ArgValue::Uint(value) => Argument::Unsigned(value),
                    ArgValue::Bool(value) => Argument::Bool(value),
                    ArgValue::Real(value) => Argument::Double(value),
                    ArgValue::Pointer(value) => Argument::Pointer(value),
                    ArgValue::Json(text) | ArgValue::Text(Some(text)) => Argument::Text(strings.get(text)),
                    _ => Argument::Text(""),
                };
                let name = strings.get(arg.key);
                (name.strip_prefix("debug.").or_else(|| name.strip_prefix("args.")).unwrap_or(name), value)
            });
            report.arguments.add(arguments, &mut report.texts)
        })
    }

    /// Adds all slices and instants; returns their numbers.
    fn slices(&mut self, report: &mut Report, rows: &mut Rows<'_>) -> Vec<Option<SpanId>> {
        let slice = &self.tables.slice;
        let span = |row: usize| {
            let (track, lane) = rows.of_slices(report, slice.track_id[row]);
            let span = Span {
                track,
                lane,
                depth: slice.depth[row].into(),
                begin: slice.ts.get(row).saturating_sub(self.begin),
                duration: duration(slice.dur.get(row)),
                name: self.text(report, slice.name[row]),
                category: self.text(report, slice.category[row]),
                arguments: self.arguments(report, slice.arg_set_id[row]),
                thread: 0,
                stack: 0,
            };
            report.timeline.add_span(span)
        };
        (0..slice.rows()).map(span).collect()
    }

    /// Adds the threads that ran on each processor.
    fn scheduling(&mut self, report: &mut Report, rows: &mut Rows<'_>) {
        let sched = &self.tables.sched;
        for row in 0..sched.rows() {
            let thread = sched.utid.get(row);
            if self.tables.thread.is_idle[thread.index()] {
                continue;
            }
            let duration = duration(sched.dur.get(row));
            report.threads[thread.index()].cpu_time += duration.unwrap_or(0);
            let name = rows.thread_name(report, thread);
            let end_state = sched.end_state.get(row).map(|state| self.tables.strings.get(state));
            let priority = ("priority", Argument::Integer(sched.priority.get(row).into()));
            let end_state = end_state.map(|state| ("state after it", Argument::Text(state_name(state))));
            let Report { arguments, texts, .. } = report;
            let span = Span {
                track: rows.of_processor(&mut report.timeline, sched.cpu.get(row)),
                lane: 0,
                depth: 0,
                begin: sched.ts.get(row).saturating_sub(self.begin),
                duration,
                name: texts.number(&name),
                category: Text::default(),
                arguments: arguments.add([priority].into_iter().chain(end_state), texts),
                thread: number(thread) + 1,
                stack: 0,
            };
            report.timeline.add_span(span);
        }
    }

    /// Adds the states of threads.
    fn states(&mut self, report: &mut Report, rows: &mut Rows<'_>) {
        let states = &self.tables.thread_state;
        for row in 0..states.rows() {
            let thread = states.utid.get(row);
            if self.tables.thread.is_idle[thread.index()] {
                continue;
            }
            let letters = states.state.get(row).map_or("", |state| self.tables.strings.get(state));
            let mut name = state_name(letters).to_owned();
            if states.io_wait.cell(row) == Some(true) && letters.starts_with('D') {
                name.push_str(" (IO)");
            }
            let waker = states.waker_utid.get(row).map(|waker| rows.thread_name(report, waker));
            let function = states.blocked_function.cell(row).map(|function| self.tables.strings.get(function));
            let cpu = states.cpu.get(row).map(|cpu| ("CPU", Argument::Integer(i64::from(cpu % rows::CPUS_OF_MACHINE))));
            let waker = waker.as_deref().map(|waker| ("woken by", Argument::Text(waker)));
            let function = function.map(|function| ("waited in", Argument::Text(function)));
            let track = rows.of_states(report, thread);
            let Report { arguments, texts, .. } = report;
            let span = Span {
                track,
                lane: 0,
                depth: 0,
                begin: states.ts.get(row).saturating_sub(self.begin),
                duration: duration(states.dur.get(row)),
                name: texts.number(&name),
                category: Text::default(),
                arguments: arguments.add([cpu, waker, function].into_iter().flatten(), texts),
                thread: number(thread) + 1,
                stack: 0,
            };
            report.timeline.add_span(span);
        }
    }

    /// Adds the states that programs set on their tracks.
    fn track_states(&mut self, report: &mut Report, rows: &mut Rows<'_>) {
        let states = &self.tables.state;
        for row in 0..states.rows() {
            let span = Span {
                track: rows.of_track_states(report, states.track_id[row]),
                lane: 0,
                depth: 0,
                begin: states.ts.get(row).saturating_sub(self.begin),
                duration: duration(states.dur.get(row)),
                name: self.text(report, Some(states.value[row])),
                category: self.text(report, states.category[row]),
                arguments: self.arguments(report, states.arg_set_id[row]),
                thread: 0,
                stack: 0,
            };
            report.timeline.add_span(span);
        }
    }

    /// Adds a mark for each event of the kernel that no other row shows.
    fn kernel_events(&mut self, report: &mut Report, rows: &mut Rows<'_>, choice: Choice) {
        let events = &self.tables.ftrace_event;
        let mut shown = choice.shown;
        for row in 0..events.rows() {
            let Some(room) = events.name.get(row).and_then(|name| shown.get_mut(&name)).filter(|room| **room > 0)
            else {
                continue;
            };
            *room -= 1;
            let span = Span {
                track: rows.of_kernel_events(&mut report.timeline, events.cpu.get(row)),
                lane: 0,
                depth: 0,
                begin: events.ts.get(row).saturating_sub(self.begin),
                duration: Some(0),
                name: self.text(report, events.name.get(row)),
                category: Text::default(),
                arguments: self.arguments(report, events.arg_set_id[row]),
                thread: number(events.utid.get(row)) + 1,
                stack: 0,
            };
            report.timeline.add_span(span);
        }
        report.left_out_events = choice.left_out;
    }

    fn counters(&mut self, report: &mut Report, rows: &mut Rows<'_>) {
        let counter = &self.tables.counter;
        for row in 0..counter.rows() {
            let track = rows.of_counter(report, counter.track_id[row]);
            let value = match counter.value[row] {
                // The state of a processor that is not idle is -1, without its sign.
                value if value == f64::from(u32::MAX) && rows.is_idle_state(counter.track_id[row]) => -1.0,
                value => value,
            };
            report.timeline.add_point(track, counter.ts.get(row).saturating_sub(self.begin), value);
        }
    }

    fn logs(&mut self, report: &mut Report, rows: &Rows<'_>) {
        let logs = &self.tables.android_logs;
        for row in 0..logs.rows() {
            let thread =
                logs.utid[row].filter(|thread| rows.has_thread(*thread)).map_or(0, |thread| number(thread) + 1);
            let log = LogRow {
                time: logs.ts.get(row).saturating_sub(self.begin),
                level: logs.prio[row],
                thread,
                tag: self.text(report, logs.tag[row]),
                text: self.text(report, logs.msg[row]),
            };
            report.logs.push(log);
        }
    }
}

/// Returns a duration of the tables, where -1 stands for none.
fn duration(dur: i64) -> Option<i64> {
    (dur >= 0).then_some(dur)
}

fn number(row: Row) -> u32 {
    u32::try_from(row.index()).expect("a table has less than 2^32 rows")
}

/// Returns a state of a thread in words. `page/colors.js` knows these.
fn state_name(letters: &str) -> &str {
    match letters {
        "R" => "Runnable",
        "R+" => "Runnable (Preempted)",
        "S" => "Sleeping",
        "I" => "Idle",
        "T" => "Stopped",
        "t" => "Traced",
        "X" | "x" => "Dead",
        "Z" => "Zombie",
        "" => "Unknown",
        other if other.starts_with('D') => "Uninterruptible Sleep",
        other => other,
    }
}

/// Adds the line below the title, and the facts of the page "Trace".
fn facts(report: &mut Report, tables: &Tables, summary: &Summary) {
    let seconds = |ns: i64| format!("{:.3} s", ns as f64 / 1e9);
    let slices = tables.slice.rows();
    report.slices = slices;
    let instants = (0..slices).filter(|&row| tables.slice.dur.get(row) == 0).count();
    let (processes, threads) = (report.processes.len(), report.threads.len());
    let switches = tables.sched.rows();
    let duration = seconds(report.duration);
    let mut add = |name: &str, value: String| report.facts.push((name.to_owned(), value));
    add("Duration", duration.clone());
    add("Slices", (slices - instants).to_string());
    add("Instants", instants.to_string());
    add("Arrows (flows)", tables.flow.rows().to_string());
    add("Values of counters", tables.counter.rows().to_string());
    add("Intervals on processors", switches.to_string());
    let samples = tables.perf_sample.rows() + tables.cpu_profile_stack_sample.rows();
    for (name, number) in [
        ("States of tracks", tables.state.rows()),
        ("Events of the kernel", tables.ftrace_event.rows()),
        ("Samples of call stacks", samples),
        ("Changes of heap profiles", tables.heap_profile_allocation.rows()),
    ] {
        add(name, number.to_string());
    }
    add("Log messages", tables.android_logs.rows().to_string());
    add("Processes", processes.to_string());
    add("Threads", threads.to_string());
    add("Packets", summary.packets.to_string());
    add("Size of the packets", format!("{} bytes", summary.packet_bytes));
    if let Some(uuid) = &summary.uuid {
        add("Identity", uuid.clone());
    }
    if let Some(system) = &summary.system {
        add("System", format!("{} {} ({})", system.sysname, system.release, system.machine));
        add("Service", system.service_version.clone());
    }
    if let Some(config) = &summary.config_text {
        add("Config", config.clone());
    }
    report.summary = format!("{duration}, {slices} slices, {processes} processes, {threads} threads");
    for (number, what) in
        [(switches, "intervals on processors"), (samples, "samples"), (tables.ftrace_event.rows(), "kernel events")]
    {
        if number > 0 {
            report.summary.push_str(&format!(", {number} {what}"));
        }
    }
}
