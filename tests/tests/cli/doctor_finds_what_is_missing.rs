//! `esatto doctor`: sockets, daemons, rights and limits, with a remedy if something is missing.

use esatto_tests::tiny_disk::TinyDisk;
use esatto_tests::{Harness, Implementation, Peer, Signal, Skip, Terminal, esatto_bin, skip};
use std::os::unix::net::UnixListener;
use std::process::Command;

/// The answer of `esatto doctor --json`.
struct Answer {
    json: serde_json::Value,
    is_ready: bool,
}

impl Answer {
    fn of(command: &mut Command) -> Self {
        let output = command.args(["doctor", "--json"]).output().expect("it runs");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let is_ready = match output.status.code() {
            Some(0) => true,
            Some(1) => false,
            other => panic!("status {other:?}"),
        };
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(json["ready"], is_ready);
        let states: Vec<&str> = checks(&json).map(|check| check["state"].as_str().expect("a state")).collect();
        assert_eq!(states.contains(&"missing"), !is_ready, "{json:#}");
        Self { json, is_ready }
    }

    /// Returns the state, the text and the remedy of a check.
    fn of_check(&self, id: &str) -> (&str, &str, &str) {
        let check =
            checks(&self.json).find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {:#}", self.json));
        let text = |name: &str| check[name].as_str().unwrap_or_default();
        (text("state"), text("text"), text("remedy"))
    }

    fn has(&self, id: &str) -> bool {
        checks(&self.json).any(|check| check["id"] == id)
    }
}

fn checks(json: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    json["checks"].as_array().expect("a list").iter()
}

fn doctor(harness: &Harness) -> Answer {
    Answer::of(&mut harness.command(esatto_bin()))
}

#[test]
fn each_missing_thing_has_a_remedy() {
    let harness = Harness::new();
    let answer = doctor(&harness);
    for check in checks(&answer.json) {
        let is_missing = check["state"] == "missing";
        assert!(!is_missing || check["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{check:#}");
    }
    for id in ["service", "capabilities", "memory", "temporary-folder", "descriptors"] {
        answer.of_check(id);
    }
}

/// `esatto record` expects a service at an address that the environment names.
#[test]
fn a_deleted_folder_is_told() {
    let harness = Harness::new();
    let folder = harness.path("gone");
    std::fs::create_dir(&folder).expect("a new folder");
    let mut command = harness.command("sh");
    command.args(["-c", "cd gone && rmdir ../gone && exec \"$0\" \"$@\""]).arg(esatto_bin());
    let answer = Answer::of(&mut command);
    let (state, text, remedy) = answer.of_check("current-folder");
    assert!(state == "missing" && text.contains("was deleted") && remedy.contains("cd ~"), "{state}: {text}: {remedy}");
}

#[test]
fn without_a_service_at_a_named_address_recording_is_not_possible() {
    let harness = Harness::new();
    let answer = doctor(&harness);
    let (state, text, remedy) = answer.of_check("service");
    let socket = harness.consumer_socket().display().to_string();
    assert!(state == "missing" && !answer.is_ready, "{text}");
    let variables = ["PERFETTO_CONSUMER_SOCK_NAME", "PERFETTO_PRODUCER_SOCK_NAME"];
    assert!(text.contains(&socket) && text.contains(&variables.join(" and ")), "{text}");
    let [sudo, unset] =
        [format!("sudo --preserve-env={}", variables.join(",")), format!("unset {}", variables.join(" "))];
    assert!(remedy.contains(&sudo) && remedy.contains(&unset) && !remedy.contains("make the folder"), "{remedy}");
    assert_eq!(answer.of_check("consumer-socket").0, "note");
    let record = harness.command(esatto_bin()).args(["record", "-t", "100ms"]).output().expect("it runs");
    assert_eq!(record.status.code(), Some(1), "doctor and record agree");
}

#[test]
fn a_folder_of_a_named_address_that_is_missing_is_told() {
    let harness = Harness::new();
    let address = harness.path("nobody/c");
    let mut command = harness.command(esatto_bin());
    command.env("PERFETTO_CONSUMER_SOCK_NAME", &address).env_remove("PERFETTO_PRODUCER_SOCK_NAME");
    let answer = Answer::of(&mut command);
    let (state, text, remedy) = answer.of_check("service");
    assert!(state == "missing" && text.ends_with("while PERFETTO_CONSUMER_SOCK_NAME is set"), "{text}");
    assert!(remedy.starts_with(&format!("make the folder {}, ", harness.path("nobody").display())), "{remedy}");
}

/// Without a named address, `esatto record` is the service until it ends.
#[test]
fn without_a_service_at_the_standard_address_there_is_a_note() {
    let harness = Harness::new();
    let mut command = harness.command(esatto_bin());
    command.env_remove("PERFETTO_CONSUMER_SOCK_NAME").env_remove("PERFETTO_PRODUCER_SOCK_NAME");
    let answer = Answer::of(&mut command);
    let (state, text, remedy) = answer.of_check("service");
    // The machine may have a service, also one out of reach.
    if text.starts_with("no tracing service runs at ") {
        assert!(state == "note" && text.ends_with("`esatto record` is one until it ends"), "{text}");
        assert_eq!(remedy, "for a lasting one, run `sudo esatto traced --background`");
    }
}

#[test]
fn a_service_tells_its_version_and_its_programs() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let answer = doctor(&harness);
    let (state, text, _) = answer.of_check("service");
    assert!(state == "ok" && text.starts_with("Esatto v") && text.ends_with("; no program is connected"), "{text}");
    assert!(!answer.has("offered"));
    let (state, text, _) = answer.of_check("producer-socket");
    assert!(state == "ok" && text.contains(" may be recorded at "), "{text}");
    let (state, text, _) = answer.of_check("daemon");
    assert!(state == "ok" && text.starts_with("traced"), "{text}");
    let _probes = harness.probes(Implementation::Ours);
    let answer = doctor(&harness);
    assert!(answer.of_check("service").1.ends_with("; 1 program is connected"));
    let (state, text, _) = answer.of_check("offered");
    assert!(state == "ok" && text.contains("traced_probes") && text.contains(" offers "), "{text}");
    // The rights are those of the program that offers the data sources.
    assert!(
        !checks(&answer.json).any(|check| check["id"] == "right" && check["state"] == "missing"),
        "{:#}",
        answer.json
    );
}

#[test]
fn perfettos_own_service_is_known() {
    skip(|| {
        Peer::Official.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Theirs);
        let answer = doctor(&harness);
        let (state, text, _) = answer.of_check("service");
        assert!(state == "ok" && text.starts_with("Perfetto v"), "{text}");
        assert!(!answer.has("service-version"));
        Ok(())
    });
}

