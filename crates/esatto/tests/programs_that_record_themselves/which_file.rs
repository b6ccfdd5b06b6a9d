//! Which file is written, and what it contains.

use std::thread;
use std::time::Duration;

use esatto_trace::Trace;

use crate::SIGKILL;
use crate::harness::{Folder, names};

#[test]
fn start_reads_the_variable() {
    let folder = Folder::new("builder");
    assert_eq!(folder.run("builder", &[]), "");
    assert_eq!(folder.files(), ["t"]);
    assert_eq!(names(&folder.path("t")), ["one"]);
    folder.run("builder", &[("ESATTO_TRACE", "off")]);
    folder.run("builder", &[("ESATTO_TRACE", "")]);
    assert_eq!(folder.files(), ["t"]);
}

#[test]
fn slow_and_debug_are_recorded_if_asked_for() {
    let folder = Folder::new("tags");
    for (patterns, expected) in [
        ("*", &["one"][..]),
        ("app.slow", &["two"]),
        ("app*", &["one"]),
        ("tag:slow", &["one", "two"]),
        ("debugging,tag:slow", &["three", "two"]),
        ("tag:slow,tag:debug", &["one", "three", "two"]),
        ("tag:*,-app", &["three", "two"]),
    ] {
        folder.run("builder", &[("ESATTO_TRACE_CATEGORIES", patterns)]);
        assert_eq!(names(&folder.path("t")), expected, "{patterns}");
    }
}

#[test]
fn a_variable_that_nothing_reads_is_reported() {
    let folder = Folder::new("unread");
    let expected = "esatto: ESATTO_TRACE is set, but this program has not read it: \
                    record it with `esatto record`, or, in Rust, call `file_from_env` on its `Tracing::builder()`\n";
    assert_eq!(folder.run("builder-that-does-not-read", &[]), expected);
    assert_eq!(folder.run("builder-that-does-not-read", &[("ESATTO_TRACE", "off")]), "");
    // Also to those who end it with a signal.
    let program = folder.start("builder-that-runs-on", &[]);
    thread::sleep(Duration::from_millis(2500));
    program.signal(SIGKILL);
    assert_eq!(program.end().1, expected);
    assert!(folder.files().is_empty());
}

#[test]
fn a_process_records_a_file_once() {
    let folder = Folder::new("once");
    assert_eq!(folder.run("everything", &[]), "");
    assert_eq!(folder.files(), ["t"]);
    let bytes = std::fs::read(folder.path("t")).expect("a file");
    let trace = Trace::read(&bytes[..]);
    let names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref()).collect();
    assert_eq!(names, ["once", "until the last"]);
}

#[test]
fn a_file_without_events_is_explained() {
    let folder = Folder::new("empty");
    let said = folder.run("forgotten", &[]);
    let want = "t has no event: no trace point ran while the file was written; keep the recording";
    assert!(said.contains(want) && said.contains("look at their filters (`RUST_LOG`)"), "{said}");
    let said = folder.run("builder", &[("ESATTO_TRACE_CATEGORIES", "ap")]);
    let want = "t has no event: ESATTO_TRACE_CATEGORIES \"ap\" leaves out all categories; \
                did you mean `app`? Known are: app, app.slow, ";
    assert!(said.contains(want), "{said}");
    assert_eq!(folder.run("builder", &[]), "");
}

#[test]
fn a_file_without_events_because_of_tags_is_explained() {
    let folder = Folder::new("empty-by-tag");
    let off = "esatto: t has no event: categories with the tag `debug` are recorded only on request (debugging)";
    let said = folder.run("only-debug", &[]);
    assert_eq!(said, format!("{off}; set ESATTO_TRACE_CATEGORIES=tag:debug\n"));
    let said = folder.run("only-debug", &[("ESATTO_TRACE_CATEGORIES", "*,tag:slow")]);
    assert_eq!(said, format!("{off}; add tag:debug to ESATTO_TRACE_CATEGORIES\n"));
    assert_eq!(folder.run("only-debug", &[("ESATTO_TRACE_CATEGORIES", "tag:debug")]), "");
    assert_eq!(names(&folder.path("t")), ["one", "two"]);
}

