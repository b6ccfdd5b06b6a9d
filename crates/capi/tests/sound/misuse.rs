//! What the contract does not allow, and upstream survives all the same or would not.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use esatto_tests::{Peer, skip, tp};

use crate::build::{linked, succeed};

#[test]
fn null_and_dangling_pointers_and_things_that_are_over_do_nothing() {
    succeed(&mut Command::new(linked("misuse.c")));
}

#[test]
fn odd_events_are_left_out_or_recorded_as_far_as_they_make_sense() {
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

/// Those of which the contract says so: use before initialisation, and setters after registration.
#[test]
fn what_ends_the_process_says_why() {
    const SIGABRT: i32 = 6;
    let program = linked("aborts.c");
    for number in 0..=16 {
        let mut command = Command::new(&program);
        // Under AddressSanitizer an abort is one all the same, and what was made is not freed.
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

/// As with upstream's library, which is compiled without exceptions: it reaches neither the program's own handler nor the library's.
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
