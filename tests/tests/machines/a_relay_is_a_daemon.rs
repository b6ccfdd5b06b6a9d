//! `esatto relay` as a program.

use crate::guest::{Guest, host, loopback_address};
use esatto_tests::wire::{Peer, Proto};
use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Signal, esatto_bin, wait_until};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;

#[test]
fn without_a_service_to_forward_to_it_says_how_it_is_used() {
    let harness = Harness::new();
    for unset in [None, Some("")] {
        let mut command = harness.command(esatto_bin());
        command.arg("relay").env_remove("PERFETTO_RELAY_SOCK_NAME");
        if let Some(text) = unset {
            command.env("PERFETTO_RELAY_SOCK_NAME", text);
        }
        let mut relay = harness.start("relay", &mut command);
        assert_eq!(relay.wait().code(), Some(1));
        assert!(relay.log().contains("PERFETTO_RELAY_SOCK_NAME") && relay.log().contains("Usage"), "{}", relay.log());
        assert!(!harness.producer_socket().exists());
    }
}

#[test]
fn it_also_runs_under_the_name_of_perfettos_program() {
    let harness = Harness::new();
    let link = harness.path("traced_relay");
    std::os::unix::fs::symlink(esatto_bin(), &link).expect("the folder is empty");
    let mut version = harness.start("version", harness.command(&link).arg("--version"));
    version.wait_ok();
    assert!(version.log().starts_with("Esatto v"), "{}", version.log());
    let mut relay = harness.start("relay", harness.command(&link).env("PERFETTO_RELAY_SOCK_NAME", loopback_address()));
    relay.wait_for_log("Started traced_relay, listening on");
}

#[test]
fn a_signal_ends_it_in_good_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let harness = Harness::new();
        let guest = Guest::new(&harness, "guest1");
        let mut relay = harness.start("relay", &mut guest.relay_command(&loopback_address()));
        relay.wait_for_log("Started traced_relay");
        relay.signal(signal);
        relay.wait_ok();
        assert!(!guest.socket().exists() && !relay.log().contains("panicked"));
    }
}

#[test]
fn it_goes_into_the_background_when_producers_can_connect() {
    let harness = Harness::new();
    let guest = Guest::new(&harness, "guest1");
    let mut command = guest.relay_command(&loopback_address());
    let mut start = harness.start("relay", command.arg("--background"));
    start.wait_ok();
    let log = start.log();
    let pid = log.lines().find_map(|line| line.parse().ok()).and_then(rustix::process::Pid::from_raw).expect("a pid");
    let connected = UnixStream::connect(guest.socket());
    rustix::process::kill_process(pid, Signal::TERM).expect("it runs");
    assert!(connected.is_ok(), "{log}");
    wait_until("it has ended", || (!guest.socket().exists()).then_some(()));
}

#[test]
fn its_socket_gets_the_wanted_mode() {
    let harness = Harness::new();
    let guest = Guest::new(&harness, "guest1");
    let mut command = guest.relay_command(&loopback_address());
    let gid = rustix::process::getegid().as_raw();
    let mut relay = harness.start("relay", command.arg(format!("--set-socket-permissions={gid}:0620")));
    relay.wait_for_log("Started traced_relay");
    let mode = std::fs::metadata(guest.socket()).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o7777, 0o620);
}

#[test]
fn it_keeps_no_descriptor_and_one_thread() {
    let harness = Harness::new();
    let address = loopback_address();
    let _service = host(&harness, Implementation::Ours, &address);
    let guest = Guest::new(&harness, "guest1");
    let mut relay = guest.relay(&address);
    let before = relay.descriptors();
    for round in 0..50 {
        let mut peer = Peer::connect(&guest.socket());
        let file = std::fs::File::open("/dev/null").expect("it is there");
        let frame = Proto::new().int(2, round).frame();
        peer.send_with_fds(&frame, &[std::os::fd::AsFd::as_fd(&file)]);
        // Not a request: the service says so, through the relay.
        assert!(peer.read_frame().is_some());
        let mut idle = UnixStream::connect(guest.socket()).expect("it listens");
        idle.set_nonblocking(true).expect("a flag");
        let _ = idle.read(&mut [0]);
    }
    relay.wait_for_descriptors(before);
    // Connections are closed by a thread that ends soon after.
    let tasks = format!("/proc/{}/task", relay.pid());
    let threads = || std::fs::read_dir(&tasks).expect("it runs").count();
    wait_until("it has one thread", || (threads() == 1).then_some(()));
}

#[test]
fn it_does_not_steal_the_socket_of_a_service() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let mut command = harness.command(esatto_bin());
    let mut relay = harness.start("relay", command.arg("relay").env("PERFETTO_RELAY_SOCK_NAME", loopback_address()));
    assert_eq!(relay.wait().code(), Some(1));
    assert!(relay.log().contains(harness.producer_socket().to_str().expect("a path")), "{}", relay.log());
    assert_eq!(harness.state().sessions, 0, "the service is still there");
}

