//! The tables of the engine in SQLite, under the names of the trace processor.

use esatto_trace::tables::{Tables, Value};
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

pub(crate) struct Database(Connection);

/// Views that the trace processor has above its tables.
const VIEWS: &str = "
create view process as select *, id as upid from t_process;
create view thread as select *, id as utid from t_thread;
create view track as select id, name, type, parent_id, dimension_arg_set_id, source_arg_set_id, machine_id from t_track
    where type not glob '*_state_track_event' and type != 'concurrent_tracing_sessions';
create view thread_track as select id, name, type, parent_id, utid from t_track
    where utid is not null and not is_counter and type not glob '*_state_track_event';
create view process_track as select id, name, type, parent_id, upid from t_track
    where upid is not null and not is_counter and type not glob '*_state_track_event';
create view counter_track as
    select id, name, type, parent_id, dimension_arg_set_id, unit, description from t_track where is_counter;
create view thread_counter_track as
    select id, name, type, parent_id, unit, description, utid from t_track where utid is not null and is_counter;
create view process_counter_track as
    select id, name, type, parent_id, unit, description, upid from t_track where upid is not null and is_counter;
create view cpu_counter_track as
    select id, name, type, parent_id, unit, description, cpu from t_track where cpu is not null and is_counter;
create view slice as select *, id as slice_id, category as cat from t_slice;
create view sched as select *, cpu as ucpu from t_sched;
create view thread_state as select *, cpu as ucpu from t_thread_state;
create view ftrace_event as select *, cpu as ucpu from t_ftrace_event;
create view raw as select * from ftrace_event;
create view cpu as select *, id as ucpu from t_cpu;
";

/// Columns by which queries join tables.
const INDEXES: &str = "
create index slice_track on t_slice (track_id);
create index slice_parent on t_slice (parent_id);
create index counter_track_index on counter (track_id);
create index args_set on args (arg_set_id);
create index flow_out on flow (slice_out);
create index flow_in on flow (slice_in);
";

/// Tables that have a view of their own.
const VIEWED: [&str; 8] = ["process", "thread", "track", "slice", "sched", "thread_state", "ftrace_event", "cpu"];

impl Database {
    pub(crate) fn new(tables: &Tables) -> Self {
        let connection = Connection::open_in_memory().expect("SQLite works");
        for table in tables.all() {
            let name = table.name();
            let name = if VIEWED.contains(&name) { format!("t_{name}") } else { name.to_owned() };
            let columns = table.columns();
            let plain = |column: &&str| column.trim_start_matches("r#").to_owned();
            let list: Vec<String> = columns.iter().map(|column| format!("\"{}\"", plain(column))).collect();
            let sql = format!("create table {name} (id integer primary key, {})", list.join(", "));
            connection.execute(&sql, []).expect("a table can be made");
            let marks = vec!["?"; columns.len() + 1].join(", ");
            let mut insert = connection.prepare(&format!("insert into {name} values ({marks})")).expect("a table");
            connection.execute_batch("begin").expect("a transaction");
            for row in 0..table.rows() {
                let cell = |column| match table.value(row, column, &tables.strings) {
                    Value::Null => SqlValue::Null,
                    Value::Int(v) => SqlValue::Integer(v),
                    Value::Real(v) => SqlValue::Real(v),
                    Value::Text(text) => SqlValue::Text(text.to_owned()),
                };
                let id = SqlValue::Integer(i64::try_from(row).expect("few rows"));
                let cells = std::iter::once(id).chain((0..columns.len()).map(cell));
                insert.execute(params_from_iter(cells)).expect("a row can be added");
            }
            connection.execute_batch("commit").expect("a transaction");
        }
        connection.execute_batch(INDEXES).expect("indexes can be made");
        connection.execute_batch(VIEWS).expect("views can be made");
        add_extract_arg(&connection, tables);
        Self(connection)
    }

    pub(crate) fn rows(&self, sql: &str) -> Vec<Map<String, Json>> {
        let mut statement = self.0.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let names: Vec<String> = statement.column_names().into_iter().map(str::to_owned).collect();
        let mut rows = statement.query([]).expect("a query runs");
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap_or_else(|error| panic!("{sql}: {error}")) {
            let cell = |(index, name): (usize, &String)| {
                let value = match row.get_ref(index).expect("a column") {
                    ValueRef::Null => Json::Null,
                    ValueRef::Integer(v) => v.into(),
                    ValueRef::Real(v) => v.into(),
                    ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into(),
                };
                (name.clone(), value)
            };
            found.push(names.iter().enumerate().map(cell).collect());
        }
        found
    }
}

/// Adds the function `extract_arg(set, key)`.
fn add_extract_arg(connection: &Connection, tables: &Tables) {
    let args = tables.all().into_iter().find(|table| table.name() == "args").expect("there are arguments");
    let mut values: HashMap<(i64, String), SqlValue> = HashMap::new();
    for row in 0..args.rows() {
        let cell = |column| args.value(row, column, &tables.strings);
        let (Value::Int(set), Value::Text(key)) = (cell(0), cell(2)) else { continue };
        let value = match (cell(3), cell(4), cell(5)) {
            (Value::Int(v), ..) => SqlValue::Integer(v),
            (_, Value::Text(text), _) => SqlValue::Text(text.to_owned()),
            (_, _, Value::Real(v)) => SqlValue::Real(v),
            _ => SqlValue::Null,
        };
        values.insert((set, key.to_owned()), value);
    }
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let function = move |context: &rusqlite::functions::Context<'_>| {
        let (Some(set), key) = (context.get::<Option<i64>>(0)?, context.get::<String>(1)?) else {
            return Ok(SqlValue::Null);
        };
        Ok(values.get(&(set, key)).cloned().unwrap_or(SqlValue::Null))
    };
    connection.create_scalar_function("extract_arg", 2, flags, function).expect("a function can be added");
}
