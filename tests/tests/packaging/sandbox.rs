//! The restrictions of `traced.service` without systemd: namespaces, a user, no capabilities, and a
//! filter of system calls.

use crate::unit::{Unit, output, systemd};
use esatto_tests::{Harness, Program, Skip, beside_this_test};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::Command;

/// Stands in for the user of the unit, which may not exist here.
const NOBODY: u32 = 65534;

/// As `traced.service` has it. `$1` is the state folder outside, `$2` the sandbox program, `$3` the
/// daemon; `$4` and `$5` are allowed calls and families of sockets.
///
/// ProtectSystem=strict, StateDirectory, InaccessiblePaths, ProtectHome; then NoNewPrivileges, User
/// and the empty set of capabilities; then the two filters. PrivateNetwork, PrivateIPC and
/// ProtectHostname are the namespaces around it.
const ENTER: &str = r#"
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=0755 tmpfs /var/lib
mkdir /var/lib/perfetto /var/lib/programs
mount --bind "$1" /var/lib/perfetto
cp "$2" /var/lib/programs/sandbox
cp "$3" /var/lib/programs/traced
for folder in /tmp /var/tmp /root /home; do
    if [ -d "$folder" ]; then mount -t tmpfs -o mode=0000,ro tmpfs "$folder"; fi
done
mount -o remount,bind,ro /var/lib
mount -o remount,bind,ro /
cd /
exec setpriv --no-new-privs --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all \
    /var/lib/programs/sandbox "$4" "$5" /var/lib/programs/traced
"#;

/// The state folder as the daemon sees it.
pub(crate) const STATE: &str = "/var/lib/perfetto";

/// The daemon under the restrictions of its unit, on sockets that were made outside.
pub(crate) struct Sandbox {
    pub(crate) harness: Harness,
    pub(crate) traced: Program,
    /// Receives the daemon's messages to the service manager.
    pub(crate) manager: UnixDatagram,
}

impl Sandbox {
    /// Starts it, as systemd would.
    ///
    /// # Errors
    ///
    /// There is no systemd that could tell what its groups of calls contain, or no right to make
    /// namespaces.
    pub(crate) fn start() -> Result<Self, Skip> {
        let unit = Unit::read("traced.service");
        let calls = allowed_calls(&unit)?;
        let harness = Harness::new();
        let state = harness.path("state");
        std::fs::create_dir(&state).expect("the folder is new");
        std::os::unix::fs::chown(&state, Some(NOBODY), Some(NOBODY))
            .map_err(|error| Skip(format!("no right to make a sandbox: {error}")))?;
        let manager = UnixDatagram::bind(state.join("notify")).expect("the folder is new");
        manager.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("the socket is ours");
        std::fs::set_permissions(state.join("notify"), PermissionsExt::from_mode(0o777)).expect("the socket is ours");
        std::fs::set_permissions(harness.path(""), PermissionsExt::from_mode(0o755)).expect("the folder is ours");

        let sockets = [harness.producer_socket(), harness.consumer_socket()].map(inherited_socket);
        let moves = (3..).zip(&sockets).map(|(to, from)| format!(" {to}<&{0} {0}<&-", from.as_raw_fd()));
        let moves = moves.collect::<String>();
        let script = format!("exec{moves}; LISTEN_PID=$$ exec unshare --mount --net --ipc --uts sh -c \"$@\"");
        let mut command = Command::new("bash");
        command.args(["-c", &script, "bash", ENTER, "sh"]);
        command.arg(&state).arg(beside_this_test("esatto-sandbox")).arg(beside_this_test("traced"));
        command.args([calls.join(","), families(&unit)]);
        command.env("LISTEN_FDS", "2").env("LISTEN_FDNAMES", "producer:consumer").env("HOME", "/");
        command.env("NOTIFY_SOCKET", format!("{STATE}/notify"));
        let mut traced = harness.start("traced", &mut command);
        esatto_tests::wait_until("the daemon serves or says why not", || {
            let log = traced.log();
            (log.contains("Started traced") || !traced.is_running()).then_some(())
        });
        let log = traced.log();
        if log.contains("unshare failed") || log.contains("mount:") {
            return Err(Skip(format!("no right to make a sandbox: {}", log.trim())));
        }
        Ok(Self { harness, traced, manager })
    }
}

/// A listening socket that children inherit, with a number that is out of the way.
fn inherited_socket(path: PathBuf) -> OwnedFd {
    let listener = UnixListener::bind(path).expect("the folder is ours");
    let fd = rustix::io::fcntl_dupfd_cloexec(&listener, 100).expect("there are descriptors");
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty()).expect("it is open");
    fd
}

/// The names that `SystemCallFilter=` allows, groups resolved.
pub(crate) fn allowed_calls(unit: &Unit) -> Result<Vec<String>, Skip> {
    let (groups, mut names): (Vec<String>, Vec<String>) =
        unit.words("SystemCallFilter").into_iter().map(str::to_owned).partition(|word| word.starts_with('@'));
    assert!(!names.iter().any(|name| name.starts_with('~')), "this test cannot subtract");
    // The calls that systemd always allows are a group of their own.
    let listing = output(systemd("systemd-analyze")?.arg("syscall-filter").arg("@default").args(groups));
    let mut calls: Vec<String> =
        listing.lines().map(str::trim).filter(|line| !line.starts_with(['#', '@'])).map(str::to_owned).collect();
    assert!(calls.iter().any(|call| call == "epoll_wait") && !calls.iter().any(|call| call == "mount"));
    calls.append(&mut names);
    calls.retain(|call| !call.is_empty());
    Ok(calls)
}

/// The numbers of `RestrictAddressFamilies=`.
pub(crate) fn families(unit: &Unit) -> String {
    let number = |name: &str| match name {
        "AF_UNIX" => "1",
        "AF_INET" => "2",
        "AF_INET6" => "10",
        "AF_VSOCK" => "40",
        _ => panic!("what is {name}?"),
    };
    unit.words("RestrictAddressFamilies").into_iter().map(number).collect::<Vec<_>>().join(",")
}
