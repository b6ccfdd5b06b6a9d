//! Options, signals and notifications of `traced_probes`.

use esatto_tests::{Harness, Implementation, Signal, Skip, beside_this_test, esatto_bin, skip, wait_until};
use std::io::Read as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().expect("the program is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn it_prints_its_version_and_its_help() {
    let harness = Harness::new();
    let probes = |args: &[&str]| output(harness.command(beside_this_test("traced_probes")).args(args));
    let (code, version, _) = probes(&["--version"]);
    assert!(code == Some(0) && version.starts_with("Esatto v") && version.ends_with('\n'), "{version}");
    let (code, help, _) = probes(&["--help"]);
    assert!(code == Some(0) && help.contains("--reset-ftrace") && help.contains("--cleanup-after-crash"), "{help}");
    let (code, _, error) = probes(&["--nonsense"]);
    assert_eq!(code, Some(1));
    assert_eq!(error, "traced_probes: unknown option --nonsense (see traced_probes --help)\n");
}

#[test]
fn it_can_be_called_by_three_names() {
    let harness = Harness::new();
    let (code, help, _) = output(harness.command(esatto_bin()).args(["probes", "--help"]));
    assert!(code == Some(0) && help.contains("Usage: esatto probes"), "{help}");
    let (code, help, _) = output(harness.command(esatto_bin()).arg0("/usr/bin/traced_probes").arg("--help"));
    assert!(code == Some(0) && help.contains("Usage: traced_probes"), "{help}");
}

#[test]
fn it_waits_for_the_service_and_comes_back_to_the_next() {
    let harness = Harness::new();
    let mut probes = harness.start("traced_probes", &mut harness.command(beside_this_test("traced_probes")));
    probes.wait_for_log("trying again");
    for _ in 0..2 {
        let mut service = harness.service(Implementation::Ours);
        // Sooner than by the pauses, because the file of the socket appears.
        harness.wait_for_data_source("linux.process_stats");
        service.signal(Signal::TERM);
        service.wait_ok();
    }
    probes.signal(Signal::TERM);
    probes.wait_ok();
    assert!(probes.log().contains("Stopped"), "{}", probes.log());
}

#[test]
fn it_tells_when_its_data_sources_are_registered() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let (mut ready, theirs) = UnixStream::pair().expect("sockets");
    ready.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("the socket is ours");
    let inherited = rustix::io::fcntl_dupfd_cloexec(&theirs, 100).expect("there are descriptors");
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).expect("it is open");
    let mut command = harness.command(beside_this_test("traced_probes"));
    command.env("TRACED_PROBES_NOTIFY_FD", inherited.as_raw_fd().to_string());
    let mut probes = harness.start("traced_probes", &mut command);
    drop((inherited, theirs));
    let mut bytes = Vec::new();
    ready.read_to_end(&mut bytes).expect("it tells");
    assert_eq!(bytes, b"1");
    assert!(harness.state().data_sources.iter().any(|name| name == "linux.process_stats"));
    probes.signal(Signal::INT);
    probes.wait_ok();
}

#[test]
fn in_the_background_it_prints_its_pid() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let (code, stdout, stderr) = output(harness.command(beside_this_test("traced_probes")).arg("--background"));
    assert_eq!(code, Some(0), "{stderr}");
    let pid: i32 = stdout.trim().parse().expect("a pid");
    harness.wait_for_data_source("linux.process_stats");
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, Signal::TERM).expect("it runs");
    wait_until("it ends", || rustix::process::test_kill_process(pid).is_err().then_some(()));
}

#[test]
fn a_session_of_a_program_that_ends_is_whole() {
    const CONFIG: &str = r#"
buffers { size_kb: 4096 }
data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }
"#;
    skip(|| -> Result<(), Skip> {
        esatto_tests::Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let mut probes = harness.probes(Implementation::Ours);
        let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
        harness.wait_for_sessions(1);
        probes.signal(Signal::TERM);
        probes.wait_ok();
        let trace = recording.stop();
        let processes = esatto_tests::tp::rows(&trace, "select name from process where pid > 0");
        assert!(processes.len() > 2, "{processes:?}");
        Ok(())
    });
}
