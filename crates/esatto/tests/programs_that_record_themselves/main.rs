//! Programs that record themselves into a file: which file, and how complete it is however they
//! end. Each test runs this file again, as such a program.

#![allow(missing_docs, reason = "tests")]
#![cfg(target_os = "linux")]

mod floods;
mod forks;
mod harness;
mod signals;
mod which_file;

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::thread;
use std::time::Duration;

use esatto::{Backend, Session, SessionConfig, Tracing};
use harness::Folder;

esatto::categories! {
    static APP = "app";
    static SLOW = "app.slow", tags: ["slow"];
    static DEBUG = "debugging", tags: ["debug"];
    static OF_DEBUG = [DEBUG];
}

/// Says what this process does instead of testing.
const ROLE: &str = "TEST_ROLE";
/// A test that takes longer than this has failed.
const DEADLINE: Duration = Duration::from_secs(60);

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn raise(signal: i32) -> i32;
    safe fn _exit(status: i32) -> !;
    safe fn close(descriptor: i32) -> i32;
    safe fn signal(signal: i32, handler: extern "C" fn(i32)) -> usize;
    fn kill(process: i32, signal: i32) -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
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

extern "C" fn note_in_handler(_: i32) {
    let before = std::fs::read_to_string("handled").unwrap_or_default();
    std::fs::write("handled", before + "once").expect("a file");
}

