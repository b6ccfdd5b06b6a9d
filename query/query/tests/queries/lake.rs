//! The queries of `tests/queries/*.sql`, and others with functions that look into traces, over a
//! lake: their rows are those of the same traces without a lake.

use std::path::{Path, PathBuf};

use esatto_lake::{ExportOptions, Exporter, Lake};
use esatto_query::{Broken, Options, Session, Traces};

use crate::{ask, lines, queries, traces};

/// Queries with functions that look into traces, in all parts of a statement.
const FUNCTIONS: &[&str] = &[
    // Arguments.
    "select id, extract_arg(arg_set_id, 'debug.round') as round from slice",
    "select id, extract_arg_int(arg_set_id, 'debug.round') as a, extract_arg_real(arg_set_id, 'debug.round') as b,
        extract_arg_text(arg_set_id, 'debug.round') as c from slice",
    "select a.id, extract_arg(a.arg_set_id, a.key) as own, extract_arg_text(a.arg_set_id, a.key) as text,
        extract_arg_real(a.arg_set_id, a.key) as real, extract_arg_int(a.arg_set_id, a.key) as int from args a",
    "select extract_arg(arg_set_id, 'debug.round') as round, count(*) as n, sum(extract_arg(arg_set_id, 'debug.round')) as s
        from slice group by 1",
    "select extract_arg(arg_set_id, 'debug.round') as round, count(*) as n from slice
        group by extract_arg(arg_set_id, 'debug.round') having count(extract_arg(arg_set_id, 'debug.round')) > 0",
    "select id from slice where extract_arg(arg_set_id, 'debug.round') is not null and id % 2 = 0",
    "select id from slice where extract_arg(arg_set_id, 'debug.round') is null or dur > 0",
    "select id from slice order by extract_arg(arg_set_id, 'debug.round'), id",
    "select id, row_number() over (partition by extract_arg(arg_set_id, 'debug.round') order by id) as n from slice",
    "select p.pid, t.id, t.name from process p join track t on p.upid = extract_arg(t.dimension_arg_set_id, 'upid')",
    "select p.pid, t.id from process p left join track t
        on p.upid = extract_arg(t.dimension_arg_set_id, 'upid') and extract_arg(t.source_arg_set_id, 'source') is null",
    "select t.id, p.pid from track t left join process p on p.upid = extract_arg(t.dimension_arg_set_id, 'upid')",
    "select t.id, p.pid from track t full join process p on p.upid = extract_arg(t.dimension_arg_set_id, 'upid')",
    "select a.id, b.id as other from slice a join slice b
        on extract_arg(a.arg_set_id, 'debug.round') = extract_arg(b.arg_set_id, 'debug.round') and a.id < b.id",
    "select id from slice where extract_arg(arg_set_id, 'debug.round') in
        (select max(extract_arg(arg_set_id, 'debug.round')) from slice)",
    "select id from slice s where exists (select 1 from args a where a.arg_set_id = s.arg_set_id
        and extract_arg(a.arg_set_id, 'debug.round') is not null)",
    "select id, (select count(extract_arg(o.arg_set_id, 'debug.round')) from slice o where o.track_id = s.track_id) as n
        from slice s",
    "select id, extract_arg(extract_arg(arg_set_id, 'no.such.argument'), 'debug.round') as n from slice",
    "select id, extract_arg(extract_arg_int(arg_set_id, 'debug.round'), 'debug.round') as n from slice",
    "select extract_arg((select min(arg_set_id) from args where key = 'debug.round'), 'debug.round') as n",
    "select n, round from (select count(*) as n, extract_arg(min(arg_set_id), 'debug.round') as round
        from slice group by track_id)",
    "with s as (select id, extract_arg(arg_set_id, 'debug.round') as round from slice)
        select round, count(*) as n from s where round > 0 group by round
        union all select extract_arg(arg_set_id, 'debug.round'), id from slice where depth = 0",
    "select case when depth = 0 then extract_arg(arg_set_id, 'debug.round') end as round, id from slice",
    "select distinct extract_arg(arg_set_id, 'debug.round') as round from slice",
    // Times.
    "select id, to_time(ts, id) as time, to_realtime(ts, id) as ns from slice",
    "select id, to_time(ts + 1000000000, track_id) as time from slice where to_realtime(ts, id) > 0",
    "select min(to_time(ts, id)) as a, max(to_time(ts - 86400000000000, id)) as b from counter",
    "select id, to_realtime(ts, null) as a, to_realtime(null, id) as b from slice",
    // Trees of slices.
    "select start_id, id, distance, name, depth from ancestors() a",
    "select start_id, id, distance, ts, dur from descendants() d",
    "select count(*) as n from descendants() d",
    "select distance, count(*) as n, min(start_id) as s from ancestors() a group by 1",
    "select * from ancestor_slice((select id from slice order by depth desc, id limit 1)) a",
    "select distance, id, start_id, arg_set_id from descendants((select id from slice order by dur desc, id limit 1)) d",
    "select d.name, extract_arg(d.arg_set_id, 'debug.round') as round from descendants() d where distance = 1",
    "select * from descendants(-5) d",
    "select * from ancestors(123456789012345) d",
    "select * from ancestors((select id from slice where id < 0)) d",
    // Flows.
    "select * from flow_following((select min(slice_out) from flow)) f",
    "select * from flow_following((select max(s.parent_id) from flow f join slice s on s.id = f.slice_out)) f",
    "select * from flow_preceding((select max(slice_in) from flow)) f",
    "select slice_in, slice_out from directly_connected_flow((select max(slice_in) from flow)) f",
    "select count(*) as n from flow_preceding((select max(slice_in) from flow)) f",
    "select * from flow_following(-1) f",
    // Views keep what is in them.
    "create view rounds as select id, extract_arg(arg_set_id, 'debug.round') as round, to_time(ts, id) as time from slice;
        select round, min(time) as time, count(*) as n from rounds group by round",
];

