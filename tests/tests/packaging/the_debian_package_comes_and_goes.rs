//! dpkg installs, upgrades, removes and purges the package in a small Debian.

use crate::debian_packages::folder;
use crate::scratch_root::ScratchRoot;
use esatto_tests::skip;

/// Prints every file, its mode, its owner and its content. Left out are notes of dpkg, systemd and
/// the programs for users about their own work.
const SNAPSHOT: &str = r#"
cd /
left_out=(-path ./proc -o -path ./sys -o -path ./dev -o -path ./mnt -o -path ./tmp -o -path ./var/log
    -o -path ./var/lib/dpkg -o -path ./var/cache/ldconfig -o -path ./etc/ld.so.cache
    -o -path ./var/lib/systemd/deb-systemd-helper-enabled -o -path ./var/lib/systemd/deb-systemd-helper-masked
    -o -name 'passwd-' -o -name 'group-' -o -name 'shadow-' -o -name 'gshadow-' -o -name .pwd.lock)
find . -xdev \( "${left_out[@]}" \) -prune -o -printf '%y %m %U %G %p %l\n' | sort
find . -xdev \( "${left_out[@]}" \) -prune -o -type f -print0 | sort -z | xargs -0 md5sum
find var/lib/systemd -type f | sort
"#;

/// Prints a line for each promise that does not hold.
const INSTALLED: &str = r#"
for name in perfetto tracebox trigger_perfetto; do
    [ "$(readlink /usr/bin/$name)" = esatto ] || echo "$name is no link"
done
for name in esatto traced traced_probes traced_relay; do
    [ -f /usr/bin/$name ] && [ ! -L /usr/bin/$name ] || echo "$name is no program"
    $name --version >/dev/null || echo "$name does not run"
done
perfetto --version | grep -q Esatto || echo 'perfetto is not ours'
for page in esatto esatto-record esatto-traced perfetto traced traced_probes traced_relay tracebox trigger_perfetto; do
    gzip -t /usr/share/man/man1/$page.1.gz || echo "no page $page"
done
for path in bash-completion/completions/esatto zsh/vendor-completions/_esatto fish/vendor_completions.d/esatto.fish; do
    [ -s /usr/share/$path ] || echo "no $path"
done
[ "$(getent passwd perfetto | cut -d: -f6,7)" = /var/lib/perfetto:/usr/sbin/nologin ] || echo 'no user'
[ "$(stat -c '%a %U' /run/perfetto)" = '755 root' ] || echo 'no folder for sockets'
# Settings may have changed.
dpkg --verify esatto | grep -v ' c /etc/' || true
dpkg --audit
"#;

const ENABLED: &str = r"
for unit in traced-producer.socket traced-consumer.socket traced-probes.service \
    traced.service traced-relay.socket traced-relay.service; do
    systemctl is-enabled $unit || true
done
";

/// A recording by the installed programs, at the standard sockets.
const RECORD: &str = r#"
service=$(traced --background)
probes=$(traced_probes --background)
for i in $(seq 600); do perfetto --query | grep -q linux.process_stats && break; sleep 0.1; done
printf '%s\n' 'buffers { size_kb: 1024 } duration_ms: 300' \
    'data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }' \
    >/tmp/config
perfetto --txt -c /tmp/config -o /tmp/trace.pftrace
esatto info /tmp/trace.pftrace
# The service removes its sockets when it ends.
kill $probes $service
for i in $(seq 600); do [ -e /run/perfetto/traced-consumer.sock ] || break; sleep 0.1; done
"#;