fn set_handler_for_one_signal() {
    // SAFETY: zeroed fields are an empty set and no flags.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = note_in_handler as *const () as usize;
    action.sa_flags = libc::SA_RESETHAND;
    // SAFETY: the action is complete.
    assert_eq!(unsafe { libc::sigaction(SIGTERM, &raw const action, core::ptr::null_mut()) }, 0);
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
        "only-debug" => {
            let builder = Tracing::builder().in_process().categories(&[&DEBUG]);
            let _tracing = builder.file_from_env().start().expect("starts");
            esatto::instant!(DEBUG, "one");
            esatto::instant!(OF_DEBUG, "two");
        }
        "prints-its-error" => {
            let error = esatto::trace_to_file("t").expect_err("no such file can be");
            let config = SessionConfig::new().write_into(std::env::var("ESATTO_TRACE").expect("it is set"));
            let _tracing = Tracing::builder().in_process().start().expect("starts");
            let of_session = Session::start(Backend::InProcess, config).expect_err("no such file can be");
            assert_eq!(error.to_string(), of_session.to_string());
            eprint!("{error}");
        }
        "is-refused" => eprint!("{}", esatto::trace_to_file("t").expect_err("the file is no trace")),
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
        "forks-and-ends-first" => {
            let file = esatto::trace_from_env().expect("starts");
            esatto::instant!(APP, "of the parent");
            let parent = std::process::id();
            if fork() == 0 {
                while std::os::unix::process::parent_id() == parent {
                    thread::sleep(Duration::from_millis(1));
                }
                let file = esatto::trace_from_env().expect("starts");
                esatto::instant!(APP, "of the child");
                file.finish().expect("complete");
                std::fs::write("ready", "").expect("the folder is ours");
                std::process::exit(0);
            }
            file.finish().expect("complete");
        }
        "forks-in-a-session" => {
            let session = || {
                let tracing = Tracing::builder().in_process().categories(CATEGORIES).start().expect("starts");
                let config = SessionConfig::new().categories(["app"]);
                (tracing, Session::start(Backend::InProcess, config).expect("starts"))
            };
            let _session = session();
            esatto::instant!(APP, "of the parent");
            let child = fork();
            if child == 0 {
                match &*std::env::var("TEST_CHILD").expect("it is set") {
                    "traces" => esatto::instant!(APP, "of the child"),
                    "uses a new category" => {
                        esatto::instant!(category: esatto::Category::dynamic("app"), "of the child")
                    }
                    "forks" if fork() == 0 => {
                        let _slice = esatto::slice!(APP, "of the child", number = 1);
                    }
                    "forks" => thread::sleep(Duration::from_secs(1)),
                    "starts" => {
                        esatto::instant!(APP, "of the child");
                        drop(session());
                    }
                    "traces what is off" => {
                        esatto::instant!(SLOW, "of the child");
                        esatto::instant!(category: esatto::Category::dynamic("new"), "of the child");
                    }
                    _ => {}
                }
                std::process::exit(0);
            }
            let mut status = -1;
            // SAFETY: the status is of the type that C expects.
            assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
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
        "ends-during-hand-over" => {
            let file = esatto::trace_from_env().expect("starts");
            esatto::complete_on_signals().expect("starts");
            // So much that the hand-over takes a while.
            for n in 0..50_000_u64 {
                esatto::instant!(APP, "early", n = n);
            }
            esatto::instant!(APP, "last");
            assert_eq!(raise(SIGINT), 0);
            match &*std::env::var("TEST_END").expect("it is set") {
                "drop" => drop(file),
                "finish" => file.finish().expect("complete"),
                _ => core::mem::forget(file),
            }
        }
        "ends-after-its-own-signal" => {
            let _file = esatto::trace_from_env().expect("starts");
            esatto::complete_on_signals().expect("starts");
            esatto::instant!(APP, "early");
            assert_eq!(raise(SIGTERM), 0);
        }
        "wait-with-handler-for-one-signal" => {
            let _file = esatto::trace_from_env().expect("starts");
            set_handler_for_one_signal();
            esatto::complete_on_signals().expect("starts");
            wait_for_signal();
        }
        "closes-all-descriptors" => {
            esatto::complete_on_signals().expect("starts");
            (3..256).for_each(|descriptor| _ = close(descriptor));
            std::fs::write("ready", "").expect("a file");
            thread::sleep(DEADLINE);
        }
        "forks-and-catches" => {
            let _file = esatto::trace_from_env().expect("starts");
            esatto::complete_on_signals().expect("starts");
            let child = fork();
            if child == 0 {
                let _file = esatto::trace_from_env().expect("starts");
                esatto::complete_on_signals().expect("starts");
                esatto::instant!(APP, "of the child");
                assert_eq!(raise(SIGTERM), 0);
                thread::sleep(DEADLINE);
            }
            let mut status = -1;
            // SAFETY: the status is of the type that C expects.
            assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, SIGTERM);
        }
        "forks-with-locks" => {
            let file = esatto::trace_from_env().expect("starts");
            esatto::instant!(APP, "of the parent");
            let stderr = std::io::stderr();
            let locked = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let _lock = stderr.lock();
                    locked.store(true, Ordering::Relaxed);
                    while locked.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(1));
                    }
                });
                while !locked.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                let child = fork();
                if child == 0 {
                    std::process::exit(0);
                }
                let mut status = -1;
                // SAFETY: the status is of the type that C expects.
                assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
                assert_eq!(status, 0);
                locked.store(false, Ordering::Relaxed);
            });
            file.finish().expect("complete");
        }
        "finds-its-own-name-taken" => {
            let other = std::fs::File::create("t").expect("a file");
            // SAFETY: the descriptor is open.
            assert_eq!(unsafe { libc::flock(other.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }, 0);
            std::fs::write(format!("t.{}", std::process::id()), "of another container").expect("a file");
            let _file = esatto::trace_from_env().expect("starts");
            esatto::instant!(APP, "one");
        }
        "begins-on-many-threads" => {
            let begin = || esatto::trace_from_env().expect("starts");
            let files: Vec<_> = thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            esatto::instant!(APP, "one");
            assert!(files.iter().all(|file| file.path() == Some(Path::new("t"))), "{files:?}");
        }
        "execs" => {
            let file = esatto::trace_from_env().expect("starts");
            esatto::instant!(APP, "before the exec");
            if std::env::var_os("TEST_DROPS").is_some() {
                file.finish().expect("complete");
            } else {
                // The service writes meanwhile.
                thread::sleep(Duration::from_millis(600));
                core::mem::forget(file);
            }
            let mut command = std::process::Command::new(std::env::current_exe().expect("this file"));
            let next = std::env::var("TEST_NEXT").expect("it is set");
            command.args(std::env::args_os().skip(1)).env(ROLE, next).env("TEST_NEXT", "builder");
            panic!("{}", std::os::unix::process::CommandExt::exec(&mut command));
        }
        "floods" => floods::flood(),
        "floods-without-waiting" => floods::flood_without_waiting(),
        "shuts-down-and-begins-again" => {
            let _first = esatto::trace_to_file("t").expect("starts");
            esatto::instant!(APP, "before");
            esatto::shutdown();
            let second = esatto::trace_to_file("t").expect("starts");
            esatto::instant!(APP, "after");
            second.finish().expect("complete");
        }
        other => panic!("no such role: {other}"),
    }
}