#[test]
fn a_socket_without_a_service_is_to_be_removed() {
    let harness = Harness::new();
    drop(UnixListener::bind(harness.consumer_socket()).expect("a socket"));
    let answer = doctor(&harness);
    assert!(!answer.is_ready);
    let (state, text, remedy) = answer.of_check("consumer-socket");
    assert!(state == "missing" && text.ends_with("is a socket of a service that has ended"), "{text}");
    let command = format!("rm '{}'", harness.consumer_socket().display());
    assert_eq!(remedy, format!("run `{command}`"));
    // The remedy works.
    assert!(Command::new("sh").args(["-c", &command]).status().expect("it runs").success());
    assert_eq!(doctor(&harness).of_check("consumer-socket").0, "note");
    harness.write("c.sock", "no socket");
    assert_eq!(doctor(&harness).of_check("consumer-socket").0, "missing");
}

#[test]
fn a_service_that_hangs_is_told() {
    let harness = Harness::new();
    let service = harness.service(Implementation::Ours);
    service.signal(Signal::STOP);
    let answer = doctor(&harness);
    service.signal(Signal::CONT);
    let (state, text, remedy) = answer.of_check("service");
    assert!(state == "missing" && text.starts_with("cannot reach a tracing service") && !remedy.is_empty(), "{text}");
}

