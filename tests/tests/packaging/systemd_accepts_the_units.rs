//! systemd reads them without a complaint and finds little that the service could do.

use crate::unit::{Unit, folder, output, systemd};
use esatto_tests::{Harness, Signal, beside_this_test, skip, wait_until, wire};
use std::os::unix::fs::MetadataExt;

/// Tenths of what systemd calls the exposure, from 0 to 10; a service without any restriction has
/// 9.6.
const MOST_EXPOSURE: &str = "10";
/// The same, of the probes, which run as root, with three capabilities.
const MOST_EXPOSURE_OF_PROBES: &str = "25";
/// The same, of the relay, which needs the network.
const MOST_EXPOSURE_OF_RELAY: &str = "20";

#[test]
fn as_they_are() {
    skip(|| {
        let mut verify = systemd("systemd-analyze")?;
        verify.args(["verify", "--man=no"]);
        let harness = Harness::new();
        let units = [
            ("traced.service", "traced"),
            ("traced-producer.socket", "traced"),
            ("traced-consumer.socket", "traced"),
            ("traced-probes.service", "traced_probes"),
            ("traced-relay.service", "traced_relay"),
            ("traced-relay.socket", "traced_relay"),
        ];
        for (unit, program) in units {
            let text = std::fs::read_to_string(folder().join(unit)).expect("the unit is there");
            // It looks whether the program is there, which it is not before it is installed.
            let here = beside_this_test(program);
            let here = text.replace(&format!("/usr/bin/{program}"), here.to_str().expect("a path"));
            verify.arg(harness.write(unit, here));
        }
        let complaints = output(&mut verify);
        assert_eq!(complaints, "");
        Ok(())
    });
}

#[test]
fn and_finds_them_safe() {
    skip(|| {
        let units = [
            ("traced.service", MOST_EXPOSURE),
            ("traced-probes.service", MOST_EXPOSURE_OF_PROBES),
            ("traced-relay.service", MOST_EXPOSURE_OF_RELAY),
        ];
        for (unit, most) in units {
            let mut security = systemd("systemd-analyze")?;
            security.args(["security", "--offline=true", "--no-pager", "--threshold", most]);
            let verdict = output(security.arg(folder().join(unit)));
            assert!(verdict.contains(&format!("Overall exposure level for {unit}")), "{verdict}");
        }
        Ok(())
    });
}

#[test]
fn and_makes_the_user_and_the_folder_that_they_need() {
    skip(|| {
        let (mut users, mut folders) = (systemd("systemd-sysusers")?, systemd("systemd-tmpfiles")?);
        let harness = Harness::new();
        let root = format!("--root={}", harness.path("").display());
        std::fs::create_dir(harness.path("etc")).expect("the folder is new");
        output(users.arg(&root).arg(folder().join("perfetto.sysusers")));
        let service = Unit::read("traced.service");
        for (file, name) in [("etc/passwd", service.value("User")), ("etc/group", service.value("Group"))] {
            let text = std::fs::read_to_string(harness.path(file)).expect("it was made");
            assert!(text.lines().any(|line| line.starts_with(&format!("{name}:"))), "{name} in {text}");
        }
        output(folders.arg(&root).arg("--create").arg(folder().join("perfetto.tmpfiles")));
        let meta = std::fs::metadata(harness.path("run/perfetto")).expect("it was made");
        assert_eq!(meta.mode() & 0o7777, 0o755);
        Ok(())
    });
}

/// The other side of socket activation is systemd's own tool, with the names of the units.
#[test]
fn and_starts_the_daemon_with_their_sockets() {
    skip(|| {
        let mut activate = systemd("systemd-socket-activate")?;
        let harness = Harness::new();
        let name = |unit: &str| Unit::read(unit).value("FileDescriptorName").to_owned();
        let names = format!("{}:{}", name("traced-consumer.socket"), name("traced-producer.socket"));
        activate.arg("--listen").arg(harness.consumer_socket()).arg("--listen").arg(harness.producer_socket());
        activate.arg(format!("--fdname={names}")).arg(beside_this_test("traced"));
        let mut traced = harness.start("systemd-socket-activate", &mut activate);
        for socket in [harness.consumer_socket(), harness.producer_socket()] {
            wait_until("systemd listens", || socket.exists().then_some(()));
        }
        // The first connection starts it, and is served.
        assert_eq!(harness.state().sessions, 0);
        traced.wait_for_log("Started traced, listening on");
        drop(wire::Peer::producer(&harness));
        traced.signal(Signal::TERM);
        traced.wait_ok();
        assert!(harness.consumer_socket().exists() && harness.producer_socket().exists(), "they are systemd's");
        Ok(())
    });
}

/// The addresses that clients use, and their permissions (`docs/spec/wire-protocol.md` §1).
#[test]
fn and_the_sockets_are_the_documented_ones() {
    for (unit, role, mode) in [
        ("traced-producer.socket", "producer", "0666"),
        ("traced-consumer.socket", "consumer", "0660"),
        ("traced-relay.socket", "producer", "0666"),
    ] {
        let unit = Unit::read(unit);
        assert_eq!(unit.value("ListenStream"), format!("/run/perfetto/traced-{role}.sock"));
        assert_eq!(unit.value("FileDescriptorName"), role);
        assert_eq!(unit.value("SocketMode"), mode);
        assert_eq!((unit.value("SocketUser"), unit.value("SocketGroup")), ("perfetto", "perfetto"));
    }
}
