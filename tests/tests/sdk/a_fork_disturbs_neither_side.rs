//! A process that forks in the middle of tracing loses nothing. The child traces nothing by itself,
//! and can connect again.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use esatto_tests::sdk::{Backend, Recorder, Trace};

esatto::categories! {
    static APP = "fork";
}

const FORKS: u64 = 4;

mod in_the_middle_of_tracing {
    esatto_tests::scenario!(super::record, super::check);
}

unsafe extern "C" {
    safe fn fork() -> i32;
    fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
}

/// Runs `child` in a child process, which exits by its result. Returns whether that was true.
fn in_child(child: impl FnOnce() -> bool) -> bool {
    match fork() {
        0 => std::process::exit(i32::from(!child())),
        pid => {
            let mut status = -1;
            // SAFETY: the address of an integer of ours.
            let waited = unsafe { waitpid(pid, &raw mut status, 0) };
            waited == pid && status == 0
        }
    }
}

/// The sockets that this process has open. In the child of a fork these are its parent's sockets;
/// services would take the child for the parent.
fn sockets() -> Vec<PathBuf> {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("there is /proc");
    let targets = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).collect()
}

fn record(recorder: &Recorder) {
    // The machine may be busy with other things.
    let tracing = recorder.builder().shared_memory(4096, 4).categories(CATEGORIES).start().expect("starts");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(esatto::track_events(8192));
    assert_eq!(sockets().is_empty(), recorder.on() == Backend::InProcess, "those of the producer and of the session");
    let done = AtomicBool::new(false);
    let counts = std::thread::scope(|scope| {
        let threads = [0_u64, 1].map(|thread| {
            let done = &done;
            scope.spawn(move || {
                let mut n = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    esatto::instant!(APP, "elsewhere", thread = thread, n = n);
                    n += 1;
                    if n % 64 == 0 {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
                n
            })
        });
        for round in 0..FORKS {
            esatto::instant!(APP, "before", round = round);
            assert!(in_child(|| {
                // Tracing is off and does no harm. Dropping the parent's handle also does none.
                let was_off = !APP.is_enabled() && sockets().is_empty();
                esatto::instant!(APP, "in a child that is not connected");
                let flushed = tracing.flush(Duration::from_secs(5));
                was_off && !flushed && connect_in_child(recorder, round)
            }));
            esatto::instant!(APP, "after", round = round);
        }
        done.store(true, Ordering::Relaxed);
        threads.map(|thread| thread.join().expect("it ends"))
    });
    recorder.note("connected", if recorder.on() == Backend::InProcess { 0 } else { FORKS / 2 });
    recorder.note("elsewhere", counts.iter().sum::<u64>());
    recorder.finish(session);
}

/// Connects as a new process, in half of the rounds, if there is a service.
fn connect_in_child(recorder: &Recorder, round: u64) -> bool {
    if recorder.on() == Backend::InProcess || round % 2 == 0 {
        return true;
    }
    let tracing = recorder.connect(CATEGORIES);
    let recorded = tracing.wait_until_enabled(&APP, Duration::from_secs(20));
    esatto::instant!(APP, "in a child", round = round);
    std::thread::spawn(|| esatto::instant!(APP, "in a thread of a child")).join().is_ok() && recorded
}

fn check(trace: &Trace) {
    let [events, children] = trace.query([
        "select name, count() as n from slice group by name",
        "select slice.name as name, pid from slice join thread_track on slice.track_id = thread_track.id
            join thread using (utid) join process using (upid) where slice.name glob 'in a*'",
    ]);
    let count = |name: &str| events.iter().find(|row| row.text("name") == name).map_or(0, |row| row.int("n"));
    assert_eq!(count("elsewhere").to_string(), trace.fact("elsewhere"));
    assert_eq!((count("before"), count("after")), (FORKS as i64, FORKS as i64));
    assert_eq!(count("in a child that is not connected"), 0);
    let expected: i64 = trace.fact("connected").parse().expect("a number");
    assert_eq!(count("in a child"), expected);
    assert_eq!(count("in a thread of a child"), expected);
    let pids: BTreeSet<i64> = children.iter().map(|row| row.int("pid")).collect();
    assert_eq!(pids.len() as i64, expected, "each child is a process of its own");
}
