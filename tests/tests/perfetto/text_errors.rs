//! §16: mistakes in text configs, which both commands report at the same places.

use crate::rows::{Row, compare, run_ours};
use esatto_tests::{Harness, Implementation, Peer};

/// Places of the mistakes that a command reports: line and column.
fn places(stderr: &str) -> Vec<String> {
    let lines = stderr.lines().filter_map(|line| line.strip_prefix("c.cfg:")?.split_once(" error: "));
    lines.map(|(place, _)| place.to_owned()).collect()
}

/// Runs both commands with this config.
fn same_places(config: &str) {
    esatto_tests::skip(|| {
        Peer::Official.require()?;
        let found = [Implementation::Ours, Implementation::Theirs].map(|client| {
            let harness = Harness::with_perfetto(client);
            harness.write("c.cfg", config);
            let output = harness.perfetto(&["-c", "c.cfg", "--txt", "-o", "t"]).output().expect("it runs");
            assert_eq!(output.status.code(), Some(1));
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(stderr.contains("The trace config is invalid, bailing out."), "{stderr}");
            (places(&stderr), stderr)
        });
        let [(ours, _), (theirs, _)] = &found;
        assert_eq!(ours, theirs, "{found:#?}");
        Ok(())
    });
}

macro_rules! mistakes {
    ($($name:ident: $config:expr;)*) => {
        $(#[test]
        fn $name() {
            same_places($config);
        })*
    };
}

// The reference gives the columns of the first line one too small, so these begin on the second.
mistakes! {
    unknown_field: "\nnothing: 1\n";
    unknown_nested_field: "\nbuffers {\n  size_kbb: 4\n}\n";
    wrong_type: "\nduration_ms: true\n";
    wrong_bool: "\nwrite_into_file: maybe\n";
    wrong_enum: "\nbuffers {\n  fill_policy: SOMETIMES\n}\n";
    field_twice: "\nduration_ms: 1\nduration_ms: 2\n";
    several_mistakes: "\nbuffers {\n  size_kbb: 3\n  fill_policy: FOO\n}\nxx: 1\n";
    unmatched_brace: "\nduration_ms: 1\n}\n";
}

/// Theirs names the string, ours the escape.
#[test]
fn unknown_escape() {
    let config = &[("c.cfg", "\nunique_session_name: \"a\\qb\"\n")];
    let row = Row { args: &["-c", "c.cfg", "--txt", "-o", "t"], files: config, ..Row::default() };
    compare(row, |ours, theirs| {
        for ran in [ours, theirs] {
            let message = "Unknown string escape in unique_session_name in proto TraceConfig";
            assert!(ran.stderr.contains("c.cfg:2:") && ran.stderr.contains(message), "{}", ran.stderr);
        }
    });
}

#[test]
fn the_place_is_underlined() {
    let config = &[("c.cfg", "\nbuffers {\n  size_kbb: 3\n}\n")];
    let row = Row { args: &["-c", "c.cfg", "--txt", "-o", "t"], files: config, ..Row::default() };
    compare(row, |ours, theirs| {
        for ran in [ours, theirs] {
            assert!(ran.stderr.contains("c.cfg:3:3 error: No field named \"size_kbb\" in proto BufferConfig"));
            assert!(ran.stderr.contains("\n  size_kbb: 3\n  ^~~~~~~~\n"), "{}", ran.stderr);
        }
    });
}

/// Perfetto has the option since v58.
#[test]
fn txt_lossy_leaves_out_what_is_unknown() {
    const CONFIG: &str = "duration_ms: 200 nothing: 1 buffers { size_kb: 64 fill_policy: SOMETIMES other { a: 1 } }";
    let files = &[("c.cfg", CONFIG)];
    let args = &["-c", "c.cfg", "--txt-lossy", "-o", "t"];
    let ran = run_ours(Row { args, files, ..Row::default() });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.config("t").contains("size_kb: 64") && !ran.config("t").contains("fill_policy"), "{}", ran.config("t"));
    // Text that is none stays a mistake.
    let ran = run_ours(Row { args, files: &[("c.cfg", "duration_ms: } 3")], ..Row::default() });
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
}
