//! Calls that the contract does not allow. Upstream's library survives some of them.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use esatto_tests::{Peer, skip, tp};

use crate::build::{linked, succeed};

#[test]
fn null_dangling_pointers_and_repeated_ends_do_nothing() {
    succeed(&mut Command::new(linked("misuse.c")));
}

#[test]
fn malformed_events_are_dropped_or_recorded_in_part() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sound_misuse_events.pftrace");
    succeed(Command::new(linked("misuse_events.c")).arg(&path));
    skip(|| {
        Peer::TraceProcessor.require()?;
        let rows = tp::query(&path, "SELECT name, count(*) AS n FROM slice GROUP BY name").remove(0);
        let count = |name: &str| rows.iter().find(|row| row.text("name") == name).map_or(0, |row| row.int("n"));
        assert_eq!((count("with odd fields"), count("with deep fields"), count("on odd tracks")), (1, 1, 1));
        assert_eq!((count("without extras"), count("the last")), (1, 1));
        Ok(())
    });
}

/// The contract ends the process for use before initialisation, and for setters after registration.
#[test]
fn the_library_says_why_it_ends_the_process() {
    const SIGABRT: i32 = 6;
    let program = linked("aborts.c");
    for number in 0..=16 {
        let mut command = Command::new(&program);
        // AddressSanitizer must not handle the abort or report leaks.
        let output = command.arg(number.to_string()).env("ASAN_OPTIONS", "detect_leaks=0").output().expect("it runs");
        let error = String::from_utf8_lossy(&output.stderr);
        if number == 16 {
            assert!(output.status.success(), "nothing is done: {error}");
            continue;
        }
        assert_eq!(output.status.signal(), Some(SIGABRT), "{number}: {error}");
        let why =
            if number < 5 { "needs PerfettoProducerInProcessInit" } else { "of a data source that is registered" };
        assert!(error.starts_with("perfetto_c: ") && error.contains(why) && error.lines().count() == 1, "{error}");
    }
}

/// Upstream's library does the same, because it is compiled without exceptions. The exception does
/// not reach a handler of the program or of the library.
#[test]
fn an_exception_that_leaves_a_callback_ends_the_process() {
    const SIGABRT: i32 = 6;
    let program = linked("exceptions.cc");
    for thread in ["0", "1"] {
        let output = Command::new(&program).arg(thread).output().expect("it runs");
        assert_eq!(output.status.signal(), Some(SIGABRT), "{thread}: {}", output.status);
        assert!(String::from_utf8_lossy(&output.stderr).contains("cannot catch foreign exceptions"));
    }
}
