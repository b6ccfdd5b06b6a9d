//! Programs that fork, start others, or start together.

use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Folder, names, wait_for};
use crate::{DEADLINE, SIGKILL};

#[test]
fn a_spawned_child_writes_a_file_of_its_own() {
    let folder = Folder::new("spawned");
    let said = folder.run("parent", &[]);
    let files = folder.files();
    assert!(files.len() == 2 && files[0] == "t" && files[1].starts_with("t."), "{files:?}");
    let expected = format!("esatto: another process is writing t: this one writes {}\n", files[1]);
    assert_eq!(said, expected);
    assert_eq!(names(&folder.path("t")), ["of the parent"]);
    assert_eq!(names(&folder.path(&files[1])), ["one"]);
}

#[test]
fn a_forked_child_keeps_the_file_of_a_parent_that_has_ended() {
    let folder = Folder::new("outlived");
    let program = folder.start("forks-and-ends-first", &[]);
    let child_is_done = folder.path("ready");
    wait_for(&child_is_done);
    let (status, said) = program.end();
    let files = folder.files();
    assert!(status.success() && files.len() == 3 && files[2].starts_with("t."), "{files:?}");
    let expected = "esatto: t has what the process recorded that this one was forked from: this one writes t.";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(names(&folder.path("t")), ["of the parent"]);
    assert_eq!(names(&folder.path(&files[2])), ["of the child"]);
}

#[test]
fn a_program_that_replaces_the_trace_of_its_job_says_so() {
    let folder = Folder::new("job");
    let said = |script: &str| {
        let mut shell = folder.command("builder", "sh");
        let program = std::env::current_exe().expect("this file");
        shell.args(["-c", script]).arg(program).args(["--exact", "a_program", "--nocapture", "--quiet"]);
        let output = shell.output().expect("sh is there");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    // The shell of the second command line is another job.
    assert_eq!(said(r#""$0" "$@"; true"#), "");
    assert_eq!(said(r#""$0" "$@"; true"#), "");
    let told = said(r#""$0" "$@"; "$0" "$@"; true"#);
    let expected = "esatto: t replaces the trace that another program of this job has written until ";
    assert!(told.starts_with(expected) && told.lines().count() == 1 && told.contains("`%p`"), "{told}");
    assert_eq!(said(r#"ESATTO_TRACE=t-%p; "$0" "$@"; "$0" "$@"; true"#), "");
    assert_eq!(folder.files().len(), 3, "{:?}", folder.files());
}

#[test]
fn two_programs_that_start_together_write_two_files() {
    let folder = Folder::new("together");
    let programs: Vec<_> = (0..8).map(|_| folder.start("wait-plain", &[])).collect();
    for program in &programs {
        // Each has written its file: to its own name, or to the common one.
        let own = folder.path(&format!("t.{}", program.pid()));
        let begin = Instant::now();
        while !own.exists() && folder.files().len() < 9 {
            assert!(begin.elapsed() < DEADLINE, "{:?}", folder.files());
            thread::sleep(Duration::from_millis(5));
        }
    }
    wait_for(&folder.path("ready"));
    thread::sleep(Duration::from_secs(2));
    for program in programs {
        program.signal(SIGKILL);
        program.end();
    }
    let files = folder.files();
    assert_eq!(files.iter().filter(|name| name.starts_with('t')).count(), 8, "{files:?}");
    for name in files.iter().filter(|name| name.starts_with('t')) {
        assert_eq!(names(&folder.path(name)), ["early", "last"], "{name}");
    }
}

#[test]
fn a_forked_child_says_that_it_is_not_recorded() {
    let folder = Folder::new("forked");
    let said = folder.run("forks", &[]);
    assert!(said.starts_with("esatto: t contains nothing of the forked process "), "{said}");
    assert!(said.ends_with(": call `trace_from_env` or `trace_to_file` after the fork\n"), "{said}");
    assert_eq!((folder.files(), names(&folder.path("t"))), (vec!["t".to_owned()], vec!["of the parent".to_owned()]));
}

#[test]
fn a_forked_child_that_traces_in_vain_says_so() {
    let folder = Folder::new("in-vain");
    let said = |child| folder.run("forks-in-a-session", &[("ESATTO_TRACE", "off"), ("TEST_CHILD", child)]);
    for child in ["traces", "uses a new category", "forks"] {
        let said = said(child);
        assert!(said.starts_with("esatto: the forked process "), "{child}: {said}");
        let remedy = " is not recorded, although its parent was: call `Tracing::builder()…start()` after the fork, or in C `esatto_init`\n";
        assert!(said.ends_with(remedy) && said.lines().count() == 1, "{child}: {said}");
    }
    for child in ["nothing", "starts", "traces what is off"] {
        assert_eq!(said(child), "", "{child}");
    }
}

#[test]
fn a_forked_child_can_be_recorded() {
    let folder = Folder::new("forked-traces");
    let said = folder.run("forks-and-traces", &[]);
    let files = folder.files();
    assert!(files.len() == 2 && files[1].starts_with("t."), "{files:?}");
    assert_eq!(said, format!("esatto: another process is writing t: this one writes {}\n", files[1]));
    assert_eq!(names(&folder.path("t")), ["of the parent"]);
    assert_eq!(names(&folder.path(&files[1])), ["of the child"]);
}

#[test]
fn a_forked_child_does_not_keep_the_file_in_use() {
    let folder = Folder::new("released");
    folder.run("forks-and-ends", &[]);
    assert_eq!(folder.run("builder", &[]), "");
    assert_eq!(folder.files(), ["t"]);
    assert_eq!(names(&folder.path("t")), ["one"]);
}

#[test]
fn a_forked_child_ends_although_a_lock_of_its_parent_is_held() {
    let folder = Folder::new("locked");
    let said = folder.run("forks-with-locks", &[]);
    assert!(said.contains("t contains nothing of the forked process "), "{said}");
}

#[test]
fn files_of_other_processes_with_the_same_number_are_kept() {
    let folder = Folder::new("same-number");
    let said = folder.run("finds-its-own-name-taken", &[]);
    let own = folder.files().into_iter().find(|name| name.ends_with(".2")).expect("a further name");
    assert!(said.ends_with(&format!("another process is writing t: this one writes {own}\n")), "{said}");
    assert_eq!(names(&folder.path(&own)), ["one"]);
    let kept = std::fs::read_to_string(folder.path(own.strip_suffix(".2").expect("it ends so")));
    assert_eq!(kept.expect("a file"), "of another container");
}
