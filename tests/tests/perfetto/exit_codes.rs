//! §15: exit codes. Perfetto's command returns 0 when the service refuses, ours 1, unless the
//! environment asks for the oddities.

use crate::rows::{REFUSED, Row, SHORT, compare, same};

const FILES: &[(&str, &str)] = &[("c.cfg", SHORT), ("refused.cfg", REFUSED)];

same! {
    trace_saved: ["-c", "c.cfg", "--txt", "-o", "t"] => 0;
    session_refused: ["-c", "refused.cfg", "--txt", "-o", "t"] => 1;
    clone_failed: ["--clone", "77", "-o", "t"] => 1;
    clone_by_name_failed: ["--clone-by-name", "nobody", "-o", "t"] => 1;
    nothing_for_a_bugreport: ["--save-for-bugreport"] => 1;
    no_session_for_any_bugreport: ["--save-all-for-bugreport"] => 0;
    no_such_detached_session: ["--attach=nobody"] => 2;
    is_not_detached: ["--is_detached=nobody"] => 2;
    output_cannot_be_made: ["-t", "200ms", "-o", "/nowhere/t"] => 1;
}

#[test]
fn no_service() {
    for args in [&["-t", "200ms", "-o", "t"][..], &["--query"], &["--attach=k"], &["--is_detached=k"]] {
        compare(Row { args, without_service: true, ..Row::default() }, |ours, _| {
            assert_eq!(ours.code, Some(1), "{args:?}: {}", ours.stderr);
            assert!(ours.stderr.contains("Could not connect to the traced socket"), "{args:?}: {}", ours.stderr);
        });
    }
}

/// The result of a query goes to stdout, and nothing of the diagnostics.
#[test]
fn diagnostics_go_to_stderr() {
    compare(Row { args: &["-t", "200ms", "-o", "t"], ..Row::default() }, |ours, theirs| {
        assert!(ours.stdout.is_empty() && theirs.stdout.is_empty());
    });
}
