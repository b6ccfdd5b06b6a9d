//! `esatto record ./app`: without `-o` and `--`, and with advice where it cannot work.

use esatto::schema::{TraceConfig, TraceReader};
use esatto_protozero::Owned as _;
use esatto_tests::workload::Workload;
use esatto_tests::{Harness, Implementation, Skip, esatto_bin, skip};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const SHORT: Workload = Workload { threads: 1, rounds: 10, pause_us: 100 };

fn run(command: &mut Command) -> Output {
    command.output().expect("it runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `esatto record OPTIONS application`
fn record(harness: &Harness, options: &[&str]) -> Output {
    let application = harness.application_command(Implementation::Ours, SHORT);
    let mut command: Command = harness.command(esatto_bin());
    run(command.arg("record").args(options).arg(application.get_program()).args(application.get_args()))
}

fn traces(harness: &Harness) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(harness.folder()).expect("a folder").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "pftrace")).collect()
}

#[test]
fn without_a_file_name_each_recording_gets_a_new_file() {
    let harness = Harness::new();
    for count in 1..=3 {
        let output = record(&harness, &[]);
        assert!(output.status.success(), "{}", stderr(&output));
        let files = traces(&harness);
        assert_eq!(files.len(), count, "{files:?}");
        let is_named = |path: &PathBuf| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            name.starts_with("esatto-producer-2") && stderr(&output).contains(&name)
        };
        assert!(files.iter().any(is_named), "{files:?}\n{}", stderr(&output));
    }
    let _service = harness.service(Implementation::Ours);
    let mut command: Command = harness.command(esatto_bin());
    run(command.args(["record", "-t", "100ms"]));
    let is_trace = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().starts_with("trace-2");
    assert!(traces(&harness).iter().any(is_trace));
}

/// Startup tracing with the config of `esatto::track_events` belongs to such a session.
#[test]
fn without_a_config_it_records_what_programs_record_by_default() {
    let harness = Harness::new();
    assert!(record(&harness, &["-o", "trace"]).status.success());
    let bytes = std::fs::read(harness.path("trace")).expect("a trace");
    let config = TraceReader::new(&bytes).packet().find_map(|packet| packet.trace_config()).expect("a config");
    let config = TraceConfig::decode(config.as_bytes()).expect("a config");
    let of =
        |config: &TraceConfig| config.data_sources[0].config.as_ref().expect("a source").track_event_config.clone();
    assert_eq!(of(&config), of(&esatto::track_events(1024)));
}

#[test]
fn the_command_needs_no_dashes_and_keeps_its_own() {
    let harness = Harness::new();
    let mut command: Command = harness.command(esatto_bin());
    let output = run(command.args(["record", "-o", "trace", "printf", "%s/", "-o", "--time", "--", "x"]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "-o/--time/--/x/");
    assert!(harness.path("trace").exists());
}

#[test]
fn categories_that_are_slow_or_debug_only_on_request() {
    let harness = Harness::new();
    for (options, has_details) in [(&["-o", "trace"][..], false), (&["-o", "trace", "--all-categories"], true)] {
        let output = record(&harness, options);
        assert!(output.status.success(), "{}", stderr(&output));
        let bytes = std::fs::read(harness.path("trace")).expect("a trace");
        let has = |name: &[u8]| bytes.windows(name.len()).any(|part| part == name);
        assert!(has(b"frame"));
        assert_eq!(has(b"details"), has_details, "{options:?}");
    }
}

/// A live line is for terminals. A log gets what is worth reading later.
#[test]
fn the_progress_is_shown_on_a_terminal_only() {
    let harness = Harness::new();
    let mut command: Command = harness.command(esatto_bin());
    let said = stderr(&run(command.args(["record", "-o", "trace", "sleep", "1.5"])));
    assert!(said.starts_with("Wrote ") && said.lines().count() == 2, "{said}");
    let mut command: Command = harness.command("script");
    command.env("ESATTO", esatto_bin());
    let output = run(command.args(["-qec", "$ESATTO record -o trace sleep 1.5", "/dev/null"]));
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("recording 1."), "{shown}");
}

#[test]
fn an_encoded_config_is_as_good_as_text() {
    let harness = Harness::new();
    // TraceConfig { buffers { size_kb: 1024 } data_sources { config { name: "track_event" } } }
    let config = b"\x0a\x03\x08\x80\x08\x12\x0f\x0a\x0d\x0a\x0btrack_event";
    harness.write("my.pb", config);
    let output = record(&harness, &["-o", "trace", "-c", "my.pb"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = record(&harness, &["-o", "trace", "-c", "/bin/sh"]);
    let said = stderr(&output);
    assert!(!output.status.success() && said.lines().count() == 1, "{said}");
    assert!(said.contains("neither text nor an encoded TraceConfig"), "{said}");
}

#[test]
fn a_demo_of_a_missing_folder_fails() {
    let harness = Harness::new();
    let output = run(harness.command(esatto_bin()).args(["demo", "/no/such/folder"]));
    let said = stderr(&output);
    assert!(!output.status.success() && said.lines().count() == 1, "{said}");
    assert!(said.contains("/no/such/folder") && !harness.path("demo.pftrace").exists(), "{said}");
}

/// Root without the right to override permissions is like any other user.
#[test]
fn a_user_outside_the_group_learns_how_to_join_it() {
    skip(|| {
        if !rustix::process::geteuid().is_root() {
            return Err(Skip("only root can give a socket to another user".to_owned()));
        }
        let groups = std::fs::read_to_string("/etc/group").expect("groups");
        let group = groups.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|line| line[2] != "0");
        let group = group.expect("a group that is not root's");
        let harness = Harness::new();
        let _service = harness.service(Implementation::Ours);
        let socket = harness.consumer_socket();
        std::os::unix::fs::chown(&socket, Some(65534), Some(group[2].parse().expect("a number"))).expect("we are root");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o660);
        std::fs::set_permissions(&socket, mode).expect("we are root");
        for args in [&["record", "-o", "trace"][..], &["list"]] {
            let mut command: Command = harness.command("setpriv");
            command.args(["--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]);
            let output = run(command.arg(esatto_bin()).args(args));
            let said = stderr(&output);
            if said.contains("setpriv:") {
                return Err(Skip(format!("capabilities cannot be dropped: {said}")));
            }
            assert!(!output.status.success(), "{said}");
            let advice = format!("usermod -aG {} $USER", group[0]);
            assert!(said.contains(&advice) && said.contains("ermission denied"), "{said}");
            assert!(!said.contains("esatto traced"), "{said}");
        }
        Ok(())
    });
}

#[test]
fn a_parent_that_ignores_the_end_of_children_is_no_problem() {
    let harness = Harness::new();
    let mut command = harness.command("env");
    command.arg("--ignore-signal=CHLD").arg(esatto_bin()).args(["record", "-o", "trace", "--", "true"]);
    let mut record = harness.start("record", &mut command);
    assert_eq!(record.wait().code(), Some(1), "{}", record.log());
    assert!(record.log().contains("The exit status of the command is unknown"), "{}", record.log());
    assert!(harness.path("trace").exists());
}

#[test]
fn the_reader_of_a_demo_may_go_early() {
    let harness = Harness::new();
    let mut command: Command = harness.command(esatto_bin());
    command.args(["demo", "-o", "trace", "-t", "300ms"]).arg(harness.folder());
    let mut demo = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    drop(demo.stdout.take());
    let status = demo.wait().expect("it ends");
    assert!(status.success(), "{status}");
}
