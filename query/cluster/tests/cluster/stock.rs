//! The programs of Ballista itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processes::{Cluster, Server, executors_of};
use crate::{folder, traces};

/// Returns a program of Ballista, which is built beside ours: `cargo build -p ballista-executor`.
fn stock(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_BIN_EXE_esatto-cluster")).with_file_name(name);
    path.is_file().then_some(path)
}

fn skip(name: &str) {
    let ci = std::env::var("CI").unwrap_or_default();
    let reason = format!("no {name}: run 'cargo xtask soak query'");
    assert!(ci.is_empty() || ci == "false" || ci == "0", "{reason}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    eprintln!("SKIP {test}: {reason}");
    if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
        use std::io::Write as _;
        let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
        let line = format!("{test}\t{reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the skip is noted");
    }
}

/// Returns ports that are free.
fn ports<const N: usize>() -> [String; N] {
    let sockets = [(); N].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a socket"));
    sockets.map(|socket| socket.local_addr().expect("an address").port().to_string())
}

fn start(command: &mut Command, log: &Path) -> Server {
    // The programs log to their standard output, so the first line is one of the log.
    Server::start(command, log)
}

/// Starts executors of Ballista for a scheduler.
fn executors(program: &Path, address: &str, folder: &Path, count: usize) -> Vec<Server> {
    let (host, port) = address.rsplit_once(':').expect("host and port");
    let start = |number: usize| {
        let [rows, tasks, health] = ports();
        let work = folder.join(format!("stock-{number}"));
        std::fs::create_dir_all(&work).expect("a folder can be made");
        let mut command = Command::new(program);
        command.args(["--scheduler-host", host, "--scheduler-port", port, "--bind-host", "127.0.0.1"]);
        command.args(["--external-host", "127.0.0.1", "--bind-port", &rows, "--bind-grpc-port", &tasks]);
        command.args(["--bind-health-port", &health, "--vcores", "1", "--work-dir"]).arg(work);
        start(&mut command, &folder.join(format!("stock-executor-{number}.log")))
    };
    let servers = (0..count).map(start).collect();
    let begin = std::time::Instant::now();
    while executors_of(address) != Some(count) {
        assert!(begin.elapsed().as_secs() < 120, "no {count} stock executors");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    servers
}

fn scheduler(program: &Path, folder: &Path) -> (Server, String) {
    let [port] = ports();
    let mut command = Command::new(program);
    command.args(["--bind-host", "127.0.0.1", "--external-host", "127.0.0.1", "--bind-port", &port]);
    (start(&mut command, &folder.join("stock-scheduler.log")), format!("127.0.0.1:{port}"))
}

#[test]
fn executors_of_ballista_do_not_read_traces() {
    let Some(executor) = stock("ballista-executor") else { return skip("ballista-executor") };
    let folder = folder("stock-executors");
    let pattern = traces::copies(&folder, 3);
    let cluster = Cluster::without_executors("stock-executors-cluster");
    let _executors = executors(&executor, &cluster.address, &cluster.folder, 1);
    let answer = cluster.ask(&[&pattern, "select count(*) from slice"]);
    let error = answer.error();
    assert!(error.contains("cannot read traces") && error.contains("'esatto-cluster executor'"), "{error}");
}

#[test]
fn a_scheduler_of_ballista_does_not_take_traces() {
    let (Some(executor), Some(program)) = (stock("ballista-executor"), stock("ballista-scheduler")) else {
        return skip("ballista-scheduler");
    };
    let folder = folder("stock-scheduler");
    let pattern = traces::copies(&folder, 3);
    let (_scheduler, address) = scheduler(&program, &folder);
    let _executors = executors(&executor, &address, &folder, 1);
    let answer = crate::processes::ask(&["--cluster", &address, &pattern, "select count(*) from slice"]);
    let error = answer.error();
    assert!(error.contains("cannot read traces") && error.contains("esatto-cluster scheduler"), "{error}");
}

/// Statements with functions that Ballista lacks.
const NOT_IN_BALLISTA: [&str; 1] = ["shapes: texts by patterns"];

#[test]
fn ballista_alone_gives_the_same_rows_of_a_lake() {
    let (Some(executor), Some(program)) = (stock("ballista-executor"), stock("ballista-scheduler")) else {
        return skip("ballista-scheduler");
    };
    let folder = folder("stock-lake");
    let traces = folder.join("traces");
    std::fs::create_dir_all(&traces).expect("a folder can be made");
    // A lake has equal traces once, so they differ.
    let pattern = traces::all(&traces);
    let lake = folder.join("lake").to_string_lossy().into_owned();
    let exported = crate::processes::ask(&["export", &pattern, "--to", &lake, "--partition", "host"]);
    assert_eq!(exported.status, Some(0), "{exported:?}");
    let (_scheduler, address) = scheduler(&program, &folder);
    let _executors = executors(&executor, &address, &folder, 2);
    for query in crate::queries::of_all_shapes() {
        if NOT_IN_BALLISTA.contains(&&*query.name) {
            continue;
        }
        let args = [&*lake, &query.sql, "--format", "jsonl"];
        let here = crate::processes::ask(&args);
        assert_eq!(here.status, Some(0), "{}: {here:?}", query.name);
        let there = crate::processes::ask(&[&["--cluster", &address], &args[..]].concat());
        assert_eq!(there.status, Some(0), "{}: {there:?}", query.name);
        assert_eq!(here.sorted(), there.sorted(), "{}", query.name);
    }
    // The clocks of a lake are with the client.
    let sql = "select count(to_time(ts, id)) > 0 as some from slice";
    let answer = crate::processes::ask(&["--cluster", &address, &lake, sql, "--format", "csv"]);
    assert_eq!(answer.stdout, "some\ntrue\n", "{answer:?}");
    assert!(answer.stderr.contains("the clocks of a lake"), "{answer:?}");
    let answer = crate::processes::ask(&["--cluster", &address, &lake, "select printf('%d', ts) as text from slice"]);
    let error = answer.error();
    assert!(error.contains("does not have the function 'printf'") && error.contains("esatto-cluster"), "{error}");
}
