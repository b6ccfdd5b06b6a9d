//! `--secret-file` of `traced` and of the relay: both prove the same secret, or nothing is
//! recorded and both say why. Perfetto's programs cannot prove it.

use crate::guest::{Guest, loopback_address};
use crate::perfettos_own_relay_is_understood::frames;
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Program, esatto_bin, skip};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };
/// As `openssl rand -hex 32` prints them.
const SECRET: &str = "6f1d9c7a2b8e4f0356d1a9c8e7b2f4036f1d9c7a2b8e4f0356d1a9c8e7b2f403\n";
const OTHER: &str = "0000000000000000000000000000000000000000000000000000000000000000\n";

fn secret_file(harness: &Harness, name: &str, secret: &str) -> PathBuf {
    let path = harness.write(name, secret);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("the file is ours");
    path
}

/// Starts a service that also listens on `address`, and asks for this secret there.
fn service(harness: &Harness, implementation: Implementation, address: &str, secret: Option<&Path>) -> Program {
    let addresses = format!("{},{address}", harness.producer_socket().display());
    harness.service_with(implementation, |command| {
        command.env("PERFETTO_PRODUCER_SOCK_NAME", addresses).arg("--enable-relay-endpoint");
        if let Some(secret) = secret {
            command.arg("--secret-file").arg(secret);
        }
    })
}

fn relay(harness: &Harness, guest: &Guest<'_>, service: &str, secret: Option<&Path>) -> Program {
    let mut command = guest.relay_command(service);
    if let Some(secret) = secret {
        command.arg("--secret-file").arg(secret);
    }
    harness.start("relay", &mut command)
}

#[test]
fn and_then_programs_are_recorded() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let address = loopback_address();
        let secret = secret_file(&harness, "host.secret", SECRET);
        // A line break more or less makes no difference.
        let same = secret_file(&harness, "guest.secret", SECRET.trim());
        let service = service(&harness, Implementation::Ours, &address, Some(&secret));
        let guest = Guest::new(&harness, "guest1");
        let mut relay = relay(&harness, &guest, &address, Some(&same));
        relay.wait_for_log("The service knows this machine and its clocks");
        let mut recording =
            harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
        harness.wait_for_sessions(1);
        let mut programs =
            [harness.application(Implementation::Ours, WORKLOAD), guest.application(Implementation::Ours, WORKLOAD)];
        for program in &mut programs {
            program.wait_ok();
        }
        let trace = harness.stop(&mut recording);
        let expected =
            programs.each_ref().map(|program| Expected { pid: program.pid(), workload: WORKLOAD, details: true });
        workload::assert_whole(&trace, &expected);
        for log in [service.log(), relay.log()] {
            assert!(!log.contains(SECRET.trim()) && !log.contains("is refused"), "{log}");
        }
        Ok(())
    });
}

#[test]
fn and_another_or_no_secret_is_named_on_both_sides() {
    for (host, guest_secret, at_host, at_guest) in [
        (Some(SECRET), Some(OTHER), "it has another shared secret", "the service has another shared secret"),
        (Some(SECRET), None, "before it has proved the shared secret", "if it has --secret-file"),
        (
            None,
            Some(SECRET),
            "this service has none: start it with --secret-file",
            "the service asks for no shared secret; start it with traced --secret-file",
        ),
    ] {
        let harness = Harness::new();
        let address = loopback_address();
        let host = host.map(|secret| secret_file(&harness, "host.secret", secret));
        let guest_secret = guest_secret.map(|secret| secret_file(&harness, "guest.secret", secret));
        let mut service = service(&harness, Implementation::Ours, &address, host.as_deref());
        let guest = Guest::new(&harness, "guest1");
        let mut relay = relay(&harness, &guest, &address, guest_secret.as_deref());
        relay.wait_for_log(at_guest);
        service.wait_for_log(at_host);
        // The line names the machine that was refused.
        let log = service.log();
        let line = log.lines().find(|line| line.contains(at_host)).expect("it was there");
        assert!(line.contains(" from 127."), "{line}");
    }
}

#[test]
fn and_perfettos_relay_is_refused() {
    let harness = Harness::new();
    let address = loopback_address();
    let secret = secret_file(&harness, "secret", SECRET);
    let mut service = service(&harness, Implementation::Ours, &address, Some(&secret));
    for capture in ["control.c2s.bin", "producer.c2s.bin"] {
        let mut relay = TcpStream::connect(&address).expect("the service listens");
        relay.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("a timeout");
        // It waits for the answer to its bind, which is the second frame.
        relay.write_all(&frames(capture)[..2].concat()).expect("the service takes it");
        let mut answer = Vec::new();
        relay.read_to_end(&mut answer).expect("the service closes it");
        // An empty BindServiceReply: there is no such port.
        assert!(answer.ends_with(&[0x22, 0]) || answer.ends_with(&[0x22, 2, 8, 0]), "{capture}: {answer:?}");
    }
    service.wait_for_log("before it has proved the shared secret");
    assert_eq!(harness.state().producers.len(), 0);
}

#[test]
fn and_perfettos_service_is_refused() {
    skip(|| {
        Peer::Official.require()?;
        let harness = Harness::new();
        let address = loopback_address();
        let secret = secret_file(&harness, "secret", SECRET);
        let _service = service(&harness, Implementation::Theirs, &address, None);
        let guest = Guest::new(&harness, "guest1");
        let mut with = relay(&harness, &guest, &address, Some(&secret));
        with.wait_for_log("the service asks for no shared secret");
        with.kill();
        std::fs::remove_file(guest.socket()).expect("the killed relay left it");
        // Without the option it is served as before.
        let mut without = relay(&harness, &guest, &address, None);
        without.wait_for_log("The service knows this machine and its clocks");
        Ok(())
    });
}

#[test]
fn and_a_file_that_cannot_be_used_is_an_error() {
    let harness = Harness::new();
    let short = secret_file(&harness, "short", "password\n");
    let open = secret_file(&harness, "open", SECRET);
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o644)).expect("the file is ours");
    let (none, foreign) = (harness.path("none"), secret_file(&harness, "foreign", SECRET));
    let mut cases = vec![
        (&none, "No such file"),
        (&short, "it has 8 bytes, and at least 32 are needed"),
        (&open, "other users can read or change it (mode 0644)"),
    ];
    // Only root can give a file away.
    if std::os::unix::fs::chown(&foreign, Some(1), None).is_ok() {
        cases.push((&foreign, "it belongs to uid 1, who can change it"));
    }
    for (file, want) in cases {
        for program in ["traced", "relay"] {
            let mut command = harness.command(esatto_bin());
            command.arg(program).arg("--secret-file").arg(file);
            let mut program = harness.start(program, command.env("PERFETTO_RELAY_SOCK_NAME", loopback_address()));
            assert_eq!(program.wait().code(), Some(1));
            let log = program.log();
            assert!(log.contains(want) && log.contains(file.to_str().expect("a path")), "{log}");
            assert_eq!(log.lines().count(), 1, "{log}");
        }
    }
    assert!(!harness.producer_socket().exists());
}

#[test]
fn and_without_a_network_socket_it_says_that_it_has_no_effect() {
    let harness = Harness::new();
    let secret = secret_file(&harness, "secret", SECRET);
    let mut service = harness.service_with(Implementation::Ours, |command| {
        command.arg("--secret-file").arg(&secret);
    });
    service.wait_for_log("the shared secret has no effect");
    assert_eq!(harness.state().sessions, 0, "a unix socket needs no proof");
}
