//! Addresses without a scheduler, foreign servers, other versions, wrong statements.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::processes::{Cluster, ask, program};
use crate::{folder, traces};

fn trace() -> String {
    crate::root().join("tests/traces").join(traces::EVENTS).to_string_lossy().into_owned()
}

fn error_of(address: &str) -> String {
    ask(&["--cluster", address, &trace(), "select 1"]).error().to_owned()
}

/// A server that gives each connection the same answer.
fn server(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = listener.local_addr().expect("it has an address").to_string();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for mut stream in listener.incoming().flatten() {
            if let Some(answer) = answer {
                let _request = stream.read(&mut [0; 1000]);
                let _may_be_gone = stream.write_all(answer.as_bytes());
            } else {
                open.push(stream);
            }
        }
    });
    address
}

#[test]
fn an_address_without_a_scheduler_is_an_error() {
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").to_string();
    let error = error_of(&unused);
    for part in [&*format!("cannot reach the scheduler at {unused}"), "refused", "esatto-cluster scheduler"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(error_of("no-such-host.invalid:1").contains("cannot reach the scheduler at no-such-host.invalid:1"));
    assert!(error_of("localhost:x").contains("'x' is no port"));
}

#[test]
fn a_server_that_is_no_scheduler_is_an_error() {
    let silent = server(None);
    assert!(error_of(&silent).contains("no answer in 10 s"));
    for answer in ["", "220 mail\r\n", "HTTP/1.1 200 OK\r\nServer: other\r\n\r\nready", "HTTP/1.1 404 No\r\n\r\n"] {
        let address = server(Some(answer));
        let error = error_of(&address);
        assert!(error.contains(&format!("the server at {address} is no Ballista scheduler")), "{error}");
    }
}

#[test]
fn a_scheduler_of_another_version_is_an_error() {
    let address = server(Some("HTTP/1.1 200 OK\r\nserver: ballista/54.1.0\r\n\r\nready"));
    let error = error_of(&address);
    assert!(error.contains("is Ballista 54.1.0, but this program has 55."), "{error}");
}

#[test]
fn a_scheduler_without_executors_is_an_error() {
    let cluster = Cluster::without_executors("lonely");
    let error = error_of(&cluster.address);
    assert!(error.contains("has no executors") && error.contains("esatto-cluster executor"), "{error}");
}

#[test]
fn an_executor_is_no_scheduler() {
    let folder = folder("executor-address");
    let cluster = Cluster::start("executor-address-cluster", &folder, 1);
    let address = cluster.executors[0].first_line.trim().rsplit(' ').next().expect("an address").to_owned();
    let error = error_of(&address);
    assert!(error.contains("is no Ballista scheduler") || error.contains("cannot reach"), "{error}");
}

#[test]
fn servers_say_why_they_cannot_start() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = taken.local_addr().expect("an address").to_string();
    let run = |args: &[&str]| {
        let output = program().args(args).output().expect("the program runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !stderr.contains("panicked"), "{args:?}: {stderr}");
        stderr
    };
    assert!(run(&["scheduler", "--bind", &address]).contains(&format!("cannot listen on {address}")));
    let unused = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").to_string();
    assert!(run(&["executor", "--scheduler", &unused]).contains("cannot reach the scheduler"));
    let cluster = Cluster::without_executors("start");
    for server in [&["scheduler", "--bind", "0.0.0.0:0"][..], &["executor", "--bind", "::"]] {
        assert!(run(server).contains("--advertise"), "{server:?}");
    }
    let missing = run(&["executor", "--scheduler", &cluster.address, "--traces", "/no/such/folder"]);
    assert!(missing.contains("/no/such/folder") && missing.contains("No such file"), "{missing}");
    let port = taken.local_addr().expect("an address").port().to_string();
    let busy = run(&["executor", "--scheduler", &cluster.address, "--port", &port]);
    assert!(busy.contains(&format!("cannot listen on {address}")), "{busy}");
}

#[test]
fn errors_of_sql_are_those_without_a_cluster() {
    let folder = folder("sql-errors");
    let pattern = traces::copies(&folder, 2);
    let cluster = Cluster::start("sql-errors-cluster", &folder, 1);
    for sql in [
        "select nmae from slice",
        "select * from slcie",
        "choose 1",
        "select to_time(ts) from thread_state, slice",
        "drop table",
        "copy slice to 'x.csv'",
    ] {
        let (here, there) = (ask(&[&pattern, sql]), cluster.ask(&[&pattern, sql]));
        assert_eq!((here.status, here.stderr), (there.status, there.stderr), "{sql}");
    }
    let answer = cluster.ask(&[&pattern, "select (select pid from process) as pid from slice"]);
    assert!(answer.error().contains("rows; add LIMIT 1"), "{answer:?}");
    let cast = "select cast(name as bigint) from thread where name is not null";
    let answer = cluster.ask(&[&pattern, cast]);
    assert!(answer.error().contains("Cannot cast"), "{answer:?}");
}
