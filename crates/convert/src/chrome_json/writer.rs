//! Writer of Chrome JSON from the tables of a trace.

use std::collections::HashMap;
use std::io::{self, Write};

use esatto_trace::Symbol;
use esatto_trace::tables::{Row, Table as _, Tables};
use serde_json::{Map, Value, json};

use super::arguments::to_json;
use super::ids::Ids;
use crate::nesting::{Edge, Nesting};
use crate::owners::{Owner, owner_of_track};

/// Processors of one machine in the tables.
const CPUS_OF_MACHINE: u32 = 4096;

/// Content of a trace that the format cannot express.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonLosses {
    /// Arrows from or to slices that already have another one and are not on a thread's own track.
    pub flows: u64,
    /// States of threads.
    pub thread_states: u64,
    /// Samples of call stacks, and allocations.
    pub samples: u64,
}

/// A line of the file, by the row of its table.
#[derive(Debug, Clone, Copy)]
enum Line {
    Slice(u32),
    AsyncBegin(u32),
    AsyncEnd(u32),
    Counter(u32),
    Sched(u32),
    Log(u32),
    FlowOut(u32),
    FlowIn(u32),
}

/// The only flow of a slice that is on no thread's own track.
#[derive(Debug, Clone, Copy)]
struct Bound {
    flow: usize,
    is_out: bool,
}

/// Writes a trace.
///
/// Slices on the own tracks of threads are complete events (`X`), or begins (`B`) if they did not
/// end. Slices on other tracks are nestable async events, with one id for each track. Processors
/// are threads of a process `CPU scheduling`. Counters are counter events.
///
/// # Errors
///
/// Those of the output.
pub fn write_chrome_json(tables: &Tables, out: &mut impl Write) -> io::Result<JsonLosses> {
    let mut writer = Writer { tables, ids: Ids::new(tables), bound: HashMap::new(), out, is_first: true };
    let mut losses = JsonLosses::default();
    let lines = writer.lines(&mut losses);
    losses.thread_states = tables.thread_state.rows() as u64;
    losses.samples = (tables.perf_sample.rows()
        + tables.cpu_profile_stack_sample.rows()
        + tables.heap_profile_allocation.rows()) as u64;
    writer.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"converter\":\"esatto\"},\"traceEvents\":[")?;
    writer.names()?;
    for (_, line) in lines {
        writer.line(line)?;
    }
    writer.out.write_all(b"\n]}\n")?;
    Ok(losses)
}

struct Writer<'t, W> {
    tables: &'t Tables,
    ids: Ids,
    bound: HashMap<usize, Bound>,
    out: &'t mut W,
    is_first: bool,
}

