//! The tunnel of `docs/how-to/several-machines.md`, as printed there, between two network
//! namespaces: programs of the guest are recorded, no event crosses the network in clear text, and
//! nothing else is let in.

use crate::guest::Guest;
use crate::network::{Namespace, connect};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Skip, esatto_bin, skip, wait_until};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, eth, recv, socket_with};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

const WORKLOAD: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };
const GUIDE: &str = include_str!("../../../docs/how-to/several-machines.md");

/// The code block of the guide that begins with this text.
fn printed(begin: &str) -> &'static str {
    let mut blocks = GUIDE.split("\n```").skip(1).step_by(2).filter_map(|block| Some(block.split_once('\n')?.1));
    blocks.find(|block| block.starts_with(begin)).unwrap_or_else(|| panic!("the guide prints no {begin}"))
}

/// Two machines with a cable. The guide's names stand for those of this test.
struct Machines {
    harness: Harness,
    host: Namespace,
    guest: Namespace,
    address: String,
}

impl Machines {
    fn new() -> Result<Self, Skip> {
        let (host, guest) = (Namespace::new("th")?, Namespace::new("tg")?);
        let address = connect(&host, &guest, 1)?;
        Ok(Self { harness: Harness::new(), host, guest, address })
    }

    /// The text of the guide with the folders, the host and the program of this test.
    fn here(&self, text: &str) -> String {
        let folder = self.harness.folder().to_str().expect("a path");
        let text = text
            .replace("/etc/perfetto", folder)
            .replace("/run/perfetto/traced-producer.sock", self.harness.producer_socket().to_str().expect("a path"))
            .replace("tracing@192.168.0.1", &format!("root@{}", self.address))
            .replace("192.168.0.1", &self.address);
        text.replace(" esatto ", &format!(" {} ", esatto_bin().display()))
    }

    /// A command that a shell runs in a namespace. A command that begins with variables takes the
    /// place of the shell, so that it ends with it.
    fn shell(&self, inside: &Namespace, text: &str) -> Command {
        let wrapper = inside.wrapper();
        let has_variables = text.split_whitespace().next().is_some_and(|word| word.contains('='));
        let text = if has_variables { &format!("exec env {text}") } else { text };
        let mut command = self.harness.command(&wrapper[0]);
        command.args(&wrapper[1..]).args(["sh", "-c", text]);
        command.env_remove("PERFETTO_PRODUCER_SOCK_NAME");
        command
    }

    /// Runs a command in a namespace to its end. Returns its exit code and its output.
    fn run(&self, inside: &Namespace, text: &str) -> (Option<i32>, String) {
        let mut program = self.harness.start("shell", &mut self.shell(inside, text));
        let status = program.wait();
        (status.code(), program.log())
    }

    /// Makes the keys of both, and writes the configuration of sshd.
    fn prepare_ssh(&self) {
        let make = "ssh-keygen -t ed25519 -N '' -f /etc/perfetto/relay_key";
        assert!(GUIDE.contains(make), "the guide says how to make a key");
        for make in [self.here(make), self.here(&make.replace("relay_key", "host_key"))] {
            let (code, log) = self.run(&self.guest, &make);
            assert_eq!(code, Some(0), "{log}");
        }
        let read = |name: &str| std::fs::read_to_string(self.harness.path(name)).expect("it was made");
        self.harness.write("authorized_keys", read("relay_key.pub"));
        let path = |name: &str| self.harness.path(name).display().to_string();
        let config = [
            "Port 22".to_owned(),
            format!("ListenAddress {}", self.address),
            format!("HostKey {}", path("host_key")),
            format!("AuthorizedKeysFile {}", path("authorized_keys")),
            "PermitRootLogin prohibit-password".to_owned(),
            "PasswordAuthentication no".to_owned(),
            "StrictModes no".to_owned(),
            "UsePAM no".to_owned(),
            "PidFile none".to_owned(),
            printed("Match User tracing").replace("User tracing", "User root"),
        ];
        self.harness.write("sshd_config", config.join("\n") + "\n");
        std::fs::create_dir_all("/run/sshd").expect("the user is root");
        std::fs::set_permissions("/run/sshd", PermissionsExt::from_mode(0o755)).expect("the user is root");
    }

    /// Fetches the host's key as the guide says, and compares it.
    fn know_the_host(&self) {
        let host_key = std::fs::read_to_string(self.harness.path("host_key.pub")).expect("it was made");
        let host_key = host_key.split(' ').nth(1).expect("a key");
        assert!(GUIDE.contains("ssh-keyscan 192.168.0.1"), "the guide says how to get the host's key");
        let scan = self.here("ssh-keyscan -t ed25519 192.168.0.1 2>/dev/null");
        let known = wait_until("sshd answers", || {
            let (_, keys) = self.run(&self.guest, &scan);
            keys.contains(host_key).then_some(keys)
        });
        self.harness.write("known_hosts", known);
    }
}

/// Everything that crosses the cables of a namespace.
struct Capture(OwnedFd);

