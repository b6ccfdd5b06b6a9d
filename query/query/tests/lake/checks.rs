//! `lake check` finds what is wrong, says it in a line, and repairs it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{TRACE, check, contents, csv, export, folder, run, stderr, trace};

fn new_lake(name: &str) -> PathBuf {
    let lake = folder(&format!("check-{name}")).join("lake");
    export(&[&trace(TRACE), &trace("official-v56-deflate.pftrace")], &lake, &["--partition", "date", "--jobs", "1"]);
    lake
}

/// Runs the check, and returns its lines and its status.
fn lines(lake: &Path, more: &[&str]) -> (Vec<String>, Option<i32>) {
    let lake = lake.to_string_lossy();
    let mut args = vec!["lake", "check", &lake];
    args.extend(more);
    let output = run(&args);
    assert_eq!(stderr(&output), "", "{args:?}");
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    (text.lines().map(str::to_owned).collect(), output.status.code())
}

fn slices(lake: &Path) -> PathBuf {
    lake.join(contents(lake).into_iter().map(|(name, _)| name).find(|name| name.starts_with("slice/")).expect("slices"))
}

/// Checks that one problem is found, repaired, and gone, and that the export brings the trace back.
fn one_problem(lake: &Path, more: &[&str], part: &str) {
    let (found, status) = lines(lake, more);
    assert_eq!((found.len(), status), (2, Some(1)), "{found:?}");
    assert!(found[0].contains(part), "{found:?}");
    assert!(found[1].ends_with(": 1 problem"), "{found:?}");
    let (repaired, status) = lines(lake, &[more, &["--repair"]].concat());
    assert_eq!(status, Some(0), "{repaired:?}");
    assert!(repaired[0].starts_with("repaired: ") && repaired[0].contains(part.trim_end_matches('-')), "{repaired:?}");
    let (after, status) = lines(lake, &[]);
    assert_eq!((after.len(), status), (1, Some(0)), "{after:?}");
    export(&[&trace(TRACE), &trace("official-v56-deflate.pftrace")], lake, &[]);
    assert_eq!(check(lake).traces, 2);
    assert_eq!(csv(&[&lake.to_string_lossy()], "select count(*) from slice"), "6505\n");
}

#[test]
fn a_sound_lake_has_no_problem() {
    let lake = new_lake("sound");
    for more in [&[][..], &["--quick"], &["--repair"]] {
        let (lines, status) = lines(&lake, more);
        assert_eq!((lines.len(), status), (1, Some(0)), "{lines:?}");
        assert!(lines[0].starts_with("2 traces, ") && lines[0].ends_with(": sound"), "{lines:?}");
    }
}

#[test]
fn a_missing_file_is_found() {
    let lake = new_lake("missing");
    fs::remove_file(slices(&lake)).expect("a file can be removed");
    one_problem(&lake, &["--quick"], "the file of trace 0 is missing");
}

#[test]
fn a_file_of_another_size_is_found() {
    let lake = new_lake("size");
    let path = slices(&lake);
    let bytes = fs::read(&path).expect("a file can be read");
    fs::write(&path, &bytes[..bytes.len() - 1]).expect("a file can be written");
    one_problem(&lake, &["--quick"], "but the catalogue says");
}

#[test]
fn a_changed_file_is_found() {
    let lake = new_lake("changed");
    let path = slices(&lake);
    let mut bytes = fs::read(&path).expect("a file can be read");
    bytes[10] ^= 1;
    fs::write(&path, &bytes).expect("a file can be written");
    assert_eq!(lines(&lake, &["--quick"]).1, Some(0), "a quick check reads no files");
    one_problem(&lake, &[], "its content has changed");
}

#[test]
fn a_stray_file_is_found() {
    let lake = new_lake("stray");
    let path = slices(&lake);
    fs::copy(&path, path.with_file_name("0000009-0000000000000000.parquet")).expect("a file can be copied");
    one_problem(&lake, &[], "it belongs to no trace of the catalogue");
}

#[test]
fn a_foreign_file_is_told_but_stays() {
    let lake = new_lake("foreign");
    fs::write(lake.join("notes.txt"), "mine").expect("a file can be written");
    let (found, status) = lines(&lake, &["--repair"]);
    assert_eq!(status, Some(1));
    assert!(found[0].ends_with("notes.txt: it is no file of a lake; remove it"), "{found:?}");
    assert!(lake.join("notes.txt").exists());
}

#[test]
fn a_torn_row_of_the_catalogue_is_found() {
    let lake = new_lake("row");
    let row =
        contents(&lake).into_iter().map(|(name, _)| name).find(|name| name.starts_with("traces/")).expect("a row");
    let path = lake.join(row);
    let bytes = fs::read(&path).expect("a file can be read");
    fs::write(&path, &bytes[..bytes.len() / 2]).expect("a file can be written");
    let (found, status) = lines(&lake, &[]);
    assert_eq!(status, Some(1));
    assert!(found[0].contains("it is no row of a catalogue"), "{found:?}");
    assert!(found.iter().any(|line| line.contains("it belongs to no trace of the catalogue")), "{found:?}");
    let output = run(&[&lake.to_string_lossy(), "select 1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it is no row of a catalogue"), "{}", stderr(&output));
    // The first repair removes the row, and with it the files.
    assert_eq!(lines(&lake, &["--repair"]).1, Some(0));
    assert_eq!(lines(&lake, &[]).1, Some(0));
    export(&[&trace(TRACE), &trace("official-v56-deflate.pftrace")], &lake, &[]);
    assert_eq!(check(&lake).traces, 2);
}

#[test]
fn interrupted_exports_are_told_and_repaired() {
    let lake = new_lake("interrupted");
    let staging = lake.join("_staging/0000007-aa");
    fs::create_dir_all(&staging).expect("a folder can be made");
    fs::write(staging.join("slice.parquet"), "half").expect("a file can be written");
    one_problem(&lake, &[], "an export was interrupted: its files were not all written");
}

#[test]
fn a_later_version_is_refused() {
    let lake = new_lake("later");
    let text = fs::read_to_string(lake.join("lake.json")).expect("a file can be read");
    let text = text.replace("\"schema_version\":1", "\"schema_version\":2");
    fs::write(lake.join("lake.json"), text).expect("a file can be written");
    let place = lake.to_string_lossy();
    for args in [&["lake", "check", &place][..], &[&place, "select 1"], &["export", &trace(TRACE), "--to", &place]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let message = stderr(&output);
        assert!(message.contains("version 2, but this program knows 1 to 1; use a newer Esatto"), "{message}");
    }
}

#[test]
fn a_huge_file_is_not_read_into_memory() {
    let lake = new_lake("huge");
    let file = fs::File::options().write(true).open(lake.join("lake.json")).expect("a file can be opened");
    file.set_len(1 << 42).expect("a file can have holes");
    let output = run(&[&lake.to_string_lossy(), "select 1"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("lake.json has 4398046511104 bytes"), "{}", stderr(&output));
}