/// Otherwise nobody knows why the trace lacks the end of its programs.
#[test]
fn its_end_while_its_programs_are_recorded_is_told() {
    let harness = Harness::new();
    let address = loopback_address();
    let mut service = host(&harness, Implementation::Ours, &address);
    let (guest, idle) = (Guest::new(&harness, "guest1"), Guest::new(&harness, "guest2"));
    let (mut relay, mut idle_relay) = (guest.relay(&address), idle.relay(&address));
    let _application = guest.application(Implementation::Ours, Workload { threads: 1, rounds: 50_000, pause_us: 200 });
    harness.wait_for_producers(1);
    let config = format!("{CONFIG}trace_all_machines: true\n");
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    harness.wait_for_sessions(1);
    relay.signal(Signal::KILL);
    let _ = relay.wait();
    service.wait_for_log("\"guest1\" disconnected; the last events of its programs may be missing");
    idle_relay.signal(Signal::TERM);
    let _ = idle_relay.wait();
    service.wait_for_log("\"guest2\" disconnected");
    let log = service.log();
    assert!(
        log.lines().any(|line| line.contains(" I a relay of machine 0x") && line.ends_with("\"guest1\" disconnected"))
    );
    assert_eq!(log.matches("may be missing").count(), 1, "nothing was recorded there:\n{log}");
    recording.program.signal(Signal::INT);
    let _ = recording.program.wait();
    let log = recording.program.log();
    assert!(log.contains("The connection to machine guest1 broke after ") && log.contains("may be missing"), "{log}");
    service.wait_for_log("lost: 1 connections to other machines");
    let info = Command::new(esatto_bin()).arg("info").arg(recording.trace()).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    let told: Vec<_> = info.lines().filter(|line| line.contains("relay_disconnected")).collect();
    assert!(told.len() == 2 && told[0].ends_with("relay_disconnected of machine guest1"), "{info}");
    assert!(told[1].trim_start().starts_with("machine guest1") && told[1].ends_with("may be missing"), "{info}");
}

/// Its process id alone could be that of a program beside the service.
#[test]
fn a_suspended_program_is_named_with_its_machine() {
    let harness = Harness::new();
    let address = loopback_address();
    let mut service = host(&harness, Implementation::Ours, &address);
    let guest = Guest::new(&harness, "guest1");
    let _relay = guest.relay(&address);
    let application = guest.application(Implementation::Ours, Workload { threads: 1, rounds: 50_000, pause_us: 200 });
    harness.wait_for_producers(1);
    let config = format!("{CONFIG}trace_all_machines: true\nflush_timeout_ms: 100\n");
    let mut recording = harness.record(Implementation::Ours, "trace", &config);
    harness.wait_for_sessions(1);
    application.signal(Signal::STOP);
    recording.program.signal(Signal::INT);
    let _ = recording.program.wait();
    service.wait_for_log("was not acknowledged in time by producer ");
    let named =
        format!(" of machine \"guest1\" (uid {}, pid {})", rustix::process::getuid().as_raw(), application.pid());
    assert!(service.log().contains(&named), "'{named}' is not in\n{}", service.log());
    let said = recording.program.log();
    let awaited = format!("esatto-producer (pid {} of machine guest1); at most ", application.pid());
    assert!(said.contains(&awaited), "'{awaited}' is not in\n{said}");
    application.signal(Signal::CONT);
}

/// The lines of the daemon itself do not have the name of the program.
#[test]
fn a_mistake_of_a_program_is_logged_with_its_machine() {
    let harness = Harness::new();
    let address = loopback_address();
    let mut service = host(&harness, Implementation::Ours, &address);
    let guest = Guest::new(&harness, "guest1");
    let _relay = guest.relay(&address);
    let mut peer = Peer::connect(&guest.socket());
    peer.bind("ProducerPort");
    // Its arguments are a varint that does not end.
    let (_, call) = peer.call_frame("InitializeConnection", &Proto::new().sized(&[0xff; 11]));
    peer.send(&call);
    service.wait_for_log(" of machine \"guest1\": an invalid invoke_method is refused");
    // No length that a frame can have.
    peer.send(&[0xff; 4]);
    service.wait_for_log(" is disconnected: ");
    let is_named = |line: &str| {
        line.contains(" of machine \"guest1\" (other machines, pid ") && line.contains(" is disconnected: ")
    };
    assert!(service.log().lines().any(is_named), "{}", service.log());
}

#[test]
fn a_machine_id_of_two_guests_is_noticed() {
    let harness = Harness::new();
    let address = loopback_address();
    let mut service = host(&harness, Implementation::Ours, &address);
    let guests = ["guest1", "guest2"].map(|name| Guest::new(&harness, name));
    let _first = guests[0].relay(&address);
    assert!(!service.log().contains("machine id"), "{}", service.log());
    // As two containers, which share the boot id of their kernel.
    let mut command = guests[1].relay_command(&address);
    let _second = harness.start("relay-guest2", command.env("ESATTO_MACHINE_ID_HINT", "guest1"));
    service.wait_for_log("relays \"guest1\" and \"guest2\" have one machine id");
    assert!(service.log().contains("ESATTO_MACHINE_ID_HINT"), "{}", service.log());

    let busy = Workload { threads: 1, rounds: 50_000, pause_us: 200 };
    let _applications = guests.each_ref().map(|guest| guest.application(Implementation::Ours, busy));
    harness.wait_for_producers(2);
    let config = harness.write("config", format!("{CONFIG}trace_all_machines: true\n"));
    let mut command = harness.command(esatto_bin());
    command.args(["record", "-t", "500ms", "-o", "trace", "-c"]).arg(config);
    let mut record = harness.start("record", &mut command);
    record.wait_ok();
    let named = "elays \"guest1\" and \"guest2\" have one machine id, ";
    let said = record.log();
    assert!(said.contains(named) && said.contains("another ESATTO_MACHINE_ID_HINT"), "{said}");
    let info = Command::new(esatto_bin()).arg("info").arg(harness.path("trace")).output().expect("it runs");
    let info = String::from_utf8(info.stdout).expect("text");
    assert!(info.contains(&format!("Machines  r{named}")), "{info}");
    assert!(info.lines().any(|line| line.ends_with("one id for guest1 and guest2")), "{info}");
}
