//! Content of the files that an export writes.

use std::path::Path;

use esatto_lake::{Lake, NUMBER_COLUMN, TRACE_COLUMNS, derived};
use parquet::basic::Compression;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::statistics::Statistics;

use crate::{TRACE, all_traces, check, contents, csv, export, folder, ok, run, stderr, trace};

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

#[test]
fn a_lake_has_the_rows_of_the_traces() {
    let lake = folder("rows").join("lake");
    let traces = strs(all_traces());
    // With one job, numbers are in the order of the arguments, so ids are those of a query.
    export(&traces, &lake, &["--jobs", "1"]);
    let lake = lake.to_string_lossy();
    let mut with_rows = 0;
    for table in esatto_tables::tables() {
        let own = table.columns.iter().map(|column| column.name);
        let columns: Vec<String> =
            own.chain(TRACE_COLUMNS.iter().map(|(name, _)| *name)).map(|name| format!("\"{name}\"")).collect();
        let order: Vec<String> = (1..=columns.len()).map(|at| at.to_string()).collect();
        let sql = format!("select {} from {} order by {}", columns.join(", "), table.name, order.join(", "));
        let (of_lake, of_traces) = (csv(&[&lake], &sql), csv(&traces, &sql));
        assert!(of_lake == of_traces, "{}: rows differ", table.name);
        with_rows += usize::from(!of_lake.is_empty());
    }
    assert!(with_rows >= 30, "only {with_rows} tables have rows");
    let views = "select count(*), sum(dur) from thread_slice; select count(*) from slice_self_dur where self_dur > 0;
        select name, count(*) from counters group by name order by 1, 2;
        select count(*) from sched_with_thread_process";
    assert_eq!(csv(&[&lake], views), csv(&traces, views));
}

/// DataFusion alone passes such a filter to the other side, whose columns have the same names.
#[test]
fn a_filter_stays_on_its_side_of_a_join() {
    let lake = folder("sides").join("lake");
    let traces = [trace(TRACE), trace("official-v56-process-and-sys-stats.pftrace")];
    export(&strs(&traces), &lake, &["--jobs", "1"]);
    let sql = "select t3.trace_file, count(t1.id) from clock_snapshot t1 right join machine t3 on t1.machine_id = t3.id
        where t1.trace_uuid is distinct from '560f7350-a59c-0228-f7b2-810c88a621a9' group by 1 order by 1";
    let expected = csv(&strs(&traces), sql);
    assert_eq!(expected.lines().count(), 2, "{expected}");
    assert_eq!(csv(&[&lake.to_string_lossy()], sql), expected);
}

/// DataFusion alone takes counts from the catalogue and then misses the filtered one.
#[test]
fn counts_that_are_filtered_have_their_rows() {
    let lake = folder("filtered").join("lake");
    export(&[&trace(TRACE)], &lake, &[]);
    let sql = "select sum(n) as s, count(*) filter (where n < 0) as m from (select count(*) as n from track)";
    let expected = csv(&[&trace(TRACE)], sql);
    assert!(expected.ends_with(",0\n"), "{expected}");
    assert_eq!(csv(&[&lake.to_string_lossy()], sql), expected);
}

/// DataFusion alone takes the first column of the answer for a key here, and sorts by no other.
#[test]
fn rows_are_sorted_by_all_columns() {
    let lake = folder("sorted").join("lake");
    let traces = strs(all_traces());
    export(&traces, &lake, &["--jobs", "1"]);
    let sql = "select real_value as a, int_value as b, trace_uuid as c,
            ntile(1) over (partition by real_value order by trace_file, id) as d
        from args order by 1 nulls last, 4 desc, 3 desc, 2 desc limit 11";
    assert_eq!(csv(&[&lake.to_string_lossy()], sql), csv(&traces, sql));
}