impl<W: Write> Writer<'_, W> {
    /// Returns all lines in the order of time. Lines of the same time keep their order.
    fn lines(&mut self, losses: &mut JsonLosses) -> Vec<(i64, Line)> {
        let tables = self.tables;
        let (slice, flow) = (&tables.slice, &tables.flow);
        let on_thread = |row: usize| matches!(owner_of_track(tables, slice.track_id[row]), Owner::OwnThread(_));
        let mut flows: HashMap<usize, Vec<Line>> = HashMap::new();
        for row in 0..flow.rows() {
            let ends = [flow.slice_out[row].index(), flow.slice_in[row].index()];
            if ends.into_iter().all(on_thread) {
                flows.entry(ends[0]).or_default().push(Line::FlowOut(number(row)));
                flows.entry(ends[1]).or_default().push(Line::FlowIn(number(row)));
            } else if ends[0] != ends[1] && ends.iter().all(|end| !self.bound.contains_key(end)) {
                self.bound.insert(ends[0], Bound { flow: row, is_out: true });
                self.bound.insert(ends[1], Bound { flow: row, is_out: false });
            } else {
                losses.flows += 1;
            }
        }
        let mut lines = Vec::new();
        let mut nesting = Nesting::default();
        let push_edge = |lines: &mut Vec<(i64, Line)>, edge| {
            let (ts, line) = match edge {
                Edge::Begin(row) => (slice.ts.get(row), Line::AsyncBegin(number(row))),
                Edge::End(row) if slice.dur.get(row) <= 0 => return,
                Edge::End(row) => (slice.ts.get(row).saturating_add(slice.dur.get(row)), Line::AsyncEnd(number(row))),
            };
            lines.push((ts, line));
        };
        for row in 0..slice.rows() {
            let ts = slice.ts.get(row);
            if on_thread(row) {
                lines.push((ts, Line::Slice(number(row))));
                lines.extend(flows.remove(&row).into_iter().flatten().map(|line| (ts, line)));
            } else {
                nesting.begin(tables, row, |edge| push_edge(&mut lines, edge));
            }
        }
        nesting.finish(|edge| push_edge(&mut lines, edge));
        let (counter, sched, logs) = (&tables.counter, &tables.sched, &tables.android_logs);
        lines.extend((0..counter.rows()).map(|row| (counter.ts.get(row), Line::Counter(number(row)))));
        let is_busy = |row: &usize| !tables.thread.is_idle[sched.utid.get(*row).index()];
        lines.extend((0..sched.rows()).filter(is_busy).map(|row| (sched.ts.get(row), Line::Sched(number(row)))));
        lines.extend((0..logs.rows()).map(|row| (logs.ts.get(row), Line::Log(number(row)))));
        lines.sort_by_key(|(ts, _)| *ts);
        lines
    }

    fn text(&self, symbol: Option<Symbol>) -> &str {
        symbol.map_or("", |symbol| self.tables.strings.get(symbol))
    }

    fn event(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        serde_json::to_writer(&mut *self.out, event).map_err(io::Error::from)
    }

    /// Writes an event at a time. Its times are not values of JSON's floating point numbers, which
    /// would round them.
    fn timed(&mut self, event: Map<String, Value>, ts: i64, dur: Option<i64>) -> io::Result<()> {
        self.out.write_all(if self.is_first { b"\n" } else { b",\n" })?;
        self.is_first = false;
        write!(self.out, "{{\"ts\":{}", Micros(ts))?;
        if let Some(dur) = dur {
            write!(self.out, ",\"dur\":{}", Micros(dur))?;
        }
        for (key, value) in &event {
            write!(self.out, ",\"{key}\":")?;
            serde_json::to_writer(&mut *self.out, value)?;
        }
        self.out.write_all(b"}")
    }

    /// Writes the names of processes and threads.
    fn names(&mut self) -> io::Result<()> {
        let tables = self.tables;
        let name_of = |pid: u32, tid: u32, kind: &str, key: &str, value: Value| {
            let args = Map::from_iter([(key.to_owned(), value)]);
            json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args })
        };
        for row in 0..tables.process.rows() {
            let row_id = tables.process.pid[row];
            let pid = self.ids.pid(row);
            let name = self.text(tables.process.name[row]);
            if !name.is_empty() {
                let event = name_of(pid, pid, "process_name", "name", name.into());
                self.event(&event)?;
            }
            let machine = tables.process.machine_id[row].map(|machine| machine.index());
            if let Some(machine) = machine {
                let labels = format!("machine {machine}, pid {row_id}");
                self.event(&name_of(pid, pid, "process_labels", "labels", labels.into()))?;
            } else if i64::from(pid) != row_id {
                self.event(&name_of(pid, pid, "process_labels", "labels", format!("pid {row_id}").into()))?;
            }
        }
        for row in 0..tables.thread.rows() {
            let (pid, tid) = self.ids.thread(tables, row);
            let name = self.text(tables.thread.name[row]);
            if !name.is_empty() && !tables.thread.is_idle[row] {
                let event = name_of(pid, tid, "thread_name", "name", name.into());
                self.event(&event)?;
            }
        }
        let special = [
            (self.ids.unknown, "Threads of unknown processes"),
            (self.ids.machine, "Tracks without a process"),
            (self.ids.processors, "CPU scheduling"),
        ];
        let is_used =
            [tables.thread.upid.iter().any(Option::is_none), tables.track.rows() > 0, tables.sched.rows() > 0];
        for ((pid, name), _) in special.into_iter().zip(is_used).filter(|(_, used)| *used) {
            self.event(&name_of(pid, pid, "process_name", "name", name.into()))?;
        }
        let mut cpus: Vec<u32> = tables.sched.cpu.iter().collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let name = match cpu / CPUS_OF_MACHINE {
                0 => format!("CPU {cpu}"),
                machine => format!("CPU {} of machine {machine}", cpu % CPUS_OF_MACHINE),
            };
            self.event(&name_of(self.ids.processors, cpu, "thread_name", "name", name.into()))?;
        }
        Ok(())
    }

    fn line(&mut self, line: Line) -> io::Result<()> {
        match line {
            Line::Slice(row) => self.slice(row as usize),
            Line::AsyncBegin(row) => self.async_slice(row as usize, false),
            Line::AsyncEnd(row) => self.async_slice(row as usize, true),
            Line::Counter(row) => self.counter(row as usize),
            Line::Sched(row) => self.sched(row as usize),
            Line::Log(row) => self.log(row as usize),
            Line::FlowOut(row) => self.flow(row as usize, true),
            Line::FlowIn(row) => self.flow(row as usize, false),
        }
    }

    /// Returns the numbers of process and thread of a track.
    fn owner(&self, track: Row) -> (u32, u32) {
        match owner_of_track(self.tables, track) {
            Owner::OwnThread(thread) | Owner::Thread(thread) => self.ids.thread(self.tables, thread.index()),
            Owner::Process(process) => (self.ids.pid(process.index()), self.ids.pid(process.index())),
            Owner::Machine => (self.ids.machine, self.ids.machine),
        }
    }

    /// Makes the part that all events of slices have.
    fn slice_event(&self, row: usize, phase: &str) -> Map<String, Value> {
        let slice = &self.tables.slice;
        let (pid, tid) = self.owner(slice.track_id[row]);
        let mut event = Map::from_iter([
            ("ph".to_owned(), phase.into()),
            ("pid".to_owned(), pid.into()),
            ("tid".to_owned(), tid.into()),
        ]);
        let texts = [("name", slice.name[row]), ("cat", slice.category[row])];
        for (key, symbol) in texts {
            // Readers want a name.
            if symbol.is_some() || key == "name" {
                event.insert(key.to_owned(), self.text(symbol).into());
            }
        }
        event
    }

    fn args(&self, row: usize) -> Map<String, Value> {
        let tables = self.tables;
        tables.slice.arg_set_id[row].map(|set| to_json(tables.args.set(set), &tables.strings)).unwrap_or_default()
    }

    fn bind(&self, row: usize, event: &mut Map<String, Value>) {
        if let Some(bound) = self.bound.get(&row) {
            event.insert("bind_id".to_owned(), flow_id(bound.flow).into());
            event.insert(if bound.is_out { "flow_out" } else { "flow_in" }.to_owned(), true.into());
        }
    }

    fn slice(&mut self, row: usize) -> io::Result<()> {
        let slice = &self.tables.slice;
        let (ts, dur) = (slice.ts.get(row), slice.dur.get(row));
        let phase = match dur {
            0 => "i",
            dur if dur < 0 => "B",
            _ => "X",
        };
        let mut event = self.slice_event(row, phase);
        if dur == 0 {
            event.insert("s".to_owned(), "t".into());
        }
        let thread_times = [("tts", cell(&slice.thread_ts, row)), ("tdur", cell(&slice.thread_dur, row))];
        for (key, ns) in thread_times {
            if let Some(ns) = ns {
                event.insert(key.to_owned(), micros(ns));
            }
        }
        let args = self.args(row);
        if !args.is_empty() {
            event.insert("args".to_owned(), args.into());
        }
        self.bind(row, &mut event);
        self.timed(event, ts, (dur > 0).then_some(dur))
    }

    fn async_slice(&mut self, row: usize, is_end: bool) -> io::Result<()> {
        let tables = self.tables;
        let slice = &tables.slice;
        let (ts, dur) = (slice.ts.get(row), slice.dur.get(row));
        let phase = match (is_end, dur) {
            (true, _) => "e",
            (false, 0) => "n",
            _ => "b",
        };
        let mut event = self.slice_event(row, phase);
        // Readers nest only events of one category and id.
        let outermost = core::iter::successors(Some(row), |&row| slice.parent_id[row].map(Row::index)).last();
        let category = slice.category[outermost.unwrap_or(row)];
        event.insert("cat".to_owned(), self.text(category).into());
        event.insert("id2".to_owned(), json!({ "local": format!("{:#x}", slice.track_id[row].index() + 1) }));
        if !is_end {
            let mut args = self.args(row);
            if slice.category[row] != category {
                args.insert("category".to_owned(), self.text(slice.category[row]).into());
            }
            if !args.is_empty() {
                event.insert("args".to_owned(), args.into());
            }
            self.bind(row, &mut event);
        }
        let end = ts.saturating_add(dur.max(0));
        self.timed(event, if is_end { end } else { ts }, None)
    }

    fn counter(&mut self, row: usize) -> io::Result<()> {
        let tables = self.tables;
        let track = tables.counter.track_id[row];
        let index = track.index();
        let (pid, tid) = self.owner(track);
        let mut name = self.text(tables.track.name[index]).to_owned();
        if let Some(cpu) = tables.track.cpu[index] {
            name += &format!(" CPU {}", cpu % CPUS_OF_MACHINE);
        }
        // Counters belong to processes.
        if tables.track.utid[index].is_some() {
            name += &format!(" of thread {tid}");
        }
        let value = tables.counter.value[row];
        let value = if value.is_finite() { Value::from(value) } else { value.to_string().into() };
        let event = [
            ("ph", "C".into()),
            ("pid", pid.into()),
            ("tid", tid.into()),
            ("name", name.into()),
            ("args", json!({ "value": value })),
        ];
        self.timed(map(event), tables.counter.ts.get(row), None)
    }

    fn sched(&mut self, row: usize) -> io::Result<()> {
        let tables = self.tables;
        let sched = &tables.sched;
        let thread = sched.utid.get(row);
        let (pid, tid) = self.ids.thread(tables, thread.index());
        let name = match self.text(tables.thread.name[thread.index()]) {
            "" => format!("Thread {tid}"),
            name => name.to_owned(),
        };
        let dur = sched.dur.get(row);
        let args = json!({
            "tid": tid,
            "pid": pid,
            "priority": sched.priority.get(row),
            "end_state": self.text(sched.end_state.get(row)),
        });
        let event = [
            ("ph", if dur < 0 { "B" } else { "X" }.into()),
            ("pid", self.ids.processors.into()),
            ("tid", sched.cpu.get(row).into()),
            ("cat", "sched".into()),
            ("name", name.into()),
            ("args", args),
        ];
        self.timed(map(event), sched.ts.get(row), (dur >= 0).then_some(dur))
    }

    fn log(&mut self, row: usize) -> io::Result<()> {
        let tables = self.tables;
        let logs = &tables.android_logs;
        let (pid, tid) = logs.utid[row]
            .map_or((self.ids.machine, self.ids.machine), |thread| self.ids.thread(tables, thread.index()));
        let event = [
            ("ph", "i".into()),
            ("s", "t".into()),
            ("pid", pid.into()),
            ("tid", tid.into()),
            ("cat", "log".into()),
            ("name", self.text(logs.msg[row]).into()),
            ("args", json!({ "tag": self.text(logs.tag[row]), "priority": logs.prio[row] })),
        ];
        self.timed(map(event), logs.ts.get(row), None)
    }

    fn flow(&mut self, row: usize, is_out: bool) -> io::Result<()> {
        let tables = self.tables;
        let slice = if is_out { tables.flow.slice_out[row] } else { tables.flow.slice_in[row] }.index();
        let (pid, tid) = self.owner(tables.slice.track_id[slice]);
        let event = [
            ("ph", if is_out { "s" } else { "f" }.into()),
            ("pid", pid.into()),
            ("tid", tid.into()),
            ("cat", "flow".into()),
            ("name", "flow".into()),
            ("id", flow_id(row).into()),
        ];
        let mut event = map(event);
        if !is_out {
            event.insert("bp".to_owned(), "e".into());
        }
        self.timed(event, tables.slice.ts.get(slice), None)
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn flow_id(row: usize) -> String {
    format!("{:#x}", row + 1)
}

fn number(row: usize) -> u32 {
    u32::try_from(row).expect("a table has less than 2^32 rows")
}

fn cell(column: &esatto_trace::tables::Sparse<i64>, row: usize) -> Option<i64> {
    esatto_trace::tables::Column::cell(column, row)
}

/// Nanoseconds as microseconds with three digits after the point.
struct Micros(i64);

impl core::fmt::Display for Micros {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let ns = self.0.unsigned_abs();
        match ns % 1000 {
            0 => write!(f, "{sign}{}", ns / 1000),
            rest => write!(f, "{sign}{}.{rest:03}", ns / 1000),
        }
    }
}

fn micros(ns: i64) -> Value {
    if ns % 1000 == 0 { (ns / 1000).into() } else { (ns as f64 / 1000.0).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let text = [0, 5, 1_000, 1_500, -1, i64::MAX].map(|ns| Micros(ns).to_string()).join(" ");
        assert_eq!(text, "0 0.005 1 1.500 -0.001 9223372036854775.807");
    }
}
