//! systemd starts in a container, and the package is installed, upgraded and removed while it runs.

use crate::debian_packages::folder;
use crate::scratch_root::ScratchRoot;
use crate::unit::tool;
use esatto_tests::{Skip, skip};

/// Starts systemd in the Debian. It gets a hierarchy of control groups of the kind that it knows,
/// whatever this machine has.
const BOOT: &str = r#"
mount -t proc proc /proc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
group=/sys/fs/cgroup/esatto-boot-$RANDOM$RANDOM
mkdir "$group"
echo 0 >"$group/cgroup.procs"
timeout --kill-after=10 150 systemd-nspawn --quiet --directory="$root" --boot --keep-unit --register=no --private-network --console=pipe \
    --capability=CAP_SYSLOG --link-journal=no "$@" </dev/null || status=$?
echo 0 >/sys/fs/cgroup/cgroup.procs
find "$group" -depth -type d -exec rmdir {} \; || true
exit ${status:-0}
"#;

/// A unit that runs the checks as soon as the system has started, and then stops it.
const UNIT: &str = "\
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=-/usr/bin/bash -c 'bash -u /checks >/report 2>&1'
ExecStart=/usr/bin/systemctl --no-block poweroff
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
";

/// Prints facts, one per line, each with its name.
const CHECKS: &str = r#"
fact() { printf '%s: %s\n' "$1" "$(shift; "$@" 2>&1 | tr '\n' ' ')"; }
state() { for unit in "$@"; do printf '%s=%s ' "$unit" "$(systemctl is-active "$unit")"; done; }
sockets='traced-producer.socket traced-consumer.socket'
connected() {
    for i in $(seq 600); do perfetto --query 2>/dev/null | grep -q linux.process_stats && break; sleep 0.1; done
    perfetto --query 2>/dev/null | grep -c linux.process_stats
}
user_of() { id -un "$(sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$1/status")"; }
processes() { cat /proc/[0-9]*/comm 2>/dev/null | grep -c '^traced'; }
main_pid() { systemctl show --property MainPID --value "$1"; }

dpkg -i /mnt/esatto_*-1_*.deb || echo 'dpkg failed'
fact installed state $sockets traced-probes.service
# The connection of the probes starts the service.
fact probes-are-connected connected
fact running state traced.service
fact user user_of "$(main_pid traced.service)"
fact capabilities grep CapEff "/proc/$(main_pid traced.service)/status"
fact sandbox grep -E 'Seccomp:|NoNewPrivs' "/proc/$(main_pid traced.service)/status"
fact status systemctl show --property StatusText --value traced.service traced-probes.service
fact modes stat -c '%a %U %G' /run/perfetto/traced-producer.sock /run/perfetto/traced-consumer.sock

printf '%s\n' 'buffers { size_kb: 1024 } duration_ms: 300' \
    'data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }' \
    >/tmp/config
fact recorded perfetto --txt -c /tmp/config -o /tmp/trace.pftrace
useradd --no-create-home somebody
fact stranger setpriv --reuid somebody --regid somebody --clear-groups perfetto --query
usermod --append --groups perfetto somebody
fact member setpriv --reuid somebody --regid somebody --init-groups perfetto --query

before="$(main_pid traced.service) $(main_pid traced-probes.service)"
dpkg -i /mnt/esatto_*-2_*.deb || echo 'dpkg failed'
fact connected-after-the-upgrade connected
after="$(main_pid traced.service) $(main_pid traced-probes.service)"
fact restarted test "$before" != "$after"
fact upgraded state $sockets traced.service traced-probes.service
echo "restarted-daemons: $(for pid in $before; do [ -e /proc/$pid ] && echo old; done)"

# The relay takes the place of the service.
echo PERFETTO_RELAY_SOCK_NAME=192.0.2.1:1 >>/etc/default/traced-relay
fact relay-starts systemctl start traced-relay.service
fact relay state traced-relay.service traced-relay.socket traced-producer.socket
systemctl stop traced-relay.service traced-relay.socket
systemctl start $sockets
fact back state $sockets