#[test]
fn the_same_trace_is_exported_once() {
    let folder = folder("once");
    let lake = folder.join("lake");
    let text = export(&[&trace(TRACE)], &lake, &[]);
    assert!(text.starts_with("1 trace exported: "), "{text}");
    let before = contents(&lake);
    assert_eq!(export(&[&trace(TRACE)], &lake, &[]), "no new trace; 1 trace in the lake already\n");
    // By another name, and twice in one run.
    let (a, b) = (folder.join("a.pftrace"), folder.join("b.pftrace"));
    for copy in [&a, &b] {
        std::fs::copy(trace(TRACE), copy).expect("a trace can be copied");
    }
    let text = export(&[&a.to_string_lossy(), &b.to_string_lossy()], &lake, &[]);
    assert_eq!(text, "no new trace; 2 traces in the lake already\n");
    assert!(before == contents(&lake), "the lake has changed");
    let other = folder.join("other");
    let text = export(&[&a.to_string_lossy(), &b.to_string_lossy()], &other, &[]);
    assert!(text.starts_with("1 trace exported: ") && text.ends_with("; 1 trace in the lake already\n"), "{text}");
}

#[test]
fn partition_values_are_folders() {
    let folder = folder("partition");
    let lake = folder.join("lake");
    let keys = ["--partition", "date,host,version", "--attribute", "host=a/b ü"];
    export(&[&trace(TRACE)], &lake, &keys);
    let slices = "slice/trace_date=2026-11-20/trace_host=a%2Fb%20%C3%BC/trace_version=unknown";
    assert!(lake.join(slices).is_dir(), "{:?}", contents(&lake).iter().map(|(name, _)| name).collect::<Vec<_>>());
    let place = lake.to_string_lossy();
    let sql = "select distinct trace_date, trace_host, trace_version from slice";
    assert_eq!(csv(&[&place], sql), "2026-11-20,a/b ü,unknown\n");
    assert_eq!(csv(&[&place], "select count(*) from slice where trace_host = 'a'"), "0\n");
    assert_eq!(csv(&[&place], "select date, host, version from traces"), "2026-11-20,a/b ü,unknown\n");
    // They never change.
    let args = ["export", &trace(TRACE), "--to", &place, "--partition", "date"];
    let output = run(&args);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    assert!(message.contains("has the partition keys 'date,host,version', not 'date'"), "{message}");
    export(&[&trace("official-v56-deflate.pftrace")], &lake, &[]);
    assert_eq!(csv(&[&place], "select count(distinct trace_host) from slice"), "2\n");
}

#[test]
fn files_are_sorted_and_have_statistics() {
    let lake = folder("statistics").join("lake");
    export(&[&trace(TRACE), &trace("official-v56-process-and-sys-stats.pftrace")], &lake, &[]);
    let entries = Lake::open(&lake.to_string_lossy()).and_then(|lake| lake.entries()).expect("it is a lake");
    let mut with_times = 0;
    for file in entries.iter().flat_map(|entry| &entry.tables) {
        assert_eq!(derived(&file.name).map(|table| table.name), None);
        let opened = std::fs::File::open(lake.join(&file.path)).expect("a file can be opened");
        let reader = SerializedFileReader::new(opened).expect("it is Parquet");
        let metadata = reader.metadata();
        assert_eq!(metadata.file_metadata().num_rows(), file.rows);
        let group = metadata.row_group(0);
        let columns: Vec<&str> =
            group.columns().iter().map(|column| column.column_path().parts()[0].as_str()).collect();
        assert!(columns.contains(&NUMBER_COLUMN), "{columns:?}");
        for column in group.columns() {
            assert!(matches!(column.compression(), Compression::ZSTD(_)), "{}: {column:?}", file.path);
            assert!(column.statistics().is_some(), "{}: {}", file.path, column.column_path());
        }
        let Some(ts) = columns.iter().position(|name| *name == "ts") else { continue };
        with_times += 1;
        let order = group.sorting_columns().expect("the order is stated");
        assert_eq!(usize::try_from(order[0].column_idx), Ok(ts), "{}", file.path);
        let Some(Statistics::Int64(statistics)) = group.column(ts).statistics() else { panic!("{}", file.path) };
        let place = lake.to_string_lossy();
        let number = entries.iter().find(|entry| entry.tables.contains(file)).expect("it has a trace").trace_number;
        let sql = format!("select min(ts), max(ts) from {} where trace_number = {number}", file.name);
        let range = format!("{},{}\n", statistics.min_opt().expect("a time"), statistics.max_opt().expect("a time"));
        assert_eq!(csv(&[&place], &sql), range, "{}", file.path);
        assert!(is_sorted(&lake.join(&file.path)), "{}", file.path);
    }
    assert!(with_times >= 5, "{with_times} tables");
}

