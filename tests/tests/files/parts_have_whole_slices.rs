//! Slices that begin on one thread and end on another are whole in a part, and no other slices are
//! in it.

use std::fs::File;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::run;
use esatto::Track;
use esatto_tests::{Harness, Peer, esatto_bin, skip, tp};

esatto::categories! {
    static APP = "app";
}

const JOBS: u64 = 3000;

/// One thread begins jobs, each on a track of its own, and another one ends them.
fn work() {
    let _tracing = esatto::Tracing::builder().system().categories(CATEGORIES).start().expect("starts");
    let (hand_over, jobs) = mpsc::channel();
    let worker = thread::spawn(move || {
        for job in jobs {
            // The chunks of this thread are full sooner, so they lie before those of the other one.
            for step in 0..8 {
                esatto::instant!(APP, "step", job = job, step = step);
            }
            esatto::end!(APP, track: &Track::with_name("job", job));
        }
    });
    for job in 0..JOBS {
        esatto::begin!(APP, track: &Track::with_name("job", job), "job", job = job);
        hand_over.send(job).expect("the worker waits");
        thread::sleep(Duration::from_micros(50));
    }
    drop(hand_over);
    worker.join().expect("all jobs have ended");
}

#[test]
fn that_change_threads() {
    let again = esatto_tests::again!(that_change_threads);
    if again.role().is_some() {
        return work();
    }
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let output = again.recorded(&harness, "work", &["-o", "whole"]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        let whole = harness.path("whole");
        let all = tp::rows(&whole, "select count(*) as n, sum(dur < 0) as open, min(ts) as a, max(ts) as b from slice");
        let (start, end) = (all[0].int("a"), all[0].int("b"));
        let of_jobs = tp::rows(&whole, "select count(*) as n from slice where name = 'job' and dur >= 0");
        assert_eq!((of_jobs[0].int("n"), all[0].int("open")), (JOBS as i64, 0));
        let part = harness.path("part");
        for window in 0..6 {
            let from = start + (end - start) * window / 6;
            let to = from + (end - start) / 20;
            run(&[&"cut", &whole, &"--from", &from.to_string(), &"--to", &to.to_string(), &"-o", &part, &"--force"]);
            let slices = "select ts, dur, name, extract_arg(arg_set_id, 'debug.job') as job from slice";
            let order = "order by ts, name, job";
            let overlap = format!("{slices} where ts <= {to} and ts + dur >= {from} {order}");
            let theirs = tp::rows(&whole, &overlap);
            assert!(theirs.len() > 100, "{theirs:?}");
            assert!(tp::rows(&part, &format!("{slices} {order}")) == theirs, "from {from} to {to}");
        }
        Ok(())
    });
}

#[test]
fn of_a_trace_from_a_pipe() {
    let harness = Harness::new();
    let whole = crate::trace("track-events");
    run(&[&"cut", &whole, &"--from", &"+10ms", &"--to", &"0.06s", &"-o", &harness.path("of-file")]);
    let mut cat = Command::new("cat")
        .stdin(File::open(&whole).expect("it is there"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("cat runs");
    let mut cut = Command::new(esatto_bin());
    cut.args(["cut", "-", "--from", "+10ms", "--to", "0.06s", "-o"]).arg(harness.path("of-pipe"));
    let output = cut.stdin(cat.stdout.take().expect("it is piped")).output().expect("it runs");
    assert!(output.status.success() && cat.wait().expect("cat ends").success(), "{}", crate::said(&output));
    let [of_file, of_pipe] = ["of-file", "of-pipe"].map(|name| std::fs::read(harness.path(name)).expect("it is there"));
    assert!(of_file == of_pipe && !of_file.is_empty());
}
