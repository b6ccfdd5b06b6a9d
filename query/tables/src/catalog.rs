//! Definitions of the tables: names, columns, keys and rows, in terms of the engine's tables.

use std::sync::OnceLock;

use esatto_trace::tables::{ColumnInfo, Kind, Tables};

/// A table of a trace.
#[derive(Debug)]
#[non_exhaustive]
pub struct TableDef {
    /// Its name.
    pub name: &'static str,
    /// Its content, in a sentence.
    pub doc: String,
    /// Its columns.
    pub columns: Vec<ColumnDef>,
    /// The table of the engine that has the rows.
    pub(crate) base: &'static str,
    /// Position of that table among those of the engine.
    pub(crate) base_index: usize,
    pub(crate) filter: Option<Filter>,
}

/// Decides for a row of the engine's table.
pub(crate) type Filter = fn(&Tables, usize) -> bool;

/// A column of a table.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnDef {
    /// Its name.
    pub name: &'static str,
    /// Its meaning, in a sentence.
    pub doc: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// True if a row may have no value.
    pub is_nullable: bool,
    /// True if no two rows have the same value.
    pub is_key: bool,
    /// The table and the column that its values refer to.
    pub refers_to: Option<(&'static str, &'static str)>,
    pub(crate) source: Source,
}

/// Origin of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The position of the row.
    Id,
    /// A column of the engine.
    Engine(usize),
    /// As that, as the id of a processor.
    CpuId(usize),
    /// The sum of two columns of the engine.
    Sum(usize, usize),
}

impl TableDef {
    /// Returns whether it is empty, or lacks rows, if a trace is read without kernel events: see
    /// [`ReadOptions::has_kernel_events`](crate::ReadOptions::has_kernel_events).
    pub fn has_kernel_events(&self) -> bool {
        ["ftrace_event", "args"].contains(&self.base)
    }

    /// Returns the position of a column.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Returns the definitions of all tables, in alphabetical order.
pub fn tables() -> &'static [TableDef] {
    static TABLES: OnceLock<Vec<TableDef>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let engine = Tables::default();
        let mut tables: Vec<TableDef> = PLANS.iter().map(|plan| plan.define(&engine)).collect();
        tables.sort_by_key(|table| table.name);
        tables
    })
}

/// Returns the definition of a table. The case of the name does not matter.
pub fn table(name: &str) -> Option<&'static TableDef> {
    tables().iter().find(|table| table.name.eq_ignore_ascii_case(name))
}

/// A table as it is written below: its name, the engine's table, and its columns. A column is its
/// name, or `name=origin` if the engine calls it differently.
struct Plan {
    name: &'static str,
    base: &'static str,
    /// Added to the engine's description.
    doc: Option<&'static str>,
    columns: &'static str,
    filter: Option<Filter>,
}

const fn plan(name: &'static str, base: &'static str, columns: &'static str) -> Plan {
    Plan { name, base, doc: None, columns, filter: None }
}

const fn part(
    name: &'static str,
    doc: &'static str,
    base: &'static str,
    columns: &'static str,
    filter: Filter,
) -> Plan {
    Plan { name, base, doc: Some(doc), columns, filter: Some(filter) }
}

const fn alias(name: &'static str, doc: &'static str, base: &'static str, columns: &'static str) -> Plan {
    Plan { name, base, doc: Some(doc), columns, filter: None }
}

const SLICE: &str =
    "id ts dur track_id category name depth parent_id arg_set_id thread_ts thread_dur cat=category slice_id=id";
const FTRACE_EVENT: &str = "id ts name cpu utid arg_set_id common_flags ucpu=cpu";
const SCHED: &str = "id ts dur cpu utid end_state priority ucpu=cpu ts_end=ts+dur";
const LOG: &str = "id ts utid prio tag msg";
const TRACK: &str = "id name type dimension_arg_set_id parent_id source_arg_set_id machine_id";

