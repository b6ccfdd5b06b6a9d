//! Several traces: patterns, columns that tell them apart, ids.

use std::path::PathBuf;

use crate::{TRACE, folder, rows, trace};

/// Makes a folder with copies of a trace.
fn copies(name: &str, count: usize) -> PathBuf {
    let folder = folder(name);
    for number in 0..count {
        std::fs::copy(trace(TRACE), folder.join(format!("t{number:03}.pftrace"))).expect("a trace can be copied");
    }
    folder
}

fn ask(folder: &std::path::Path, sql: &str, more: &[&str]) -> String {
    let pattern = format!("{}/*.pftrace", folder.display());
    let mut args = vec![&*pattern, sql, "--format", "csv"];
    args.extend(more);
    rows(&args)
}

#[test]
fn a_pattern_asks_all_traces() {
    let folder = copies("pattern", 3);
    let sql = "select trace_file, count(*) as n from slice group by 1 order by 1";
    let text = ask(&folder, sql, &[]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4);
    for (number, line) in lines[1..].iter().enumerate() {
        assert!(line.ends_with(&format!("t{number:03}.pftrace,1503")), "{line}");
    }
    assert_eq!(ask(&folder, "select count(distinct trace_uuid) as n from metadata", &[]), "n\n1\n");
}

#[test]
fn joins_do_not_mix_traces() {
    let folder = copies("joins", 3);
    let sql = "select count(*) as n from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)";
    let one = rows(&[&trace(TRACE), sql, "--format", "csv"]);
    let number = |text: &str| text.trim_start_matches("n\n").trim().parse::<u64>().expect("a number");
    assert_eq!(number(&ask(&folder, sql, &[])), 3 * number(&one));
    // Also if traces are closed and opened again, and whatever the number of threads.
    for threads in ["1", "2", "5"] {
        assert_eq!(number(&ask(&folder, sql, &["--memory-limit", "16M", "--threads", threads])), 3 * number(&one));
    }
    let sql = "select count(*) as n from slice where extract_arg(arg_set_id, 'debug.round') is not null";
    let one = rows(&[&trace(TRACE), sql, "--format", "csv"]);
    assert_eq!(number(&ask(&folder, sql, &[])), 3 * number(&one));
}

#[test]
fn spans_of_different_traces_have_nothing_in_common() {
    let folder = copies("spans", 2);
    let sql = "create view a as select ts, dur, track_id, name, trace_file from slice where depth = 0 and dur > 0;
        create view b as select ts, dur, track_id, name as inner_name, trace_file from slice
            where depth = 1 and dur > 0;
        select count(*) as n, count(distinct trace_file) as traces
        from span_join('a PARTITIONED track_id', 'b PARTITIONED track_id')";
    let one = rows(&[&trace(TRACE), "--trace-columns", sql, "--format", "csv"]);
    let both = ask(&folder, sql, &[]);
    let counts = |text: &str| -> Vec<u64> {
        let line = text.lines().nth(1).expect("a row").to_owned();
        line.split(',').map(|cell| cell.parse().expect("a number")).collect()
    };
    assert_eq!(counts(&both), [2 * counts(&one)[0], 2]);
}

#[test]
fn a_condition_on_the_file_opens_only_those_that_fit() {
    let folder = copies("condition", 2);
    std::fs::write(folder.join("t999.pftrace"), "no trace").expect("a file can be written");
    let sql = "select count(*) as n from slice where trace_file like '%t001.pftrace'";
    // The file that is no trace is not opened, so nothing is reported.
    assert_eq!(ask(&folder, sql, &[]), "n\n1503\n");
}

#[test]
fn times_of_several_traces_need_the_trace() {
    let folder = copies("times", 2);
    let text = ask(&folder, "select count(distinct to_time(ts, id)) > 100 as many from slice", &[]);
    assert_eq!(text, "many\ntrue\n");
    let pattern = format!("{}/*.pftrace", folder.display());
    let message = crate::error(&[&pattern, "select max(to_time(ts)) from slice"]);
    assert!(message.contains("give an id of the row as the second argument"), "{message}");
}
