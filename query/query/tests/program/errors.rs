//! Errors name the place, the reason and the remedy.

use crate::{TRACE, error, run, stderr, trace};

fn message(sql: &str) -> String {
    error(&[&trace(TRACE), sql])
}

#[test]
fn wrong_names_have_a_place_and_a_suggestion() {
    let expected = "esatto-query: line 1, column 8: there is no column 'nmae'; perhaps 'name'\n  \
        select nmae from slice\n         ^\n";
    assert_eq!(message("select nmae from slice"), expected);
    let text = message("select name\nfrom slcie");
    assert!(
        text.contains("line 2, column 6: there is no table 'slcie'; perhaps 'slice'\n  from slcie\n       ^"),
        "{text}"
    );
    let text = message("select s.nmae from slice s");
    assert!(text.contains("'s' has no column 'nmae'; perhaps 'name'"), "{text}");
    let text = message("select x.name from slice s");
    assert!(text.contains("'x' is no table of this statement"), "{text}");
    let text = message("select cuont(*) from slice");
    assert!(text.contains("there is no function 'cuont'; perhaps 'count'"), "{text}");
    let text = message("select name from slice join thread_track on slice.track_id = thread_track.id");
    assert!(text.contains("column 'name' is in several tables; name the table: 'table.name'"), "{text}");
}

#[test]
fn syntax_errors_have_a_place() {
    let text = message("select count(* from slice");
    assert!(text.contains("line 1, column 16: syntax error: "), "{text}");
    let text = message("select 1;\n\nselect 2 from");
    assert!(text.contains("line 3, column 14: syntax error: "), "{text}");
    let text = message("select 'open");
    assert!(text.contains("line 1, column 8: syntax error: "), "{text}");
    assert!(message(" ; -- nothing").contains("the SQL has no statement"));
}

#[test]
fn statements_that_write_are_refused() {
    for sql in [
        "copy (select 1) to '/tmp/esatto-query-test.csv'",
        "insert into slice select * from slice",
        "create external table t stored as csv location '/etc/passwd'",
        "create table t (a int)",
        "delete from slice",
        "set datafusion.execution.batch_size = 1",
        "attach 'file' as other",
    ] {
        let text = message(sql);
        assert!(text.contains("is not supported") || text.contains("syntax error"), "{sql}: {text}");
    }
    let text = message("select * from '/etc/passwd'");
    assert!(text.contains("there is no table") || text.contains("syntax error"), "{text}");
}

#[test]
fn parameters_without_a_value_are_told() {
    let text = message("select $tid");
    assert!(text.contains("column 8: the parameter 'tid' has no value; give it with --param tid=VALUE"), "{text}");
}

#[test]
fn missing_traces_and_wrong_arguments_are_told() {
    let output = run(&["/nonexistent.pftrace", "select count(*) from slice"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("/nonexistent.pftrace: cannot read it: No such file"), "{}", stderr(&output));
    assert!(error(&["select 1"]).contains("no trace is named"));
    assert!(error(&[&trace(TRACE), &trace(TRACE)]).contains("the last argument is the SQL"));
    assert!(error(&["/nonexistent/*.pftrace", "select 1"]).contains("no file fits the pattern"));
    assert_eq!(run(&[&trace(TRACE), "select 1", "--memory-limit", "1"]).status.code(), Some(2));
}

#[test]
fn a_query_that_does_not_fit_in_memory_names_the_limit() {
    // A join keeps one side in memory.
    let sql = "select count(*) from (select a.ts + b.ts as k, a.name || b.name as n from slice a, slice b) x
        join (select c.ts + d.ts as k, c.name || d.name as m from slice c, slice d) y on x.k = y.k and n = m";
    let text = error(&[&trace(TRACE), sql, "--memory-limit", "64M"]);
    assert!(text.contains("the query does not fit in memory: "), "{text}");
    assert!(text.contains("raise --memory-limit"), "{text}");
}

#[test]
fn sorting_beyond_the_limit_uses_temporary_files() {
    let sql = "select count(*) as n, sum(case when k >= before then 0 else 1 end) as wrong from (
        select k, coalesce(lag(k) over (order by k), k) as before
        from (select a.dur * 7919 % 10007 + b.ts % 1009 as k from slice a, slice b where b.depth < 2))";
    let args = [&trace(TRACE), sql, "--memory-limit", "24M", "--format", "csv", "--threads", "2"];
    let text = crate::rows(&args);
    assert!(text.starts_with("n,wrong\n") && text.ends_with(",0\n"), "{text}");
}

#[test]
fn deep_and_long_statements_are_no_crash() {
    let deep = format!("select {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(message(&deep).contains("nested too deeply"));
    let long = |count: usize| format!("select {} as sum", vec!["1"; count].join("+"));
    assert!(message(&long(60_000)).contains("a statement has 59999 operators; there can be 1000"));
    let output = run(&[&trace(TRACE), &long(1001), "--format", "csv"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "sum\n1001\n", "{}", stderr(&output));
    let long = format!("select count(*) as n from slice where {}", vec!["depth = 0"; 1000].join(" or "));
    assert!(run(&[&trace(TRACE), &long]).status.success());
}