const PLANS: &[Plan] = &[
    plan("process", "process", "upid=id id pid name start_ts end_ts parent_upid uid cmdline arg_set_id machine_id"),
    plan("thread", "thread", "utid=id id tid name start_ts end_ts upid is_main_thread is_idle machine_id"),
    part("track", "Tracks of slices and of counters.", "track", TRACK, |tables, row| !has_states(tables, row)),
    part(
        "thread_track",
        "Tracks of slices that belong to a thread.",
        "track",
        "id name type parent_id source_arg_set_id machine_id utid",
        |tables, row| tables.track.utid[row].is_some() && has_slices(tables, row),
    ),
    part(
        "process_track",
        "Tracks of slices that belong to a process.",
        "track",
        "id name type parent_id source_arg_set_id machine_id upid",
        |tables, row| tables.track.upid[row].is_some() && has_slices(tables, row),
    ),
    part(
        "cpu_track",
        "Tracks of slices that belong to a processor.",
        "track",
        "id name type parent_id source_arg_set_id machine_id cpu",
        |tables, row| tables.track.cpu[row].is_some() && has_slices(tables, row),
    ),
    part(
        "counter_track",
        "Counters.",
        "track",
        "id name parent_id type dimension_arg_set_id source_arg_set_id machine_id unit description",
        |tables, row| tables.track.is_counter[row],
    ),
    part(
        "thread_counter_track",
        "Counters that belong to a thread.",
        "track",
        "id name type parent_id source_arg_set_id machine_id unit description utid",
        |tables, row| tables.track.utid[row].is_some() && tables.track.is_counter[row],
    ),
    part(
        "process_counter_track",
        "Counters that belong to a process.",
        "track",
        "id name type parent_id source_arg_set_id machine_id unit description upid",
        |tables, row| tables.track.upid[row].is_some() && tables.track.is_counter[row],
    ),
    part(
        "cpu_counter_track",
        "Counters that belong to a processor.",
        "track",
        "id name type parent_id source_arg_set_id machine_id unit description cpu",
        |tables, row| tables.track.cpu[row].is_some() && tables.track.is_counter[row],
    ),
    part("state_track", "Tracks of states.", "track", TRACK, has_states),
    plan("slice", "slice", SLICE),
    plan("state", "state", "id ts dur track_id category value arg_set_id"),
    alias("slices", "The table `slice` by its older name.", "slice", SLICE),
    part("instant", "Slices without a duration.", "slice", "ts track_id name arg_set_id", |tables, row| {
        tables.slice.dur.get(row) == 0
    }),
    plan("flow", "flow", "id slice_out slice_in trace_id"),
    plan("counter", "counter", "id ts track_id value arg_set_id"),
    plan("args", "args", "id arg_set_id flat_key key int_value string_value real_value value_type"),
    plan("sched", "sched", SCHED),
    alias("sched_slice", "The table `sched` by its older name.", "sched", SCHED),
    plan(
        "thread_state",
        "thread_state",
        "id ts dur cpu utid state io_wait blocked_function waker_utid waker_id irq_context ucpu=cpu",
    ),
    plan("spurious_sched_wakeup", "spurious_sched_wakeup", "id ts thread_state_id irq_context utid waker_utid"),
    plan("ftrace_event", "ftrace_event", FTRACE_EVENT),
    alias("raw", "The table `ftrace_event` by its older name.", "ftrace_event", FTRACE_EVENT),
    plan("filedescriptor", "filedescriptor", "id fd ts upid path"),
    plan("android_logs", "android_logs", LOG),
    alias("log", "The table `android_logs` by a shorter name.", "android_logs", LOG),
    plan("stats", "stats", "name idx severity source value"),
    plan("metadata", "metadata", "id name key_type int_value str_value"),
    plan("cpu", "cpu", "id ucpu=id cpu cluster_id processor machine_id capacity"),
    plan("machine", "machine", "id raw_id name sysname release version arch num_cpus"),
    plan("clock_snapshot", "clock_snapshot", "id ts clock_id clock_name clock_value snapshot_id machine_id"),
    plan(
        "stack_profile_mapping",
        "stack_profile_mapping",
        "id build_id exact_offset start_offset start end load_bias name",
    ),
    plan("stack_profile_frame", "stack_profile_frame", "id name mapping rel_pc symbol_set_id deobfuscated_name"),
    plan("stack_profile_symbol", "stack_profile_symbol", "id symbol_set_id name source_file line_number"),
    plan("stack_profile_callsite", "stack_profile_callsite", "id depth parent_id frame_id"),
    plan("heap_profile_allocation", "heap_profile_allocation", "id ts upid heap_name callsite_id count size"),
    plan("perf_sample", "perf_sample", "id ts utid cpu cpu_mode callsite_id unwind_error perf_session_id"),
    plan("cpu_profile_stack_sample", "cpu_profile_stack_sample", "id ts callsite_id utid process_priority"),
];