dpkg -r esatto || echo 'dpkg failed'
fact removed state $sockets traced.service traced-probes.service
fact processes processes
fact sockets-left ls /run/perfetto
dpkg -P esatto || echo 'dpkg failed'
fact purged getent passwd perfetto
fact failed-units systemctl --failed --no-legend --plain
echo 'end: reached'
"#;

#[test]
fn from_the_installation_to_the_purge() {
    skip(|| {
        tool("systemd-nspawn", "nspawn")?;
        let (root, packages) = (ScratchRoot::new("boot")?, folder()?);
        let units = root.changed("/etc/systemd/system");
        std::fs::create_dir_all(units.join("multi-user.target.wants")).expect("the folder is ours");
        std::fs::write(units.join("checks.service"), UNIT).expect("the folder is ours");
        std::os::unix::fs::symlink("../checks.service", units.join("multi-user.target.wants/checks.service"))
            .expect("the folder is ours");
        std::fs::write(root.changed("/checks"), CHECKS).expect("the folder is ours");

        let boot = root.command(packages, BOOT, &[]).output().expect("unshare can be started");
        let said = String::from_utf8_lossy(&[boot.stderr, boot.stdout].concat()).into_owned();
        let Ok(report) = std::fs::read_to_string(root.changed("/report")) else {
            // A container that has started must also report.
            assert!(!boot.status.success(), "{said}");
            return Err(Skip(format!(
                "no container: {}",
                said.lines().last().unwrap_or("systemd-nspawn says nothing")
            )));
        };
        let fact = |name: &str| {
            let line = report.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.unwrap_or_else(|| panic!("no {name}: {report}")).trim()
        };
        assert_eq!(fact("end"), "reached", "{report}");
        let sockets = "traced-producer.socket=active traced-consumer.socket=active";
        assert_eq!(fact("installed"), format!("{sockets} traced-probes.service=active"), "{report}");
        assert_ne!(fact("probes-are-connected"), "0", "{report}");
        assert_eq!(fact("running"), "traced.service=active");
        assert_eq!(fact("user"), "perfetto");
        assert_eq!(fact("capabilities").split_whitespace().last(), Some("0000000000000000"));
        assert_eq!(fact("sandbox").split_whitespace().collect::<Vec<_>>(), ["NoNewPrivs:", "1", "Seccomp:", "2"]);
        assert!(fact("status").contains("Connected to the tracing service"), "{report}");
        assert_eq!(fact("modes"), "666 perfetto perfetto 660 perfetto perfetto");
        assert!(fact("recorded").contains("Wrote "), "{report}");
        assert!(!fact("stranger").contains("linux.process_stats"), "{report}");
        assert!(fact("member").contains("linux.process_stats"), "{report}");

        assert_ne!(fact("connected-after-the-upgrade"), "0", "{report}");
        assert_eq!(fact("restarted-daemons"), "", "{report}");
        assert_eq!(
            fact("upgraded"),
            format!("{sockets} traced.service=active traced-probes.service=active"),
            "{report}"
        );
        assert_eq!(
            fact("relay"),
            "traced-relay.service=active traced-relay.socket=active traced-producer.socket=inactive"
        );
        assert_eq!(fact("back"), sockets);

        let none = ["traced-producer.socket", "traced-consumer.socket", "traced.service", "traced-probes.service"];
        for unit in none {
            assert!(fact("removed").contains(&format!("{unit}=inactive")), "{report}");
        }
        assert_eq!(fact("processes"), "0", "{report}");
        assert_eq!(fact("purged"), "", "{report}");
        assert_eq!(fact("failed-units"), "", "{report}");
        assert!(!report.contains("dpkg failed"), "{report}");
        Ok(())
    });
}
