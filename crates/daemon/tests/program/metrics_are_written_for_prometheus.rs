//! `--metrics-file` writes counts in the text format of Prometheus, as a whole, for everybody to
//! read, every 10 s. The file goes with the daemon.

use crate::harness::{DEADLINE, Harness, Running, client, enable, offer, output, wait_until};
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{DataSourceConfig, DataSourceDescriptor, TraceConfig};
use std::collections::HashMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Reads the numbers of a file, by their names. Every line is whole and is explained.
fn numbers(path: &Path) -> HashMap<String, u64> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let group = |group: &[&str]| {
        let (name, value) = group[2].split_once(' ').unwrap();
        assert!(group[0].starts_with(&format!("# HELP {name} ")), "{group:?}");
        assert!(group[1].starts_with(&format!("# TYPE {name} ")), "{group:?}");
        (name.to_owned(), value.parse().unwrap())
    };
    lines.chunks(3).map(group).collect()
}

#[test]
fn while_it_runs() {
    let harness = Harness::new();
    let path = harness.path("traced.prom");
    let mut traced = Running::start(&harness, harness.traced().arg("--metrics-file").arg(&path));
    let mut producer = client(&harness.producer(), "ProducerPort");
    wait_until("the file", || path.exists().then_some(()));
    let before = numbers(&path);
    assert_eq!((before["esatto_producers"], before["esatto_sessions_started_total"]), (0, 0));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);

    let descriptor = DataSourceDescriptor { name: Some("test".into()), ..DataSourceDescriptor::default() };
    offer(&mut producer, "program", descriptor);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let source = DataSourceConfig { name: Some("test".into()), ..DataSourceConfig::default() };
    let buffer = |size_kb| BufferConfig { size_kb: Some(size_kb), ..BufferConfig::default() };
    let config = TraceConfig {
        buffers: vec![buffer(64)],
        data_sources: vec![DataSource { config: Some(source.into()), ..DataSource::default() }],
        ..TraceConfig::default()
    };
    let mut other = client(&harness.consumer(), "ConsumerPort");
    let refused = enable(&mut other, TraceConfig { buffers: vec![buffer(0)], ..config.clone() });
    other.wait_reply(refused, Some(DEADLINE)).unwrap();
    enable(&mut consumer, config);

    let after = wait_until("new numbers", || {
        let now = numbers(&path);
        (now["esatto_sessions_started_total"] == 1).then_some(now)
    });
    for (name, value) in [
        ("sessions_running", 1),
        ("producers", 1),
        ("consumers", 2),
        ("data_sources", 1),
        ("buffer_bytes", 64 << 10),
        ("sessions_refused_total", 1),
        ("consumers_accepted_total", 2),
        ("flushes_failed_total", 0),
    ] {
        assert_eq!(after[&format!("esatto_{name}")], value, "{name}");
    }
    drop(consumer);
    traced.stop();
    assert!(!path.exists(), "nobody takes the numbers for those of a running daemon");
}

fn started(harness: &Harness, path: &Path) -> Running {
    let traced = Running::start(harness, harness.traced().arg("--metrics-file").arg(path));
    wait_until("the start", || traced.log().contains("Started traced").then_some(()));
    traced
}

#[test]
fn for_the_daemon_that_has_the_sockets() {
    let harness = Harness::new();
    let path = harness.path("traced.prom");
    let mut traced = started(&harness, &path);
    let inode = || std::fs::metadata(&path).unwrap().ino();
    let before = inode();
    let (status, _, stderr) = output(harness.traced().arg("--metrics-file").arg(&path));
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(inode(), before, "a second daemon that cannot start leaves the file alone");
    // Another daemon writes the same file.
    let new = harness.path("new");
    std::fs::write(&new, "numbers of another daemon").unwrap();
    std::fs::rename(&new, &path).unwrap();
    traced.stop();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "numbers of another daemon");
}

#[test]
fn or_the_program_does_not_start() {
    let harness = Harness::new();
    let path = harness.path("missing").join("traced.prom");
    let (status, _, stderr) = output(harness.traced().arg("--metrics-file").arg(&path));
    assert_eq!(status.code(), Some(1));
    let want = format!("traced: cannot write the metrics file {}: ", path.display());
    assert!(stderr.starts_with(&want) && stderr.lines().count() == 1, "{stderr}");
    assert!(!harness.path("p").exists(), "nothing is left behind");
}

/// The folder may belong to the user of the collector, while the daemon is root.
#[test]
fn into_no_other_file() {
    let harness = Harness::new();
    let (path, new, target) = (harness.path("traced.prom"), harness.path("traced.prom.new"), harness.path("passwd"));
    std::fs::write(&target, "precious").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).unwrap();
    let links: [&dyn Fn(); 3] = [
        &|| std::os::unix::fs::symlink(&target, &new).unwrap(),
        &|| std::fs::hard_link(&target, &new).unwrap(),
        // A writer would wait for a reader.
        &|| rustix::fs::mknodat(rustix::fs::CWD, &new, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap(),
    ];
    for plant in links {
        plant();
        let mut traced = started(&harness, &path);
        assert_eq!(numbers(&path)["esatto_producers"], 0);
        traced.stop();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
