//! How complete the file is when a signal ends the program.

use std::os::unix::process::ExitStatusExt as _;
use std::thread;
use std::time::Duration;

use crate::harness::{Folder, missing_end, names, wait_for};
use crate::{SIGHUP, SIGINT, SIGKILL, SIGTERM};

#[test]
fn a_signal_completes_the_file_and_ends_the_program() {
    for number in [SIGINT, SIGTERM, SIGHUP] {
        let folder = Folder::new(&format!("signal-{number}"));
        let program = folder.start("wait", &[]);
        wait_for(&folder.path("ready"));
        program.signal(number);
        // The same signal from a terminal and from the parent process.
        program.signal(number);
        let (status, said) = program.end();
        assert_eq!((status.signal(), &*said), (Some(number), ""));
        assert_eq!(names(&folder.path("t")), ["early", "last"]);
        assert_eq!(missing_end(&folder.path("t")), None);
    }
}

#[test]
fn a_signal_completes_the_files_of_sessions() {
    let folder = Folder::new("session");
    let program = folder.start("wait-with-session", &[("ESATTO_TRACE", "off")]);
    wait_for(&folder.path("ready"));
    program.signal(SIGTERM);
    let (status, said) = program.end();
    assert_eq!((status.signal(), &*said), (Some(SIGTERM), ""));
    assert_eq!(names(&folder.path("session")), ["early", "last"]);
}

#[test]
fn a_program_that_ends_itself_by_a_signal_has_its_status() {
    let folder = Folder::new("own-signal");
    for _ in 0..10 {
        let (status, said) = folder.start("ends-after-its-own-signal", &[]).end();
        assert_eq!((status.signal(), &*said), (Some(SIGTERM), ""));
        assert_eq!(names(&folder.path("t")), ["early"]);
    }
}

#[test]
fn the_handler_of_the_program_decides() {
    let folder = Folder::new("handler");
    let program = folder.start("wait-with-handler", &[]);
    wait_for(&folder.path("ready"));
    program.signal(SIGTERM);
    let (status, said) = program.end();
    assert_eq!((status.code(), &*said), (Some(3), ""));
    assert!(folder.path("handled").exists());
    // The handler of SIGINT is still the default one.
    std::fs::remove_file(folder.path("ready")).expect("a file");
    let program = folder.start("wait-with-handler", &[]);
    wait_for(&folder.path("ready"));
    program.signal(SIGINT);
    assert_eq!(program.end().0.signal(), Some(SIGINT));
    assert_eq!(names(&folder.path("t")), ["early", "last"]);
}

#[test]
fn a_later_handler_decides_even_if_it_calls_the_previous_one() {
    let folder = Folder::new("later-handler");
    let program = folder.start("wait-with-later-handler", &[]);
    wait_for(&folder.path("ready"));
    program.signal(SIGTERM);
    // By the parent process, which knows nothing of the terminal.
    thread::sleep(Duration::from_millis(700));
    program.signal(SIGTERM);
    let (status, said) = program.end();
    assert_eq!((status.code(), &*said), (Some(0), ""));
    assert_eq!(names(&folder.path("t")), ["early", "last"]);
}

#[test]
fn a_killed_program_loses_a_quarter_of_a_second() {
    let folder = Folder::new("killed");
    let program = folder.start("wait-plain", &[]);
    wait_for(&folder.path("ready"));
    // A machine under load may take longer, so wait for the event, but not as long as twice the
    // period of a service elsewhere.
    thread::sleep(Duration::from_millis(450));
    program.signal(SIGKILL);
    let (status, _) = program.end();
    assert_eq!(status.signal(), Some(SIGKILL));
    assert_eq!(names(&folder.path("t")), ["early", "last"]);
    let expected = "End       missing: the program or the service that wrote the file was killed, the disk was full, or \
                    the recording still runs; the last events may be lost";
    assert_eq!(missing_end(&folder.path("t")).as_deref(), Some(expected));
}

#[test]
fn a_program_that_ends_during_the_hand_over_completes_its_file() {
    let folder = Folder::new("ends-meanwhile");
    for end in ["drop", "finish", "exit"] {
        let (status, said) = folder.start("ends-during-hand-over", &[("TEST_END", end)]).end();
        assert_eq!(status.signal(), Some(SIGINT), "{end}");
        assert_eq!(said, "", "{end}");
        assert_eq!(missing_end(&folder.path("t")), None, "{end}");
        assert_eq!(names(&folder.path("t")), ["early", "last"], "{end}");
    }
}

#[test]
fn a_handler_for_one_signal_is_called_once() {
    let folder = Folder::new("once-only");
    let program = folder.start("wait-with-handler-for-one-signal", &[]);
    wait_for(&folder.path("ready"));
    program.signal(SIGTERM);
    wait_for(&folder.path("handled"));
    thread::sleep(Duration::from_millis(600));
    program.signal(SIGTERM);
    assert_eq!(program.end().0.signal(), Some(SIGTERM));
    assert_eq!(std::fs::read_to_string(folder.path("handled")).expect("a file"), "once");
}

#[test]
fn a_signal_acts_without_the_socket_of_its_handler() {
    let folder = Folder::new("no-socket");
    let program = folder.start("closes-all-descriptors", &[]);
    wait_for(&folder.path("ready"));
    program.signal(SIGTERM);
    assert_eq!(program.end().0.signal(), Some(SIGTERM));
}

#[test]
fn a_forked_child_can_catch_signals() {
    let folder = Folder::new("child-catches");
    folder.run("forks-and-catches", &[]);
    let files = folder.files();
    let own = files.iter().find(|name| name.starts_with("t.")).expect("the child's file");
    assert_eq!(names(&folder.path(own)), ["of the child"]);
    assert_eq!(missing_end(&folder.path(own)), None);
}
