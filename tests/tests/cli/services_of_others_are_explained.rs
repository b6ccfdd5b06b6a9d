//! On a machine without a service, or with one of another user: the advice of `esatto record` leads
//! to a recording.

use esatto_tests::{Skip, esatto_bin, skip};
use std::process::Command;

/// Makes a machine without a service: its folders for sockets, its network and its processes are
/// new. `$0` is a copy of `esatto` that all users may run, and `as_nobody` runs a command as an
/// ordinary user. It can also follow the advice that it reads: `$(advice)` is the command in it.
const MACHINE: &str = r#"
mount -t tmpfs -o mode=755 tmpfs /run
cp "$0" /run/esatto
mkdir /run/perfetto
mount -t tmpfs -o mode=1777 tmpfs /tmp
cd /tmp
esatto() { /run/esatto "$@"; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@" 2>&1; }
advice() { sed -n 's/.*`sudo \([^`]*\)`.*/\1/p; s/.*: `\(esatto traced [^`]*\)`.*/\1/p'; }
"#;

/// Runs a script there. Returns what it prints.
fn on_a_new_machine(script: &str) -> Result<String, Skip> {
    let script = format!("{MACHINE}{script}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-e", "-c"]);
    let output = command.arg(script).arg(esatto_bin()).output();
    let output = output.map_err(|why| Skip(format!("no unshare: {why}")))?;
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if stderr.contains("unshare failed") || stderr.contains("mount:") || stderr.contains("setpriv: not found") {
        return Err(Skip(format!("no namespaces: {}", stderr.trim())));
    }
    assert!(output.status.success(), "{stdout}\n{stderr}");
    Ok(stdout + &stderr)
}

#[test]
fn root_follows_the_advice_of_an_ordinary_user() {
    skip(|| -> Result<(), Skip> {
        let said = on_a_new_machine(
            r#"
as_nobody /run/esatto record -t 100ms -o first > said || cat said
$(advice < said) > /dev/null
status=0; as_nobody /run/esatto record -t 100ms -o second || status=$?
echo "status $status"
"#,
        )?;
        assert!(said.contains("cannot start a tracing service") && said.contains("traced --background"), "{said}");
        // No program had an event.
        assert!(said.contains("\nstatus 3\n"), "{said}");
        Ok(())
    });
}

#[test]
fn a_service_of_root_is_started_again_as_advised() {
    skip(|| -> Result<(), Skip> {
        let said = on_a_new_machine(
            r#"
mkdir -m 755 -p /run/perfetto
service=$(esatto traced --background --set-socket-permissions 0:0666:0:0600)
as_nobody /run/esatto record -t 100ms -o first > said || cat said
kill "$service"
while kill -0 "$service" 2> /dev/null; do sleep 0.1; done
$(advice < said) > /dev/null
status=0; as_nobody /run/esatto record -t 100ms -o second || status=$?
echo "status $status"
"#,
        )?;
        assert!(said.contains("only the user root may use "), "{said}");
        assert!(said.contains("\nstatus 3\n"), "{said}");
        Ok(())
    });
}

/// Nobody else may remove a file in /tmp.
#[test]
fn a_socket_that_is_left_over_can_be_removed() {
    skip(|| -> Result<(), Skip> {
        let said = on_a_new_machine(
            r#"
rmdir /run/perfetto
setpriv --reuid 1234 --regid 1234 --clear-groups /run/esatto record -t 1h -o killed 2> /dev/null &
record=$!
while [ ! -e /tmp/perfetto-consumer ]; do sleep 0.1; done
chmod 600 /tmp/perfetto-consumer
kill -9 "$record"
wait "$record" || true
as_nobody /run/esatto record -t 100ms -o first > said || cat said
$(advice < said)
as_nobody /run/esatto list > said || cat said
"#,
        )?;
        assert!(said.contains("no service listens there: the user uid 1234 has left the socket over"), "{said}");
        assert!(said.contains("No such file or directory"), "{said}");
        Ok(())
    });
}

#[test]
fn two_recordings_that_begin_at_once_share_a_service() {
    skip(|| -> Result<(), Skip> {
        let said = on_a_new_machine(
            r#"
for round in 1 2 3 4 5 6 7 8; do
    for number in 1 2 3; do
        esatto record -t 300ms -o "$round.$number" > "said.$round.$number" 2>&1 &
    done
    wait
done
cat said.*
"#,
        )?;
        assert!(said.contains("this command is one until it ends"), "{said}");
        assert!(!said.contains("cannot start a tracing service"), "{said}");
        Ok(())
    });
}

/// As after a failed start of the service, on a machine with both units.
#[test]
fn waiting_probes_do_not_record_the_machine_twice() {
    skip(|| -> Result<(), Skip> {
        let said = on_a_new_machine(
            r#"
echo 'buffers { size_kb: 1024 } data_sources { config {
    name: "linux.sys_stats" sys_stats_config { meminfo_period_ms: 100 } } }' > config
/run/esatto record -t 1h -c config -o trace 2> said &
record=$!
while ! esatto list 2>&1 | grep -q linux.sys_stats; do sleep 0.1; done
/run/esatto probes 2> waiting &
probes=$!
while ! grep -q Connected waiting; do sleep 0.1; done
sleep 1
esatto list
kill -TERM "$record"
wait "$record"
kill "$probes"
cat said
echo "recorded by $(esatto dump trace --type sys_stats | grep -o 'trusted_pid: [0-9]*' | sort -u | wc -l)"
"#,
        )?;
        assert!(said.contains("this command is one until it ends"), "{said}");
        assert!(said.contains("\nrecorded by 1\n"), "{said}");
        Ok(())
    });
}