#[test]
fn an_address_that_is_none_is_told() {
    let harness = Harness::new();
    let answer = Answer::of(harness.command(esatto_bin()).env("PERFETTO_CONSUMER_SOCK_NAME", "vsock://x"));
    let (state, text, remedy) = answer.of_check("address");
    assert!(state == "missing" && text.starts_with("PERFETTO_CONSUMER_SOCK_NAME names no consumer socket"), "{text}");
    assert_eq!(remedy, "run `unset PERFETTO_CONSUMER_SOCK_NAME`");
}

#[test]
fn a_missing_temporary_folder_is_told() {
    let harness = Harness::new();
    let answer = Answer::of(harness.command(esatto_bin()).env("TMPDIR", harness.path("none")));
    let (state, text, remedy) = answer.of_check("temporary-folder");
    assert!(state == "missing" && text.contains("none cannot be written: No such file"), "{text}");
    assert_eq!(remedy, "set TMPDIR: `export TMPDIR=/var/tmp`");
}

#[test]
fn a_full_disk_is_told() {
    skip(|| {
        let harness = Harness::new();
        let disk = TinyDisk::mount(harness.path("disk"))?;
        let answer = Answer::of(harness.command(esatto_bin()).env("TMPDIR", disk.path()));
        let (state, text, _) = answer.of_check("temporary-folder");
        assert!(state == "missing" && text.contains(" KiB left, which is little for traces"), "{text}");
        Ok(())
    });
}

#[test]
fn few_descriptors_are_told() {
    let harness = Harness::new();
    let mut command = harness.command("sh");
    command.args(["-c", "ulimit -n 100 && exec \"$@\"", "sh"]).arg(esatto_bin());
    let answer = Answer::of(&mut command);
    let (state, text, remedy) = answer.of_check("descriptors");
    assert_eq!((state, remedy), ("missing", "run `ulimit -n 1024`"));
    assert_eq!(text, "a process may have 100 descriptors: a service can serve 25 programs");
}

#[test]
fn a_terminal_has_colours_unless_no_color_is_set() {
    let harness = Harness::new();
    let (status, shown) =
        Terminal::start(harness.command(esatto_bin()).env_remove("NO_COLOR").arg("doctor"), 80).wait();
    assert!(matches!(status.code(), Some(0 | 1)), "{shown}");
    assert!(shown.contains("\u{1b}[1mTracing service\u{1b}[0m\n  \u{1b}["), "{shown}");
    let (_, shown) = Terminal::start(harness.command(esatto_bin()).env("NO_COLOR", "1").arg("doctor"), 80).wait();
    assert!(!shown.contains('\u{1b}') && shown.contains("\nTracing service\n  missing no tracing service"), "{shown}");
    let output = harness.command(esatto_bin()).arg("doctor").output().expect("it runs");
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn a_narrow_terminal_breaks_lines_between_words() {
    let harness = Harness::new();
    let mut command = harness.command(esatto_bin());
    command.env("NO_COLOR", "1").env("LC_ALL", "C").env("PERFETTO_CONSUMER_SOCK_NAME", "@a").arg("doctor");
    let (_, shown) = Terminal::start(&mut command, 20).wait();
    assert!(shown.contains("  missing no tracing\n  service runs at\n  @a, and `esatto\n"), "{shown}");
    assert!(shown.is_ascii(), "it must be readable in every locale:\n{shown}");
}

#[test]
fn a_program_whose_file_has_capabilities_is_told() {
    skip(|| {
        let harness = Harness::new();
        let copy = harness.path("esatto");
        std::fs::copy(esatto_bin(), &copy).expect("the folder has room");
        assert!(!Answer::of(&mut harness.command(&copy)).has("file_capabilities"));
        // Version 2 of the format, with the flag "effective"; CAP_SYS_PTRACE has the number 19.
        let value: Vec<u8> = [0x0200_0001_u32, 1 << 19, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
        rustix::fs::setxattr(&copy, "security.capability", &value, rustix::fs::XattrFlags::empty())
            .map_err(|error| Skip(format!("capabilities of files cannot be set: {error}")))?;
        let answer = Answer::of(&mut harness.command(&copy));
        let (state, _, remedy) = answer.of_check("file_capabilities");
        assert_eq!((state, answer.is_ready), ("missing", false));
        assert_eq!(remedy, format!("run `sudo setcap -r {}`", copy.display()));
        Ok(())
    });
}
