//! Programs that record themselves into a file: which file, and how complete it is however they
//! end. Each test runs this file again, as such a program.

#![allow(missing_docs, reason = "tests")]
#![cfg(target_os = "linux")]

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use esatto::{Backend, Session, SessionConfig, Tracing};
use esatto_trace::{Summary, Trace};

esatto::categories! {
    static APP = "app";
    static SLOW = "app.slow", tags: ["slow"];
    static DEBUG = "debugging", tags: ["debug"];
}

/// Says what this process does instead of testing.
const ROLE: &str = "TEST_ROLE";
/// A test that takes longer than this has failed.
const DEADLINE: Duration = Duration::from_secs(60);

const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn _exit(status: i32) -> !;
    safe fn close(descriptor: i32) -> i32;
    safe fn signal(signal: i32, handler: extern "C" fn(i32)) -> usize;
    fn kill(process: i32, signal: i32) -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("esatto-self-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a new folder");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Names of the files, in order.
    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it is there");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("readable").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    /// Starts this file as a program of a role, with `ESATTO_TRACE=t`, in the folder.
    fn start(&self, role: &str, args: &[(&str, &str)]) -> Program {
        let mut command = Command::new(std::env::current_exe().expect("this file"));
        command.args(["--exact", "a_program", "--nocapture", "--quiet"]).current_dir(&self.0);
        // No service of the machine takes part.
        command.env(ROLE, role).env("ESATTO_TRACE", "t").env("PERFETTO_PRODUCER_SOCK_NAME", self.path("no-service"));
        command.envs(args.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Program(command.spawn().expect("it starts"))
    }

    /// Runs it to its end, which must be a good one. Returns what it has written to stderr.
    fn run(&self, role: &str, args: &[(&str, &str)]) -> String {
        let (status, said) = self.start(role, args).end();
        assert!(status.success(), "{status}: {said}");
        said
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Program(Child);

impl Program {
    fn pid(&self) -> i32 {
        self.0.id().try_into().expect("a number of a process")
    }

    fn signal(&self, number: i32) {
        // SAFETY: the process exists until it is waited for.
        assert_eq!(unsafe { kill(self.pid(), number) }, 0);
    }

    /// Waits for the end. Returns it, and what the program has written to stderr.
    fn end(mut self) -> (ExitStatus, String) {
        let begin = Instant::now();
        while self.0.try_wait().expect("a child").is_none() {
            if begin.elapsed() > DEADLINE {
                let _ = self.0.kill();
                panic!("the program does not end");
            }
            thread::sleep(Duration::from_millis(5));
        }
        let mut said = String::new();
        let mut stderr = self.0.stderr.take().expect("piped");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        (self.0.wait().expect("a child"), said)
    }
}

/// Waits until a file exists.
fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < DEADLINE, "{} does not appear", path.display());
        thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the names of the events in a trace without mistakes.
fn names(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let trace = Trace::read(&bytes[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    let mut names: Vec<_> = trace.events.iter().filter_map(|event| event.name.as_deref().map(str::to_owned)).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns what `esatto info` says if the end of the trace is missing.
fn missing_end(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).expect("a trace");
    let summary = Summary::read(&bytes[..]).to_string();
    summary.lines().find(|line| line.starts_with("End ")).map(str::to_owned)
}

extern "C" fn exit_in_handler(_: i32) {
    // Only the events that were handed over count: nothing else of the program runs.
    std::fs::write("handled", "").expect("a file");
    _exit(3);
}

/// The handler that was installed before [`note_and_pass_on`].
static PREVIOUS: AtomicUsize = AtomicUsize::new(0);
static IS_NOTED: AtomicBool = AtomicBool::new(false);

/// Does as the handlers of `tokio` and others.
extern "C" fn note_and_pass_on(number: i32) {
    IS_NOTED.store(true, Ordering::Relaxed);
    let previous = PREVIOUS.load(Ordering::Relaxed);
    // SAFETY: the handler of the crate, which reads only its first argument, unless the program had
    // a handler before.
    unsafe { core::mem::transmute::<usize, extern "C" fn(i32, usize, usize)>(previous)(number, 0, 0) }
}

/// The program of the other tests; no test in itself.
#[test]
fn a_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    act(&role);
    std::process::exit(0);
}

fn builder() -> esatto::Builder {
    Tracing::builder().system().categories(CATEGORIES)
}

/// Records events, says so, and waits for a signal.
fn wait_for_signal() {
    for n in 0..100_u64 {
        esatto::instant!(APP, "early", n = n);
    }
    // Longer than the service waits before it writes.
    thread::sleep(Duration::from_millis(600));
    esatto::instant!(APP, "last");
    std::fs::write("ready", "").expect("a file");
    thread::sleep(DEADLINE);
}

fn act(role: &str) {
    match role {
        "builder" => {
            let _tracing = builder().file_from_env().start().expect("starts");
            esatto::instant!(APP, "one");
            esatto::instant!(SLOW, "two");
            esatto::instant!(DEBUG, "three");
        }
        "forgotten" => {
            let _ = builder().file_from_env().start().expect("starts");
            esatto::instant!(APP, "too late");
        }
        "builder-that-does-not-read" => drop(builder().start().expect("starts")),
        "builder-that-runs-on" => {
            let _tracing = builder().start().expect("starts");
            thread::sleep(DEADLINE);
        }
        "everything" => {
            let tracing = builder().file_from_env().start().expect("starts");
            let file = esatto::trace_to_file("other").expect("starts");
            let again = esatto::trace_from_env().expect("starts");
            assert_eq!((file.path(), again.path()), (Some(Path::new("t")), Some(Path::new("t"))));
            esatto::instant!(APP, "once");
            file.finish().expect("it is not the last one");
            drop(tracing);
            esatto::instant!(APP, "until the last");
            again.finish().expect("complete");
        }
        "wait" => {
            let _file = esatto::trace_from_env().expect("starts");
            esatto::complete_on_signals().expect("starts");
            wait_for_signal();
        }
        "wait-plain" => {
            let _file = esatto::trace_from_env().expect("starts");
            wait_for_signal();
        }
        "wait-with-session" => {
            let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("starts");
            let config = SessionConfig::new().write_into("session").file_write_period(Duration::from_secs(3600));
            let _session = Session::start(Backend::InProcess, config).expect("starts");
            esatto::complete_on_signals().expect("starts");
            wait_for_signal();
        }
        "wait-with-handler" => {
            assert_ne!(signal(SIGTERM, exit_in_handler), usize::MAX);
            let _file = esatto::trace_from_env().expect("starts");
            esatto::complete_on_signals().expect("starts");
            wait_for_signal();
        }
        "wait-with-later-handler" => {
            let file = esatto::trace_from_env().expect("starts");
            esatto::complete_on_signals().expect("starts");
            PREVIOUS.store(signal(SIGTERM, note_and_pass_on), Ordering::Relaxed);
            // The signal may come before the loop begins.
            esatto::instant!(APP, "early");
            std::fs::write("ready", "").expect("a file");
            while !IS_NOTED.load(Ordering::Relaxed) {
                esatto::instant!(APP, "early");
                thread::sleep(Duration::from_millis(1));
            }
            // As a server that ends by itself.
            thread::sleep(Duration::from_millis(1000));
            esatto::instant!(APP, "last");
            file.finish().expect("complete");
        }
        "parent" => {
            let _file = esatto::trace_from_env().expect("starts");
            esatto::instant!(APP, "of the parent");
            let here = Folder(std::env::current_dir().expect("a folder"));
            let said = here.run("builder", &[]);
            core::mem::forget(here);
            eprint!("{said}");
        }
        "forks" | "forks-and-traces" => {
            let file = esatto::trace_from_env().expect("starts");
            esatto::instant!(APP, "of the parent");
            let child = fork();
            if child == 0 {
                if role == "forks-and-traces" {
                    let file = esatto::trace_from_env().expect("starts");
                    esatto::instant!(APP, "of the child");
                    file.finish().expect("complete");
                }
                std::process::exit(0);
            }
            let mut status = -1;
            // SAFETY: the status is of the type that C expects.
            assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
            file.finish().expect("complete");
        }
        "forks-and-ends" => {
            let file = esatto::trace_from_env().expect("starts");
            if fork() == 0 {
                // The test waits until nothing can write there.
                close(2);
                thread::sleep(Duration::from_secs(5));
                _exit(0);
            }
            file.finish().expect("complete");
        }
        other => panic!("no such role: {other}"),
    }
}

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
    let expected = "esatto: ESATTO_TRACE is set, but this program does not read it and writes no file: \
                    call `file_from_env` on its `Tracing::builder()`, or record it with `esatto record`\n";
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
fn a_signal_completes_the_file_and_ends_the_program() {
    for number in [SIGINT, SIGTERM] {
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
    let expected = "End       missing: the program or the service that wrote the file was killed, or the disk or the \
                    file was full; the last events may be lost";
    assert_eq!(missing_end(&folder.path("t")).as_deref(), Some(expected));
}

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
fn a_file_without_events_is_explained() {
    let folder = Folder::new("empty");
    let said = folder.run("forgotten", &[]);
    assert!(said.contains("t has no event: no trace point ran while the file was written"), "{said}");
    let said = folder.run("builder", &[("ESATTO_TRACE_CATEGORIES", "ap")]);
    let want = "t has no event: ESATTO_TRACE_CATEGORIES \"ap\" leaves out all categories; known are: ";
    assert!(said.contains(want) && said.contains("app.slow"), "{said}");
    assert_eq!(folder.run("builder", &[]), "");
}