fn is_sorted(path: &Path) -> bool {
    use arrow::array::AsArray as _;
    use arrow::datatypes::Int64Type;
    let file = std::fs::File::open(path).expect("a file can be opened");
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(file, 1024).expect("it is Parquet");
    let mut times: Vec<i64> = Vec::new();
    for batch in reader {
        let batch = batch.expect("it can be read");
        times.extend(batch["ts"].as_primitive::<Int64Type>().values());
    }
    times.is_sorted()
}

#[test]
fn the_catalogue_describes_each_trace() {
    let lake = folder("catalogue").join("lake");
    export(&[&trace(TRACE)], &lake, &[]);
    let entries = Lake::open(&lake.to_string_lossy()).and_then(|lake| lake.entries()).expect("it is a lake");
    let [entry] = &entries[..] else { panic!("{entries:?}") };
    let bytes = std::fs::read(trace(TRACE)).expect("a trace can be read");
    assert_eq!(entry.size, i64::try_from(bytes.len()).expect("it is small"));
    assert_eq!(entry.trace_file, trace(TRACE));
    assert_eq!(entry.trace_uuid.as_deref(), Some("560f7350-a59c-0228-f7b2-810c88a621a9"));
    assert_eq!((entry.date.as_str(), entry.host.as_str()), ("2026-11-20", "unknown"));
    assert_eq!((entry.losses, entry.errors, entry.damage.as_deref()), (0, 0, None));
    let rows = |sql| csv(&[&trace(TRACE)], sql).trim().parse::<i64>().expect("a number");
    assert_eq!(entry.start_ts, Some(rows("select min(ts) from slice")));
    assert_eq!(entry.start_time, Some(rows("select to_realtime(min(ts)) from slice")));
    assert_eq!(entry.end_ts, Some(rows("select max(ts + dur) from slice")));
    assert_eq!(entry.rows, entry.tables.iter().map(|file| file.rows).sum::<i64>());
    assert_eq!(entry.bytes, entry.tables.iter().map(|file| file.size).sum::<i64>());
    let sql = "select f.name, f.\"rows\" from (select unnest(tables) as f from traces) order by 1";
    let listed = csv(&[&lake.to_string_lossy()], sql);
    assert!(listed.contains("\nslice,1503\n"), "{listed}");
}

