//! Statements from the standard input, one after the other.

use std::io::Write as _;
use std::process::{Output, Stdio};

use crate::{TRACE, folder, stderr, trace};

/// Gives the program lines. Returns what it did.
fn told(lines: &str) -> Output {
    told_of(&[&trace(TRACE)], lines)
}

fn told_of(traces: &[&str], lines: &str) -> Output {
    let mut command = crate::command(&[&["--interactive", "--format", "csv"], traces].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn rows(lines: &str) -> String {
    let output = told(lines);
    assert_eq!(stderr(&output), "", "{lines}");
    assert!(output.status.success(), "{lines}");
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}

#[test]
fn statements_have_several_lines_and_share_their_tables() {
    let lines =
        "create table t as\n  select name, dur from slice -- ;\n  where dur > 1000;\n\nselect count(*) as n\nfrom t;
        select 1 as a; select 2 as b;\nselect ';' as c";
    let long = crate::csv("select count(*) from slice where dur > 1000");
    assert_eq!(rows(lines), format!("n\n{long}a\n1\n\nb\n2\nc\n;\n"));
}

#[test]
fn commands_list_tables_set_parameters_and_choose_the_place_of_rows() {
    let text = rows(".tables thread_st\n.describe slice\n.traces\n");
    assert!(text.starts_with("thread_state"), "{text}");
    assert!(text.contains("arg_set_id") && text.contains(TRACE), "{text}");
    let folder = folder("interactive");
    let (sql, out) = (folder.join("a.sql"), folder.join("rows.csv"));
    std::fs::write(&sql, "select $v as v;").expect("a file");
    let lines = format!(
        ".param v 7\n.read {}\n.output {}\nselect 8 as w;\n.output\nselect 9 as x;",
        sql.display(),
        out.display()
    );
    assert_eq!(rows(&lines), "v\n7\nx\n9\n");
    assert_eq!(std::fs::read_to_string(out).expect("it is there"), "w\n8\n");
    assert_eq!(rows(".timer on\nselect 1 as a;\n.quit\nselect 2;").lines().next(), Some("a"));
}

#[test]
fn errors_are_told_and_the_next_statement_runs() {
    let output = told("select nme from slice;\n.nothing\nselect 1 as a;\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n1\n");
    let text = stderr(&output);
    assert!(text.contains("perhaps 'name'") && text.contains("there is no command '.nothing'"), "{text}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn damaged_traces_are_told_with_the_statement_that_finds_them() {
    let torn = folder("interactive-torn").join("torn.pftrace");
    let bytes = std::fs::read(trace(TRACE)).expect("a trace");
    std::fs::write(&torn, &bytes[..bytes.len() / 2]).expect("a file");
    let torn = torn.to_string_lossy();
    let output = told_of(&[&trace(TRACE), &torn], "select count(*) as n from slice;\nselect 1 as a;\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n1503\na\n1\n", "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.starts_with(&*torn) && text.lines().count() == 1, "{text}");
    assert_eq!(output.status.code(), Some(3));
}
