//! Rows from a cluster, beside those of a run without it.

use std::sync::Mutex;

use crate::processes::{Answer, Cluster, ask};
use crate::queries::{Query, of_all_shapes, of_the_trace_processor};
use crate::{folder, traces};

/// Notes that a statement may have.
const NOTES: [&str; 4] = [
    "table functions and lists of tables work on one machine",
    "recursive queries work on one machine",
    "a full join by comparisons needs all rows of both sides on one machine",
    "the cluster does not say which traces are damaged",
];

fn difference(query: &Query, here: &Answer, there: &Answer) -> Option<String> {
    let Query { name, sql } = query;
    if here.status != Some(0) || there.status != Some(0) {
        return Some(format!("{name}: {here:?}\n  on the cluster {there:?}\n  {sql}"));
    }
    let strange =
        |line: &&str| !line.starts_with("esatto-query: note: ") || !NOTES.iter().any(|note| line.contains(note));
    if let Some(line) = there.stderr.lines().find(strange) {
        return Some(format!("{name}: {line}"));
    }
    let (here, there) = (here.sorted(), there.sorted());
    let at = here.iter().zip(&there).take_while(|(here, there)| here == there).count();
    (here != there).then(|| {
        let row = |rows: &[&str]| rows.get(at).map_or("nothing", |row| row).to_owned();
        let (here_row, there_row) = (row(&here), row(&there));
        format!("{name}: {} rows, on the cluster {}; row {at}:\n  {here_row}\n  {there_row}", here.len(), there.len())
    })
}

/// Runs queries here and on a cluster, with several numbers of partitions.
fn compare(cluster: &Cluster, pattern: &str, queries: &[Query], partitions: &[&str]) {
    let differences = Mutex::new(Vec::new());
    let next = Mutex::new(queries.iter());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(query) = next.lock().expect("no thread panics").next() else { return };
                    let args = [pattern, &query.sql, "--format", "jsonl"];
                    let here = ask(&args);
                    for count in partitions {
                        let there = cluster.ask(&[&args[..], &["--threads", count]].concat());
                        let found = difference(query, &here, &there).map(|text| format!("{count} partitions: {text}"));
                        differences.lock().expect("no thread panics").extend(found);
                    }
                }
            });
        }
    });
    let differences = differences.into_inner().expect("no thread panics");
    let logs = if differences.is_empty() { String::new() } else { cluster.logs() };
    assert!(differences.is_empty(), "{} differences\n{}\n{logs}", differences.len(), differences.join("\n"));
}

#[test]
fn all_queries_give_the_same_rows_on_a_cluster() {
    let folder = folder("all-queries");
    let pattern = traces::all(&folder);
    let queries = of_the_trace_processor();
    assert!(queries.len() >= 150, "{} queries", queries.len());
    let cluster = Cluster::start("all-queries-cluster", &folder, 2);
    compare(&cluster, &pattern, &queries, &["1", "16"]);
}

#[test]
fn all_shapes_give_the_same_rows_on_a_cluster() {
    let folder = folder("shapes");
    let pattern = traces::all(&folder);
    let cluster = Cluster::start("shapes-cluster", &folder, 2);
    compare(&cluster, &pattern, &of_all_shapes(), &["1", "16"]);
}

#[test]
fn two_hundred_traces_give_the_same_rows_on_a_cluster() {
    let folder = folder("two-hundred");
    let pattern = traces::copies(&folder, 200);
    let cluster = Cluster::start("two-hundred-cluster", &folder, 2);
    let names = [
        "union of groups",
        "intersect",
        "except with duplicates",
        "limit with an offset",
        "values of subqueries in a filter of a group",
        "window over partitions",
        "join of three tables and a group",
        "groups of the file",
        "arguments as columns",
        "exists on a comparison",
    ];
    let is_named = |query: &Query| names.iter().any(|name| query.name == format!("shapes: {name}"));
    let queries: Vec<Query> = of_all_shapes().into_iter().filter(is_named).collect();
    assert_eq!(queries.len(), names.len(), "each name is that of a statement");
    compare(&cluster, &pattern, &queries, &["16"]);
}

#[test]
fn all_forms_of_output_work() {
    let folder = folder("forms");
    let pattern = traces::copies(&folder, 2);
    let cluster = Cluster::start("forms-cluster", &folder, 1);
    let sql = "create view a as select pid from process where pid < $most; select count(*) as n from a;
        select table_type, count(*) as n from information_schema.tables group by 1 order by 1";
    for format in ["table", "csv", "jsonl"] {
        let args = [&pattern, sql, "--format", format, "--param", "most=100"];
        let (here, there) = (ask(&args), cluster.ask(&args));
        assert_eq!((here.status, &*here.stdout, &*here.stderr), (there.status, &*there.stdout, &*there.stderr));
        assert_eq!(here.status, Some(0), "{here:?}");
    }
    let plan = cluster.ask(&[&pattern, "explain select count(*) from slice", "--format", "jsonl"]);
    assert!(plan.stdout.contains("file_type=trace, table=slice"), "{plan:?}");
}

#[test]
fn relative_paths_begin_in_the_folder_of_the_client() {
    let folder = folder("relative");
    traces::copies(&folder, 3);
    let cluster = Cluster::start("relative-cluster", &folder, 1);
    let sql = "select trace_file, count(*) as n, count(extract_arg(arg_set_id, 'debug.round')) as rounds
        from slice group by 1 order by 1";
    let mut runs = Vec::new();
    for more in [&[][..], &["--cluster", &cluster.address]] {
        let mut command = crate::processes::program();
        command.args(["query", "*.pftrace", sql, "--format", "csv"]).args(more).current_dir(&folder);
        let output = command.output().expect("the program runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        runs.push(String::from_utf8(output.stdout).expect("it is UTF-8"));
    }
    assert_eq!(runs[0], runs[1]);
}

#[test]
fn a_changed_trace_is_read_again() {
    let folder = folder("changed");
    let pattern = traces::copies(&folder, 2);
    let cluster = Cluster::start("changed-cluster", &folder, 1);
    let args = [&pattern, "select count(*) as n from slice", "--format", "csv"];
    assert_eq!(cluster.ask(&args).stdout, "n\n0\n");
    let events = crate::root().join("tests/traces").join(traces::EVENTS);
    std::fs::copy(events, folder.join("t001.pftrace")).expect("a trace can be copied");
    assert_eq!(cluster.ask(&args).stdout, "n\n1503\n");
}