/// True for tracks of states. The trace processor has no name for them yet.
fn has_states(tables: &Tables, row: usize) -> bool {
    tables.strings.get(tables.track.r#type[row]).ends_with("_state_track_event")
}

fn has_slices(tables: &Tables, row: usize) -> bool {
    !tables.track.is_counter[row] && !has_states(tables, row)
}

impl Plan {
    fn define(&self, engine: &Tables) -> TableDef {
        let all = engine.all();
        let base_index = all.iter().position(|table| table.name() == self.base).expect("the engine has the table");
        let base = all[base_index];
        let count = base.columns().len();
        let infos: Vec<ColumnInfo> = (0..count).filter_map(|column| base.column_info(column)).collect();
        let columns = self.columns.split(' ').map(|column| define_column(column, self.name, &infos)).collect();
        let doc = self.doc.map_or_else(|| base.doc().replace("  ", " "), str::to_owned);
        TableDef { name: self.name, doc, columns, base: self.base, base_index, filter: self.filter }
    }
}

fn define_column(text: &'static str, table: &'static str, infos: &[ColumnInfo]) -> ColumnDef {
    let (name, origin) = text.split_once('=').unwrap_or((text, text));
    let find = |name: &str| infos.iter().position(|info| info.name == name).expect("the engine has the column");
    if origin == "id" {
        let doc = if name == "id" { "The row." } else { "The same as `id`." };
        return ColumnDef {
            name,
            doc,
            kind: Kind::Row,
            is_nullable: false,
            is_key: true,
            refers_to: None,
            source: Source::Id,
        };
    }
    if let Some((first, second)) = origin.split_once('+') {
        let source = Source::Sum(find(first), find(second));
        let doc = "Its end: the sum of `ts` and `dur`.";
        return ColumnDef { name, doc, kind: Kind::Int, is_nullable: false, is_key: false, refers_to: None, source };
    }
    let index = find(origin);
    let info = infos[index];
    let is_cpu_id = name == "ucpu";
    let source = if is_cpu_id { Source::CpuId(index) } else { Source::Engine(index) };
    let kind = if is_cpu_id { Kind::Row } else { info.kind };
    let doc = match name {
        "ucpu" => "The id of the processor.",
        "cat" => "The same as `category`.",
        _ => info.doc,
    };
    let refers_to = if kind == Kind::Row { reference(name, table) } else { None };
    ColumnDef { name, doc, kind, is_nullable: info.is_nullable, is_key: false, refers_to, source }
}

/// Returns the table and the column that a column of ids refers to.
fn reference(column: &str, table: &'static str) -> Option<(&'static str, &'static str)> {
    // An id of a table's part is an id of the whole.
    let own = if table.ends_with("track") { "track" } else { table };
    Some(match column {
        "utid" | "waker_utid" => ("thread", "utid"),
        "upid" | "parent_upid" => ("process", "upid"),
        "track_id" if table == "state" => ("state_track", "id"),
        "track_id" => ("track", "id"),
        "symbol_set_id" => ("stack_profile_symbol", "symbol_set_id"),
        "slice_out" | "slice_in" => ("slice", "id"),
        "waker_id" | "thread_state_id" => ("thread_state", "id"),
        "machine_id" => ("machine", "id"),
        "callsite_id" => ("stack_profile_callsite", "id"),
        "frame_id" => ("stack_profile_frame", "id"),
        "mapping" => ("stack_profile_mapping", "id"),
        "ucpu" => ("cpu", "ucpu"),
        "parent_id" => (own, "id"),
        "arg_set_id" if table == "args" => return None,
        _ if column.ends_with("arg_set_id") => ("args", "arg_set_id"),
        _ => return None,
    })
}
