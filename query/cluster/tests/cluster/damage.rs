//! Traces that are damaged, or that the executors cannot read.

use crate::processes::{Cluster, ask};
use crate::{folder, root, traces};

#[test]
fn damaged_traces_are_reported_and_counted() {
    let folder = folder("damaged");
    let pattern = traces::copies(&folder, 30);
    let whole = std::fs::read(root().join("tests/traces").join(traces::EVENTS)).expect("a trace can be read");
    std::fs::write(folder.join("t003.pftrace"), &whole[..whole.len() / 2]).expect("a trace can be written");
    std::fs::write(folder.join("t004.pftrace"), "no trace").expect("a file can be written");
    let cluster = Cluster::start("damaged-cluster", &folder, 2);
    for treatment in ["skip", "keep"] {
        let args = [&pattern, "select count(*) as n from slice", "--format", "csv", "--broken", treatment];
        let (here, there) = (ask(&args), cluster.ask(&args));
        assert_eq!((here.status, &here.stdout), (there.status, &there.stdout), "{here:?} {there:?}");
        assert_eq!(there.status, Some(3));
        let line = |text: &str, name: &str| text.lines().find(|line| line.contains(name)).map(str::to_owned);
        for name in ["t003.pftrace", "t004.pftrace", "2 of 30"] {
            assert!(line(&there.stderr, name).is_some(), "{name}: {there:?}");
        }
        assert_eq!(line(&here.stderr, "t003"), line(&there.stderr, "t003"));
    }
}

#[test]
fn a_trace_that_the_executor_does_not_see_is_an_error() {
    let folder = folder("unseen");
    traces::copies(&folder, 1);
    let cluster = Cluster::start("unseen-cluster", std::path::Path::new("/"), 1);
    // The current folder of the executor is another one than that of the client.
    let mut command = crate::processes::program();
    command.args(["query", "--cluster", &cluster.address, "/proc/self/cwd/t000.pftrace", "select count(*) from slice"]);
    let output = command.current_dir(&folder).output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    for part in ["/proc/self/cwd/t000.pftrace", "cannot read it", "No such file", "--traces"] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn a_trace_outside_of_the_folders_of_the_executor_is_an_error() {
    let (inside, outside) = (folder("inside"), folder("outside"));
    traces::copies(&outside, 1);
    let cluster = Cluster::start("outside-cluster", &inside, 1);
    std::os::unix::fs::symlink(outside.join("t000.pftrace"), inside.join("link.pftrace")).expect("a link");
    for path in
        [outside.join("t000.pftrace"), inside.join("link.pftrace"), inside.join("../cluster-outside/t000.pftrace")]
    {
        let answer = cluster.ask(&[&path.to_string_lossy(), "select count(*) from slice"]);
        let error = answer.error();
        assert!(error.contains("in none of the folders that may be read"), "{error}");
        assert!(error.contains(&*inside.to_string_lossy()), "{error}");
    }
}