#[test]
fn damaged_traces_are_reported_counted_and_left_out() {
    let folder = folder("damaged");
    let bytes = std::fs::read(trace(TRACE)).expect("a trace can be read");
    for number in 0..40 {
        let copy = folder.join(format!("t{number:02}.pftrace"));
        let end = if number % 10 == 7 { bytes.len() / 2 } else { bytes.len() };
        // Different contents: padding that readers skip would be one trace otherwise.
        let mut content = bytes[..end].to_vec();
        if number % 10 != 7 {
            content.extend([0x0a, 0x02, 0x50, number + 1]);
        }
        std::fs::write(copy, content).expect("a file can be written");
    }
    std::fs::write(folder.join("t50.pftrace"), "this is no trace").expect("a file can be written");
    std::fs::write(folder.join("t51.pftrace"), "").expect("a file can be written");
    let pattern = format!("{}/*.pftrace", folder.display());
    let lake = folder.join("lake");
    let place = lake.to_string_lossy();
    let output = run(&["export", &pattern, "--to", &place]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The four halves are the same.
    assert!(text.starts_with("36 traces exported") && text.ends_with("; 6 traces left out\n"), "{text}");
    let message = stderr(&output);
    for name in ["t07.pftrace: ", "t17.pftrace: ", "t50.pftrace: ", "t51.pftrace: "] {
        assert!(message.contains(name), "{name}: {message}");
    }
    assert_eq!(message.lines().filter(|line| line.ends_with("; left out")).count(), 6, "{message}");
    assert!(check(&lake).problems.is_empty());
    assert_eq!(csv(&[&place], "select count(*) from traces"), "36\n");

    let output = run(&["export", &pattern, "--to", &place, "--broken", "keep"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("exported as far as it can be read"), "{}", stderr(&output));
    let sql = "select count(*), sum(errors) > 0, max(damage) is not null from traces where errors > 0";
    assert_eq!(csv(&[&place], sql), "1,true,true\n");
}

#[test]
fn a_folder_with_other_files_is_refused() {
    let folder = folder("foreign");
    std::fs::write(folder.join("letter.txt"), "dear").expect("a file can be written");
    let place = folder.to_string_lossy();
    let output = run(&["export", &trace(TRACE), "--to", &place]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is no lake, but has other files, such as 'letter.txt'"), "{}", stderr(&output));
    assert_eq!(contents(&folder).len(), 1);
    let output = run(&["lake", "check", &place]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is no lake: "), "{}", stderr(&output));
    let file = folder.join("letter.txt");
    let output = run(&["export", &trace(TRACE), "--to", &file.to_string_lossy()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot create"), "{}", stderr(&output));
}

#[test]
fn two_exports_at_a_time_wait_for_each_other() {
    let folder = folder("two");
    let lake = folder.join("lake");
    let place = lake.to_string_lossy().into_owned();
    let traces = strs(all_traces());
    let (left, right) = traces.split_at(traces.len() / 2);
    let start = |traces: &[&str]| {
        let mut args = vec!["export"];
        args.extend(traces);
        args.extend(["--to", &place, "--quiet"]);
        crate::command(&args).stderr(std::process::Stdio::null()).spawn().expect("the program runs")
    };
    let mut exports = [start(left), start(right), start(&traces)];
    for export in &mut exports {
        assert!(export.wait().expect("it ends").success());
    }
    let report = check(&lake);
    assert_eq!((report.traces, &report.problems[..]), (traces.len(), &[][..]));
}

#[test]
fn a_lake_and_a_trace_may_be_called_like_a_command() {
    let folder = folder("names");
    std::fs::copy(trace(TRACE), folder.join("export")).expect("a trace can be copied");
    let ok = |args: &[&str]| {
        let output = crate::command(args).current_dir(&folder).output().expect("the program runs");
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("the output is UTF-8")
    };
    let sql = "select count(*) as n from slice";
    assert_eq!(ok(&["export", sql, "--format", "csv"]), "n\n1503\n");
    assert!(ok(&["export", "export", "--to", "lake"]).starts_with("1 trace exported"));
    assert_eq!(ok(&["lake", sql, "--format", "csv"]), "n\n1503\n");
    assert!(ok(&["lake", "check", "lake"]).ends_with(": sound\n"));
    let output = run(&["export", &trace(TRACE)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--to <LAKE>"), "{}", stderr(&output));
}

#[test]
fn help_names_the_commands() {
    assert!(ok(&["export", "--help"]).contains("Usage: esatto export"));
    assert!(ok(&["lake", "check", "--help"]).contains("Usage: esatto lake check"));
    assert!(ok(&["--help"]).contains("esatto export"));
}
