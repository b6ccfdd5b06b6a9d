//! Executors and schedulers that are killed while they work.

use std::path::Path;
use std::time::Duration;

use crate::processes::{Cluster, ask, finish, start};
use crate::{folder, traces};

const SQL: &str = "select s.name, t.tid, count(*) as n, sum(s.dur) as dur, count(distinct s.trace_file) as traces
    from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) group by 1, 2";

fn has_files(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| entry.path().is_file() || has_files(&entry.path()))
}

#[test]
fn a_query_survives_an_executor_that_is_killed() {
    let folder = folder("killed");
    let pattern = traces::copies(&folder, 200);
    let args = [&*pattern, SQL, "--format", "jsonl"];
    let here = ask(&args);
    assert_eq!(here.status, Some(0), "{here:?}");
    let mut cluster = Cluster::start("killed-cluster", &folder, 2);
    let mut hits = 0;
    // A machine may be so fast that the query ends before.
    for attempt in 0..5 {
        let victim = cluster.executors.len() - 1;
        let mut query = start(&[&["--cluster", &cluster.address], &args[..]].concat());
        // It has the rows of some tasks, so it is in the middle of the work.
        while query.try_wait().expect("it can be waited for").is_none() && !has_files(&cluster.rows(victim)) {
            std::thread::sleep(Duration::from_millis(2));
        }
        let is_running = query.try_wait().expect("it can be waited for").is_none();
        cluster.executors[victim].kill();
        hits += u32::from(is_running);
        let there = finish(query);
        assert_eq!((there.status, &*there.stderr), (Some(0), ""), "attempt {attempt}: {}", cluster.logs());
        assert_eq!(there.sorted(), here.sorted(), "attempt {attempt}");
        if hits == 2 {
            return;
        }
        cluster.add_executor(&folder);
        cluster.wait(2);
    }
    assert!(hits > 0, "all queries ended before the executor was killed");
}

#[test]
fn a_query_ends_if_all_executors_are_killed() {
    let folder = folder("all-killed");
    let pattern = traces::copies(&folder, 200);
    let mut cluster = Cluster::start("all-killed-cluster", &folder, 1);
    let query = start(&["--cluster", &cluster.address, &pattern, SQL]);
    while !has_files(&cluster.rows(0)) {
        std::thread::sleep(Duration::from_millis(2));
    }
    cluster.executors[0].kill();
    let answer = finish(query);
    let error = answer.error();
    assert!(error.contains("no executors") || error.contains("executor"), "{error}");
}

#[test]
fn a_query_ends_if_the_scheduler_is_killed() {
    let folder = folder("scheduler-killed");
    let pattern = traces::copies(&folder, 200);
    let mut cluster = Cluster::start("scheduler-killed-cluster", &folder, 1);
    let query = start(&["--cluster", &cluster.address, &pattern, SQL]);
    while !has_files(&cluster.rows(0)) {
        std::thread::sleep(Duration::from_millis(2));
    }
    cluster.scheduler.kill();
    let answer = finish(query);
    assert!(answer.error().contains(&format!("the scheduler at {}", cluster.address)), "{answer:?}");
}

#[test]
fn an_interrupted_query_ends_and_cancels_its_job() {
    let folder = folder("interrupted");
    let pattern = traces::copies(&folder, 200);
    let cluster = Cluster::start("interrupted-cluster", &folder, 1);
    let query = start(&["--cluster", &cluster.address, &pattern, SQL]);
    while !has_files(&cluster.rows(0)) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let sent = std::process::Command::new("kill").args(["-INT", &query.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let answer = finish(query);
    assert_eq!((answer.status, &*answer.stdout), (Some(130), ""), "{answer:?}");
    // The executor is free for the next query.
    let next = cluster.ask(&[&pattern, "select count(*) > 0 as some from process", "--format", "csv"]);
    assert_eq!(next.stdout, "some\ntrue\n", "{next:?}");
}

/// Stops a program, which keeps its connections and answers nothing.
fn stop(program: &std::process::Child) {
    let sent = std::process::Command::new("kill").args(["-STOP", &program.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

#[test]
fn a_query_ends_if_its_executor_never_reports() {
    let folder = folder("silent");
    let pattern = traces::copies(&folder, 200);
    let cluster = Cluster::start("silent-cluster", &folder, 1);
    let query = start(&["--cluster", &cluster.address, "--cluster-timeout", "5", &pattern, SQL]);
    while !has_files(&cluster.rows(0)) {
        std::thread::sleep(Duration::from_millis(2));
    }
    stop(&cluster.executors[0].child);
    let answer = finish(query);
    let error = answer.error();
    assert!(error.contains("the job made no progress in 5 s: "), "{error}");
    let executor = cluster.executors[0].first_line.trim().rsplit(' ').next().expect("an address");
    assert!(error.contains(&format!("others run on {executor} (1)")) && error.contains("--cluster-timeout"), "{error}");
}

#[test]
fn a_query_survives_an_executor_that_never_reports() {
    let folder = folder("one-silent");
    let pattern = traces::copies(&folder, 200);
    let args = [&*pattern, SQL, "--format", "jsonl"];
    let here = ask(&args);
    let cluster = Cluster::start("one-silent-cluster", &folder, 2);
    let query = start(&[&["--cluster", &cluster.address], &args[..]].concat());
    while !has_files(&cluster.rows(0)) {
        std::thread::sleep(Duration::from_millis(2));
    }
    stop(&cluster.executors[0].child);
    let there = finish(query);
    assert_eq!(there.status, Some(0), "{there:?}: {}", cluster.logs());
    assert_eq!(there.sorted(), here.sorted());
}