#[test]
fn a_file_that_cannot_be_created_is_explained() {
    let folder = Folder::new("cannot-create");
    let said = |file| folder.run("prints-its-error", &[("ESATTO_TRACE", file)]);
    for (file, remedy) in [
        ("none/t", "No such file or directory (os error 2); create its folder first"),
        ("/proc/t", "; name a file in a folder that takes files"),
        (".", "Is a directory (os error 21); name a file in this folder"),
        // Even root may not.
        ("/sys/t", "; name a file that this user may write, in a folder where it may create files"),
    ] {
        let said = said(file);
        assert!(said.starts_with(&format!("cannot create {file}: ")) && said.ends_with(remedy), "{said}");
    }
}

#[test]
fn a_file_that_is_no_trace_is_kept() {
    let folder = Folder::new("no-trace");
    for content in ["fn main() {}\n", "\n\n# A heading\n", "\u{7f}ELF", "\0\0\0"] {
        std::fs::write(folder.path("notes"), content).expect("a file");
        let said = folder.run("is-refused", &[("ESATTO_TRACE", "notes")]);
        let expected = "cannot write notes: it has content that is no trace; remove it, or name another file";
        assert_eq!(said, expected);
        assert_eq!(std::fs::read_to_string(folder.path("notes")).expect("it is there"), content);
    }
}

#[test]
fn names_and_tags_that_no_category_has_are_reported() {
    let folder = Folder::new("no-tag");
    let said = |patterns| folder.run("builder", &[("ESATTO_TRACE_CATEGORIES", patterns)]);
    let expected = "esatto: ESATTO_TRACE_CATEGORIES: no category has the tag `slwo`; known: debug, slow\n";
    assert_eq!(said("app,tag:slwo"), expected);
    let expected = "esatto: ESATTO_TRACE_CATEGORIES: no category matches `debuging`; \
                    did you mean `debugging`? Known are: app, app.slow, debugging\n";
    assert_eq!(said("app,debuging"), expected);
    let expected = "esatto: ESATTO_TRACE_CATEGORIES: `-debuging` leaves out no category; did you mean `-debugging`?\n";
    assert_eq!(said("app,-debuging"), expected);
    let expected = "esatto: ESATTO_TRACE_CATEGORIES: no category matches `*bugging` (`*` stands only at the end); \
                    did you mean `debugging`? Known are: app, app.slow, debugging\n";
    assert_eq!(said("app,*bugging"), expected);
    for patterns in ["app,other*,-nothing", "app,tag:slow", "app,tag:debug", "app,tag:sl*", "app,tag:*"] {
        assert_eq!(said(patterns), "", "{patterns}");
    }
}

#[test]
fn threads_that_begin_a_recording_share_it() {
    let folder = Folder::new("threads");
    assert_eq!(folder.run("begins-on-many-threads", &[]), "");
    assert_eq!(folder.files(), ["t"]);
    assert_eq!(names(&folder.path("t")), ["one"]);
}

#[test]
fn a_second_recording_of_a_process_keeps_the_first() {
    let folder = Folder::new("shutdown");
    // A file of an earlier process is replaced.
    folder.run("everything", &[]);
    let program = folder.start("shuts-down-and-begins-again", &[]);
    let own = format!("t.{}", program.pid());
    let (status, said) = program.end();
    assert!(status.success(), "{said}");
    assert_eq!(said, format!("esatto: t has what this process recorded before: this one writes {own}\n"));
    assert_eq!(folder.files(), ["t", &own]);
    assert_eq!(
        (names(&folder.path("t")), names(&folder.path(&own))),
        (vec!["before".to_owned()], vec!["after".to_owned()])
    );
}

#[test]
fn an_exec_keeps_what_the_process_has_recorded() {
    for drops in [false, true] {
        let folder = Folder::new(if drops { "exec-after-end" } else { "exec" });
        let env = [("TEST_NEXT", "execs"), ("TEST_DROPS", "")];
        // A file of an earlier process is replaced.
        folder.run("everything", &[]);
        let program = folder.start("execs", if drops { &env } else { &env[..1] });
        let own = format!("t.{}", program.pid());
        let (status, said) = program.end();
        assert!(status.success(), "{said}");
        let line = |file: &str| format!("esatto: t has what this process recorded before: this one writes {file}\n");
        assert_eq!(said, format!("{}{}", line(&own), line(&format!("{own}.2"))));
        assert_eq!(folder.files(), ["t".to_owned(), own.clone(), format!("{own}.2")]);
        for (file, name) in [("t", "before the exec"), (&own, "before the exec"), (&format!("{own}.2"), "one")] {
            assert_eq!(names(&folder.path(file)), [name], "{file}");
        }
    }
}
