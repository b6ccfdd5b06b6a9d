//! Accidents of a recording: a clear message, the right status, and nothing lost that was on the
//! disk. Full disks, two writers of a file, services that end and lost terminals have tests of
//! their own.

use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Program, Signal, Skip, esatto_bin, skip, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

const ENDLESS: Workload = Workload { threads: 1, rounds: 1 << 40, pause_us: 500 };

/// A service, and a program that emits events for longer than any recording here.
fn programs(harness: &Harness) -> [Program; 2] {
    let service = harness.service(Implementation::Ours);
    let program = harness.application(Implementation::Ours, ENDLESS);
    harness.wait_for_data_source("track_event");
    [service, program]
}

fn record(harness: &Harness, args: &[&str]) -> Command {
    let mut command = harness.command(esatto_bin());
    command.arg("record").args(args);
    command
}

fn events(path: &Path) -> u64 {
    let Ok(file) = std::fs::File::open(path) else { return 0 };
    esatto_trace::Summary::read(file).packets_by_type.get("track_event").map_or(0, |packets| packets.packets)
}

/// The program does not answer, so that the first signal alone has to wait for it.
#[test]
fn a_second_signal_ends_it_at_once_and_the_file_stays() {
    let harness = Harness::new();
    let [service, program] = programs(&harness);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut record = harness.start("record", &mut record(&harness, &["-o", "trace", "--force"]));
        wait_until("events are in the file", || (events(&harness.path("trace")) > 50).then_some(()));
        program.signal(Signal::STOP);
        record.signal(signal);
        record.wait_for_log("Waiting");
        record.signal(signal);
        let status = record.wait();
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status}: {}", record.log());
        assert!(events(&harness.path("trace")) > 50, "{}", record.log());
        program.signal(Signal::CONT);
        std::fs::remove_file(harness.path("trace")).expect("it is there");
    }
    drop(service);
}

/// `timeout(1)` sends its signal to the program, and at once to its group.
#[test]
fn two_signals_at_once_are_one() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    for signal in [Signal::INT, Signal::TERM] {
        let mut record = harness.start("record", &mut record(&harness, &["-o", "trace", "--force"]));
        wait_until("events are in the file", || (events(&harness.path("trace")) > 50).then_some(()));
        for _ in 0..3 {
            record.signal(signal);
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        record.wait_ok();
        assert!(record.log().contains("Wrote "), "{}", record.log());
    }
}

#[test]
fn a_reader_of_standard_output_that_goes_away_is_told() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let script = "{ \"$1\" record -o -; echo \"status $?\" >&2; } | head -c 100 > begin";
    let output = harness.command("sh").args(["-c", script, "sh"]).arg(esatto_bin()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write all of -: its reader has closed it; the first "), "{said}");
    assert!(said.ends_with("status 1\n"), "{said}");
    assert_eq!(std::fs::metadata(harness.path("begin")).expect("a file").len(), 100);
}

/// Results for a reader that wants only their first line are no failure.
#[test]
fn a_reader_of_a_list_may_go_away() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    for command in ["list", "sessions", "config presets", "doctor", "top --once -i 1ms"] {
        let script = format!("{{ \"$1\" {command}; echo \"status $?\" >&2; }} | true");
        let output = harness.command("sh").args(["-c", &script, "sh"]).arg(esatto_bin()).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked") && !said.contains("roken pipe"), "{command}: {said}");
        assert!(said == "status 0\n" || command == "doctor", "{command}: {said}");
    }
}

/// As in a job of cron, or a container without a terminal.
#[test]
fn without_terminal_input_and_output_it_records() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let script = "exec \"$1\" record -o trace -t 300ms <&- >&- 2>&-";
    let status = harness.command("setsid").args(["--wait", "sh", "-c", script, "sh"]).arg(esatto_bin()).status();
    assert!(status.expect("it runs").success());
    assert!(events(&harness.path("trace")) > 10);
}

#[test]
fn a_terminal_that_hangs_up_ends_the_recording_in_order() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    // `script` has the terminal. If it is killed, the terminal hangs up. The test itself may run
    // under nohup.
    let mut command = harness.command("script");
    command.env("ESATTO", esatto_bin());
    command.args(["-qec", "exec env --default-signal=HUP $ESATTO record -o trace", "/dev/null"]);
    let mut terminal = harness.start("script", &mut command);
    wait_until("events are in the file", || (events(&harness.path("trace")) > 50).then_some(()));
    terminal.kill();
    wait_until("the trace is complete", || {
        let file = std::fs::File::open(harness.path("trace")).ok()?;
        (!esatto_trace::Summary::read(file).lacks_end()).then_some(())
    });
    harness.wait_for_sessions(0);
}

