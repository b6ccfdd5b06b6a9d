//! `--metrics-file` writes counts in the text format of Prometheus, as a whole, for everybody to
//! read, every 10 s. The file goes with the daemon.

use crate::harness::{DEADLINE, Harness, Running, client, enable, offer, output, wait_until};
use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{DataSourceConfig, DataSourceDescriptor, TraceConfig};
use rustix::process::Signal;
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

#[test]
fn of_one_daemon_only() {
    let harness = Harness::new();
    let path = harness.path("traced.prom");
    let mut first = started(&harness, &path);
    let other = Harness::new();
    assert_eq!(refusal(&other, &path), "a running daemon writes it; choose another path");
    assert!(path.exists(), "the first daemon still writes it");
    first.signal(Signal::KILL);
    first.wait();
    let mut next = started(&other, &path);
    next.stop();
    assert!(!path.exists());
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

fn fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
}

/// Returns the line of a daemon that does not start because of its metrics file.
fn refusal(harness: &Harness, path: &Path) -> String {
    let (status, _, stderr) = output(harness.traced().arg("--metrics-file").arg(path));
    assert_eq!(status.code(), Some(1), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    let start = format!("traced: cannot write the metrics file {}: ", path.display());
    stderr.trim_end().strip_prefix(&start).unwrap_or_else(|| panic!("{stderr}")).to_owned()
}

/// As root, a wrong path could cost a device of the machine.
#[test]
fn never_in_place_of_something_else() {
    let harness = Harness::new();
    let [text, empty, link, pipe, socket, folder, device] =
        ["text.conf", "empty", "link", "pipe", "socket", "folder", "device"].map(|name| harness.path(name));
    std::fs::write(&text, "precious").unwrap();
    std::fs::write(&empty, "").unwrap();
    std::os::unix::fs::symlink(&text, &link).unwrap();
    fifo(&pipe);
    let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let mut paths = vec![
        (text.clone(), "it exists and is not a metrics file; remove it or choose another path"),
        (empty, "it exists and is not a metrics file; remove it or choose another path"),
        (link, "it exists and is a symbolic link, not a metrics file; choose another path"),
        (pipe, "it exists and is a FIFO, not a metrics file; choose another path"),
        (socket, "it exists and is a socket, not a metrics file; choose another path"),
        (folder, "it exists and is a folder, not a metrics file; choose another path"),
    ];
    // Numbers of /dev/null. Only root may make devices.
    let number = rustix::fs::makedev(1, 3);
    let kind = rustix::fs::FileType::CharacterDevice;
    if rustix::fs::mknodat(rustix::fs::CWD, &device, kind, 0o666.into(), number).is_ok() {
        paths.push((device, "it exists and is a device, not a metrics file; choose another path"));
    }
    for (path, want) in paths {
        let before = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!(refusal(&harness, &path), want);
        let after = std::fs::symlink_metadata(&path).unwrap();
        assert_eq!((after.ino(), after.file_type()), (before.ino(), before.file_type()), "{path:?}");
    }
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "precious");
}

#[test]
fn in_place_of_the_file_of_a_killed_daemon() {
    let harness = Harness::new();
    let (path, new) = (harness.path("traced.prom"), harness.path("traced.prom.new"));
    std::fs::write(&path, "# HELP esatto_sessions_running Sessions of an earlier version.\n").unwrap();
    // It was killed before its first byte.
    std::fs::write(&new, "").unwrap();
    let mut traced = started(&harness, &path);
    assert_eq!(numbers(&path)["esatto_producers"], 0);
    traced.stop();
    assert!(!path.exists() && !new.exists());
}

#[test]
fn until_something_else_is_at_the_path() {
    let harness = Harness::new();
    let path = harness.path("traced.prom");
    let mut traced = started(&harness, &path);
    // The file system may give the inode number of the metrics file to the new one.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "precious").unwrap();
    let line = format!("the metrics file {} was replaced by something else: it gets no more numbers", path.display());
    wait_until("the line", || traced.log().contains(&line).then_some(()));
    traced.stop();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    assert_eq!(traced.log().matches(&line).count(), 1);
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
        &|| fifo(&new),
    ];
    for plant in links {
        plant();
        let why = refusal(&harness, &path);
        assert!(why.starts_with(&format!("{}: it exists and is ", new.display())), "{why}");
        assert!(!path.exists());
        std::fs::remove_file(&new).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