impl Capture {
    fn begin(inside: &Namespace) -> Self {
        let namespace = std::fs::File::open(inside.path()).expect("it was made");
        let open = move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).expect("the user is root");
            socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::NONBLOCK, Some(eth::ALL))
                .expect("the user is root")
        };
        // The socket stays in the namespace, the thread ends.
        let socket = std::thread::spawn(open).join().expect("a socket");
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, 64 << 20).expect("the user is root");
        Self(socket)
    }

    /// Returns the bytes of all frames, without those of the loopback device.
    fn end(self) -> Vec<u8> {
        let (mut all, mut frame) = (Vec::new(), vec![0; 1 << 17]);
        while let Ok((len, _)) = recv(&self.0, &mut frame[..], RecvFlags::empty()) {
            // Only loopback has no hardware address.
            if frame[..6] != [0; 6] {
                all.extend_from_slice(&frame[..len]);
            }
        }
        all
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn and_programs_are_recorded_through_it() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        Peer::Openssh.require()?;
        let machines = Machines::new()?;
        let (harness, host, guest) = (&machines.harness, &machines.host, &machines.guest);
        machines.prepare_ssh();

        // The host.
        let traced = printed("PERFETTO_PRODUCER_SOCK_NAME=/run/perfetto/traced-producer.sock,127.0.0.1:20001");
        let mut traced = harness.start("traced", &mut machines.shell(host, &machines.here(traced)));
        traced.wait_for_log("Started traced");
        let sshd = format!("exec /usr/sbin/sshd -D -e -f {}", harness.path("sshd_config").display());
        let mut sshd = harness.start("sshd", &mut machines.shell(host, &sshd));
        sshd.wait_for_log("Server listening");
        machines.know_the_host();

        // The guest.
        let capture = Capture::begin(guest);
        let ssh = machines.here(printed("ssh -N"));
        let _tunnel = harness.start("ssh", &mut machines.shell(guest, &ssh));
        let there = Guest::inside(harness, "guest1", guest.wrapper());
        let relay = machines.here(printed("PERFETTO_RELAY_SOCK_NAME=127.0.0.1:20001"));
        let mut relay = machines.shell(guest, &relay);
        relay.env("PERFETTO_PRODUCER_SOCK_NAME", there.socket()).env("ESATTO_MACHINE_ID_HINT", "guest1");
        let mut relay = harness.start("relay", &mut relay);
        relay.wait_for_log("The service knows this machine and its clocks");
        let mut recording =
            harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
        harness.wait_for_sessions(1);
        let mut program = there.application(Implementation::Ours, WORKLOAD);
        program.wait_ok();
        let trace = harness.stop(&mut recording);
        workload::assert_whole(&trace, &[Expected { pid: program.pid(), workload: WORKLOAD, details: true }]);

        // The name of a counter is in the trace, and crossed the network only encrypted.
        let (trace, crossed) = (std::fs::read(&trace).expect("a trace"), capture.end());
        assert!(contains(&trace, "queue depth"));
        assert!(crossed.len() > 50_000, "the whole trace crossed: {}", crossed.len());
        assert!(contains(&crossed, "SSH-2.0-"), "the capture sees clear text");
        assert!(!contains(&crossed, "queue depth") && !contains(&crossed, "ProducerPort"));
        Ok(())
    });
}

#[test]
fn and_it_lets_nothing_else_in() {
    skip(|| {
        Peer::Openssh.require()?;
        let machines = Machines::new()?;
        let (harness, host, guest) = (&machines.harness, &machines.host, &machines.guest);
        machines.prepare_ssh();
        let traced = printed("PERFETTO_PRODUCER_SOCK_NAME=/run/perfetto/traced-producer.sock,127.0.0.1:20001");
        let mut traced = harness.start("traced", &mut machines.shell(host, &machines.here(traced)));
        traced.wait_for_log("Started traced");
        let sshd = format!("exec /usr/sbin/sshd -D -e -f {}", harness.path("sshd_config").display());
        let mut sshd = harness.start("sshd", &mut machines.shell(host, &sshd));
        sshd.wait_for_log("Server listening");
        machines.know_the_host();

        // The service cannot be reached past the tunnel.
        let direct = format!("bash -c 'exec 3<>/dev/tcp/{}/20001'", machines.address);
        let (code, log) = machines.run(guest, &direct);
        assert!(code == Some(1) && log.contains("refused"), "{log}");
        // The key opens no shell and no other port.
        let ssh = machines.here(printed("ssh -N"));
        let (options, _) = ssh.split_once(" -L ").expect("it forwards");
        let login = format!("{} root@{} id", options.replace("ssh -N", "ssh"), machines.address);
        let (code, log) = machines.run(guest, &login);
        assert!(code == Some(1) && !log.contains("uid="), "{log}");
        let elsewhere = format!("{options} -W 127.0.0.1:22 root@{}", machines.address);
        let (code, log) = machines.run(guest, &elsewhere);
        assert!(code != Some(0) && log.contains("prohibited"), "{log}");
        let sockets =
            format!("{options} -L 127.0.0.1:20003:{} root@{}", harness.consumer_socket().display(), machines.address);
        let _sockets = harness.start("ssh-sockets", &mut machines.shell(guest, &format!("exec {sockets}")));
        let read = "bash -c 'exec 3<>/dev/tcp/127.0.0.1/20003 && head -c 1 <&3 | wc -c'";
        let (_, log) =
            wait_until("it forwards", || Some(machines.run(guest, read)).filter(|(_, log)| !log.contains("refused")));
        assert_eq!(log.trim(), "0", "the consumer socket is closed to the guest");
        sshd.wait_for_log("refused streamlocal port forward");
        let back = format!("{options} -R 127.0.0.1:20004:127.0.0.1:1 root@{}", machines.address);
        let (code, log) = machines.run(guest, &back);
        assert!(code == Some(255) && log.contains("remote port forwarding failed"), "{log}");
        // A host with another key is not trusted.
        let other = std::fs::read_to_string(harness.path("relay_key.pub")).expect("it was made");
        harness.write("known_hosts", format!("{} {other}", machines.address));
        let (code, log) = machines.run(guest, &ssh);
        assert!(code == Some(255) && log.contains("Host key verification failed"), "{log}");
        Ok(())
    });
}