/// Runs a command as a user who may not ignore the modes of files. Root is one without that right.
fn as_user(command: &mut Command, harness: &Harness) -> Result<(bool, String), Skip> {
    if !rustix::process::geteuid().is_root() {
        let output = command.output().expect("it runs");
        return Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let mut dropped = harness.command("setpriv");
    dropped.args(["--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]);
    dropped.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        dropped.current_dir(folder);
    }
    for (name, value) in command.get_envs() {
        value.map(|value| dropped.env(name, value));
    }
    let output = dropped.stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if said.contains("setpriv:") {
        return Err(Skip(format!("capabilities cannot be dropped: {said}")));
    }
    Ok((output.status.success(), said))
}

#[test]
fn a_home_without_write_access_is_told_before_the_recording() {
    skip(|| {
        let harness = Harness::new();
        let _programs = programs(&harness);
        let home = harness.path("home");
        std::fs::create_dir(&home).expect("a folder");
        std::fs::set_permissions(&home, PermissionsExt::from_mode(0o555)).expect("it is ours");
        let cases: [(&[&str], &str); 5] = [
            (&["record", "-t", "300ms"], "choose another file with -o FILE"),
            (&["record", "-t", "300ms", "-o", "trace"], "cannot write trace: "),
            (&["record", "--long", "trace", "-t", "300ms"], "cannot write trace: "),
            (&["record", "--", "touch", "../ran"], "choose another file with -o FILE"),
            (&["config", "new", "-o", "my.cfg"], "cannot write the config my.cfg: "),
        ];
        for (args, part) in cases {
            let mut command = harness.command(esatto_bin());
            command.args(args).current_dir(&home).env("HOME", &home);
            let (is_success, said) = as_user(&mut command, &harness)?;
            assert!(!is_success && said.contains("ermission denied") && said.contains(part), "{args:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
        }
        assert!(!harness.path("ran").exists(), "a command is not started in vain");
        // A file elsewhere is enough: nothing is needed of the home.
        let mut command = record(&harness, &["-t", "300ms", "-o", "../trace"]);
        let (is_success, said) = as_user(command.current_dir(&home).env("HOME", &home), &harness)?;
        assert!(is_success, "{said}");
        assert!(events(&harness.path("trace")) > 10);
        Ok(())
    });
}

#[test]
fn a_config_that_is_too_large_for_a_message_is_told_before() {
    let harness = Harness::with_perfetto(Implementation::Ours);
    let _programs = programs(&harness);
    let events: String = (0..6000).map(|number| format!("ftrace_events: \"group/event{number:012}\" ")).collect();
    let ftrace = format!("data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config {{ {events} }} }} }}");
    harness.write("large.cfg", format!("{} {ftrace}", CONFIG.replace("DISCARD", "RING_BUFFER")));
    let old = [0x0a, 4, 0x40, 7, 0x50, 1];
    harness.write("trace", old);
    let part = "bytes, and a service takes at most 131039, one message";
    let output = record(&harness, &["-c", "large.cfg", "-o", "trace"]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    // A machine without a tracefs says so before.
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("esatto: cannot use the config: encoded it has ") && last.contains(part), "{said}");
    let (code, log) = harness.run_perfetto(&["-c", "large.cfg", "--txt", "-o", "trace"]);
    assert!(code == 1 && log.contains(part), "{code}: {log}");
    assert_eq!(std::fs::read(harness.path("trace")).expect("it is there"), old);
    let mut start = harness.command(esatto_bin());
    let output = start.args(["snapshot", "start", "flight", "-c", "large.cfg"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains(part), "{output:?}");
}

#[test]
fn names_in_a_locale_without_utf_8_stay_what_they_are() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    for locale in ["C", "POSIX", "de_DE.ISO-8859-1"] {
        let mut command = record(&harness, &["-o", "tr\u{e4}ce", "-t", "300ms"]);
        let output = command.env("LC_ALL", locale).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("bytes into tr\u{e4}ce ("), "{locale}: {said}");
        assert!(events(&harness.path("tr\u{e4}ce")) > 10, "{locale}");
    }
}

#[test]
fn a_buffer_that_discards_ends_a_file_early() {
    let harness = Harness::new();
    let _programs = programs(&harness);
    let buffer = "buffers { size_kb: 64 fill_policy: DISCARD } write_into_file: true file_write_period_ms: 100";
    harness.write("my.cfg", format!("{buffer} data_sources {{ config {{ name: \"track_event\" }} }}"));
    let mut record = harness.start("record", &mut record(&harness, &["-c", "my.cfg", "-o", "trace"]));
    record.wait_for_log("Buffer 0 has the fill policy DISCARD");
    wait_until("the buffer has taken its size", || {
        let top = harness.command(esatto_bin()).args(["top", "--once", "--json", "-i", "50ms"]).output();
        String::from_utf8_lossy(&top.expect("it runs").stdout).contains("chunks_discarded").then_some(())
    });
    record.signal(Signal::INT);
    record.wait_ok();
    let log = record.log();
    assert!(log.contains("were lost. A buffer with the fill policy DISCARD keeps nothing"), "{log}");
    assert!(log.contains("use `fill_policy: RING_BUFFER`") && !log.contains("Larger buffers may help"), "{log}");
}