/// A query about one trace, which has one clock.
const OF_ONE_TRACE: &str = "select to_time(ts) as time, to_realtime(ts) as ns from slice";

/// The name of the lake with all traces.
const ALL: &str = "all";

/// Exports traces into a lake, with the numbers that they have in a query.
fn new_lake(paths: &[PathBuf], name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("queries-lake-{name}"));
    let _may_be_missing = std::fs::remove_dir_all(&place);
    let mut options = ExportOptions::default();
    options.jobs = 1;
    options.keeps_broken = true;
    let exporter = Exporter::open(&place.to_string_lossy(), options, &|| {}).expect("a lake can be made");
    let report = exporter.run(paths, &|_| {}).expect("traces can be exported");
    assert!(report.left_out.is_empty(), "{:?}", report.left_out);
    place
}

/// Compares all queries. Returns the differences, and the number of queries with rows.
fn compare(paths: &[PathBuf], name: &str, threads: usize) -> (Vec<String>, usize) {
    let place = new_lake(paths, name);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut options = Options::default();
    options.threads = threads;
    options.has_trace_columns = true;
    let list = Traces::new(paths.to_vec(), Broken::Keep, 1 << 30).expect("few traces");
    let raw = Session::new(list, &options).expect("a session");
    let lake = Lake::open(&place.to_string_lossy()).expect("it is a lake");
    let entries = lake.entries().expect("it has a catalogue");
    let lake = runtime.block_on(Session::of_lake(&lake, entries, &options)).expect("a session");
    let of_files = queries().into_iter().map(|query| (query.name, query.sql));
    let of_one = (name != ALL).then_some(OF_ONE_TRACE);
    let of_functions = FUNCTIONS.iter().copied().chain(of_one).map(|sql| ("functions".to_owned(), sql.to_owned()));
    let (mut differences, mut with_rows) = (Vec::new(), 0);
    for (query, sql) in of_files.chain(of_functions) {
        let sorted = |session: &Session| {
            ask(&runtime, session, &sql).map(|rows| {
                let mut lines = lines(&rows);
                lines.sort();
                lines
            })
        };
        let (expected, found) = (sorted(&raw), sorted(&lake));
        with_rows += usize::from(expected.as_ref().is_ok_and(|rows| !rows.is_empty()));
        // A single trace may have no such argument, whose type is that of NULL then.
        if found != expected || (expected.is_err() && name == ALL) {
            let at = match (&found, &expected) {
                (Ok(found), Ok(expected)) => found.iter().zip(expected).take_while(|(a, b)| a == b).count(),
                _ => 0,
            };
            let show = |rows: &Result<Vec<String>, String>| match rows {
                Ok(rows) => format!("{} rows; row {at}: {:?}", rows.len(), rows.get(at)),
                Err(error) => error.clone(),
            };
            differences.push(format!(
                "{query} on {name}: {sql}\n  lake   {}\n  traces {}",
                show(&found),
                show(&expected)
            ));
        }
    }
    let _ignored = std::fs::remove_dir_all(&place);
    (differences, with_rows)
}

#[test]
fn a_lake_gives_the_rows_of_its_traces() {
    let all: Vec<PathBuf> = traces::all().into_iter().map(|trace| trace.path).collect();
    let work = move || {
        let (mut differences, with_rows) = compare(&all, ALL, 3);
        assert!(with_rows > 120, "{with_rows} queries with rows");
        // Some traces alone.
        for (number, path) in all.iter().enumerate().step_by(7) {
            differences.extend(compare(std::slice::from_ref(path), &format!("{number}"), 1).0);
        }
        assert!(differences.is_empty(), "{} differences\n{}", differences.len(), differences.join("\n"));
    };
    // Plans are deep in a build without optimization.
    let thread = std::thread::Builder::new().stack_size(64 << 20).spawn(work).expect("a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