#[test]
fn nothing_is_left_after_a_purge() {
    skip(|| {
        let (root, packages) = (ScratchRoot::new("comes-and-goes")?, folder()?);
        let run = |script: &str| root.run(packages, script);
        let before = run(SNAPSHOT);

        run("dpkg -i /mnt/esatto_*-1_*.deb");
        assert_eq!(run(INSTALLED), "");
        assert_eq!(run(ENABLED), "enabled\nenabled\nenabled\ndisabled\ndisabled\ndisabled\n");
        let recorded = run(RECORD);
        assert!(recorded.contains("Wrote ") && recorded.contains("traced_probes"), "{recorded}");

        // Decisions of the administrator, and a trace of the service.
        run("systemctl disable traced-probes.service; systemctl enable traced-relay.socket; \
             echo PERFETTO_RELAY_SOCK_NAME=192.0.2.1:1 >>/etc/default/traced-relay; \
             install -d -o perfetto -g perfetto /var/lib/perfetto; \
             install -o perfetto /dev/null /var/lib/perfetto/trace");
        run("dpkg -i /mnt/esatto_*-2_*.deb");
        assert_eq!(run(INSTALLED), "");
        assert_eq!(run("dpkg-query -W -f '${Version}' esatto"), concat!(env!("CARGO_PKG_VERSION"), "-2"));
        assert_eq!(run(ENABLED), "enabled\nenabled\ndisabled\ndisabled\nenabled\ndisabled\n");
        let settings = "tail -n 1 /etc/default/traced-relay";
        assert_eq!(run(settings), "PERFETTO_RELAY_SOCK_NAME=192.0.2.1:1\n");

        run("dpkg -r esatto");
        assert_eq!(run("ls /usr/bin | grep -E '^(esatto|perfetto|trace.*|trigger_perfetto)$' || true"), "");
        assert_eq!(run(settings), "PERFETTO_RELAY_SOCK_NAME=192.0.2.1:1\n");
        assert_eq!(run("stat -c %U /var/lib/perfetto/trace"), "perfetto\n");
        // It can come back with everything.
        run("dpkg -i /mnt/esatto_*-2_*.deb");
        assert_eq!(run(ENABLED), "enabled\nenabled\ndisabled\ndisabled\nenabled\ndisabled\n");

        run("dpkg -r esatto; dpkg -P esatto");
        let after = run(SNAPSHOT);
        let difference = |one: &str, other: &str| {
            let lines = one.lines().filter(|line| !other.lines().any(|known| known == *line));
            lines.map(str::to_owned).collect::<Vec<String>>()
        };
        assert_eq!(difference(&after, &before), [""; 0], "left behind");
        assert_eq!(difference(&before, &after), [""; 0], "taken away");
        Ok(())
    });
}

/// Debian's own package has the command `perfetto` and units of the same names.
#[test]
fn it_takes_the_place_of_debians_perfetto() {
    skip(|| {
        let (root, packages) = (ScratchRoot::new("takes-the-place")?, folder()?);
        let debian = esatto_tests::peers::folder().join("debian");
        let theirs = |script: &str| root.run(&debian, script);
        theirs("dpkg -i /mnt/perfetto_*.deb");
        assert!(theirs("perfetto --version 2>&1").contains("v56"));

        root.run(packages, "dpkg -i /mnt/esatto_*-1_*.deb");
        assert_eq!(root.run(packages, INSTALLED), "");
        assert!(!root.run(packages, "dpkg-query -W -f '${db:Status-Status}' perfetto || true").contains("installed"));
        // Their units are gone, so ours are the ones that systemd finds.
        assert!(root.run(packages, "cat /usr/lib/systemd/system/traced.service").contains("Esatto"));

        let refused = root.fail(&debian, "dpkg -i /mnt/perfetto_*.deb");
        assert!(refused.contains("conflict"), "{refused}");
        // The other way round, a purge of the settings leaves what is theirs now.
        theirs("dpkg -r esatto; dpkg -i /mnt/perfetto_*.deb; dpkg -P esatto");
        assert!(theirs("perfetto --version 2>&1").contains("v56"));
        assert!(theirs("getent group perfetto").starts_with("perfetto:"));
        Ok(())
    });
}
