//! Damaged traces are reported and counted, and the exit status tells of them.

use crate::{TRACE, folder, run, stderr, trace};

const SQL: &str = "select count(*) as n from slice";

#[test]
fn among_several_traces_damaged_ones_have_no_rows() {
    let folder = folder("damaged");
    let bytes = std::fs::read(trace(TRACE)).expect("a trace can be read");
    std::fs::write(folder.join("a.pftrace"), &bytes).expect("a file can be written");
    std::fs::write(folder.join("b.pftrace"), &bytes[..bytes.len() / 2]).expect("a file can be written");
    std::fs::write(folder.join("c.pftrace"), "this is no trace").expect("a file can be written");
    let pattern = format!("{}/*.pftrace", folder.display());
    let output = run(&[&pattern, SQL, "--format", "csv"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n1503\n");
    assert_eq!(output.status.code(), Some(3));
    let message = stderr(&output);
    assert!(message.contains("b.pftrace: ") && message.contains("c.pftrace: "), "{message}");
    assert!(message.contains("2 of 3 traces are damaged; rows of 2 are left out"), "{message}");

    let output = run(&[&pattern, SQL, "--format", "csv", "--broken", "keep"]);
    let kept: u32 = String::from_utf8_lossy(&output.stdout).trim_start_matches("n\n").trim().parse().expect("a number");
    assert!(kept > 1503 && kept < 3000, "{kept}");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("rows of 1 are left out"), "{}", stderr(&output));
}

#[test]
fn a_single_damaged_trace_has_the_rows_that_can_be_read() {
    let folder = folder("single");
    let bytes = std::fs::read(trace(TRACE)).expect("a trace can be read");
    let path = folder.join("torn.pftrace");
    std::fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file can be written");
    let output = run(&[&path.to_string_lossy(), SQL, "--format", "csv"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rows: u32 = text.trim_start_matches("n\n").trim().parse().expect("a number");
    assert!(rows > 100 && rows < 1503, "{rows}");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn a_trace_that_does_not_fit_in_memory_is_told() {
    let output = run(&[&trace("official-v56-ring-buffer-wrapped.pftrace"), SQL, "--memory-limit", "1M"]);
    assert!(output.status.code().is_some(), "{:?}", output.status);
    let folder = folder("large");
    let path = folder.join("large.pftrace");
    let file = std::fs::File::create(&path).expect("a file can be made");
    file.set_len(64 << 20).expect("it can be large");
    let output = run(&[&path.to_string_lossy(), SQL, "--memory-limit", "16M", "--format", "csv"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("64 MiB, more than the 8 MiB"), "{}", stderr(&output));
}
