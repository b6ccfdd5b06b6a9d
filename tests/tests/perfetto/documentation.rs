//! Command lines of Perfetto's own documentation, word for word, with our programs in the `PATH`.
//!
//! Each runs in a copy of the machine's files that nobody else sees, with process ids of its own.
//! So paths such as `/data/misc/perfetto-traces` and commands such as `killall` do no harm, and the
//! sockets are those that programs use by default. Of the page, a test has the command lines. The
//! configs are our own, because they decide nothing here but the length of the test. `sleep` is
//! shorter, and `sudo` runs its command.
//!
//! Left out are the command lines of these pages, because they need something else:
//!
//! - with `adb`, `record_android_trace` or `/system/bin`: an Android device
//!   (`docs/quickstart/android-tracing.md`,
//!   `docs/getting-started/local-android-trace-recording.md`, and the tabs for Android of other
//!   pages);
//! - `tools/tmux`, `tools/ninja`, `mmma`, `protoc`, `curl`: the sources of Perfetto, or the
//!   network;
//! - `trace_processor`, `traceconv`, `trace_processor_shell`: programs that read traces;
//! - `heap_profile`, and `linux.perf` of `docs/getting-started/cpu-profiling.md`: data sources that
//!   are not here. Its command line is that of `docs/getting-started/system-tracing.md`.

use esatto_tests::{Harness, Program, Skip, esatto_bin, skip};

/// Makes the private machine, and runs the script in it.
const PRIVATE_MACHINE: &str = r#"
set -e
mount -t tmpfs none /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work /mnt/root
for folder in sys dev; do mount --rbind /$folder /mnt/root/$folder; done
mount -t proc proc /mnt/root/proc
mount -t tmpfs none /mnt/root/run
mount -t tmpfs none /mnt/root/tmp
bin=/mnt/root/usr/local/bin
mkdir -p $bin
: > $bin/esatto
mount --bind "$ESATTO" $bin/esatto
for name in perfetto trigger_perfetto tracebox traced traced_probes; do ln -sf esatto $bin/$name; done
printf '#!/bin/sh\nexec "$@"\n' > $bin/sudo
printf '#!/bin/sh\nexec /bin/sleep $(($1 > 20 ? 2 : 1))\n' > $bin/sleep
chmod +x $bin/sudo $bin/sleep
mkdir -p /mnt/root/data/misc/perfetto-traces /mnt/root/path/to /mnt/root/home/page
mkdir -p /mnt/root/home/page/out/linux /mnt/root/home/page/test/configs
cp script /mnt/root/home/page/
cd /mnt/root/home/page
ln -s /usr/local/bin/esatto tracebox
ln -s /usr/local/bin/esatto out/linux/tracebox
exec chroot /mnt/root /bin/bash -ec '
export PATH=/usr/local/bin:$PATH
unset PERFETTO_PRODUCER_SOCK_NAME PERFETTO_CONSUMER_SOCK_NAME
cd /home/page
. ./script
echo "the script has ended"
'
"#;

/// Functions for the scripts.
const FUNCTIONS: &str = r#"
# Starts the daemons, and waits until they have met.
daemons() {
    traced & traced_probes &
    until perfetto --query 2>/dev/null | grep -q linux.process_stats; do /bin/sleep 0.1; done
}
# Waits until a session of this name runs.
session() { until perfetto --query | grep -q "STARTED.*$1"; do /bin/sleep 0.1; done; }
# Fails unless the file is a trace with data of the machine.
is_trace() { test -s "$1" && esatto info "$1" | grep -q system_info; }
# Writes a config with these further lines.
config() {
    printf '%s\n' 'buffers { size_kb: 4096 fill_policy: RING_BUFFER }' \
        'data_sources { config { name: "linux.system_info" } }' \
        'data_sources { config { name: "linux.ftrace" ftrace_config { ftrace_events: "sched/sched_switch" } } }' \
        "$@"
}
"#;

/// Runs a script in a private machine.
fn run(script: &str) {
    skip(|| {
        let harness = Harness::new();
        harness.write("script", [FUNCTIONS, script].concat());
        let mut machine = start(&harness, PRIVATE_MACHINE);
        let status = machine.wait();
        let log = machine.log();
        if ["unshare: ", "mount: ", "chroot: "].iter().any(|refusal| log.contains(refusal)) {
            return Err(Skip(format!("no private machine: {log}")));
        }
        assert!(status.success() && log.contains("the script has ended"), "{status}\n{log}");
        Ok(())
    });
}

fn start(harness: &Harness, script: &str) -> Program {
    let mut command = harness.command("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]);
    harness.start("machine", command.args(["/bin/bash", "-c", script]).env("ESATTO", esatto_bin()))
}

/// `docs/quickstart/linux-tracing.md`
#[test]
fn quickstart_on_linux() {
    run(r"
config 'duration_ms: 500' > test/configs/scheduling.cfg
out/linux/tracebox -o trace_file.perfetto-trace --txt -c test/configs/scheduling.cfg
is_trace trace_file.perfetto-trace
");
}

/// `docs/getting-started/system-tracing.md`, `ftrace.md`, `cpu-profiling.md`, `linux-cookbook.md`,
/// and `docs/data-sources/funcgraph.md`
#[test]
fn tracebox_with_a_config() {
    run(r"
for name in scheduling.cfg ticker.cfg funcgraph.cfg cpu.cfg /tmp/config.txtpb; do
    config 'duration_ms: 300' > $name
done
./tracebox -o trace_file.perfetto-trace --txt -c scheduling.cfg
is_trace trace_file.perfetto-trace
./tracebox -c ticker.cfg --txt -o ticker.pftrace
is_trace ticker.pftrace
./tracebox -c funcgraph.cfg --txt -o funcgraph.pftrace
is_trace funcgraph.pftrace
./tracebox -c /tmp/config.txtpb --txt -o /tmp/trace.pb
is_trace /tmp/trace.pb
sudo ./tracebox -c cpu.cfg --txt -o /tmp/trace.pftrace
is_trace /tmp/trace.pftrace
sudo ./tracebox -c funcgraph.cfg --txt -o /tmp/funcgraph.pftrace
is_trace /tmp/funcgraph.pftrace
");
}

/// `docs/concepts/config.md`
#[test]
fn a_text_config_and_a_binary_one() {
    run(r"
daemons
config 'duration_ms: 300' > config.pbtx
cp config.pbtx /path/to/config.pbtx
esatto config convert config.pbtx -o config.bin
perfetto --txt -c config.pbtx -o trace_file.perfetto-trace
is_trace trace_file.perfetto-trace
rm trace_file.perfetto-trace
perfetto -c /path/to/config.pbtx --txt -o trace_file.perfetto-trace
is_trace trace_file.perfetto-trace
rm trace_file.perfetto-trace
perfetto -c config.bin -o trace_file.perfetto-trace
is_trace trace_file.perfetto-trace
");
}

/// `docs/concepts/config.md`, triggers. The page calls the program by its path on Android.
#[test]
fn triggers_begin_and_end_a_recording() {
    run(r#"
daemons
config 'unique_session_name: "stops"' 'trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 600000' \
    'triggers { name: "trigger_name" stop_delay_ms: 100 } }' > stop.pbtx
perfetto --txt -c stop.pbtx -o stop.pftrace &
session stops
trigger_perfetto "trigger_name"
wait $!
is_trace stop.pftrace
config 'unique_session_name: "begins"' 'trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 600000' \
    'triggers { name: "trigger_name" stop_delay_ms: 300 } }' > start.pbtx
perfetto --txt -c start.pbtx -o start.pftrace &
until perfetto --query | grep -q begins; do /bin/sleep 0.1; done
echo 'activate_triggers: "trigger_name"' | perfetto --txt -c -
wait $!
is_trace start.pftrace
"#);
}

/// `docs/concepts/config.md`: background tracing.
#[test]
fn a_recording_in_the_background_ends_by_kill() {
    run(r#"
daemons
config 'unique_session_name: "background"' > config.pbtx
PID=$(perfetto --background --txt -c config.pbtx -o /tmp/trace_file.perfetto-trace)
session background
kill $PID
while kill -0 $PID 2>/dev/null && ! grep -q 'State:.Z' /proc/$PID/status; do /bin/sleep 0.1; done
is_trace /tmp/trace_file.perfetto-trace
"#);
}

/// `docs/concepts/detached-mode.md`
#[test]
fn detached_sessions() {
    run(r"
daemons
config 'write_into_file: true file_write_period_ms: 5000' | perfetto -c - --txt --detach=session1 -o /data/misc/perfetto-traces/trace

sleep 60

perfetto --attach=session1 --stop
is_trace /data/misc/perfetto-traces/trace
rm /data/misc/perfetto-traces/trace

config 'write_into_file: true file_write_period_ms: 1000000000' | perfetto -c - --txt --detach=session2 -o /data/misc/perfetto-traces/trace
perfetto --attach=session2 --stop
is_trace /data/misc/perfetto-traces/trace
rm /data/misc/perfetto-traces/trace

config 'write_into_file: true duration_ms: 4000' | perfetto -c - --txt --detach=session3 -o /data/misc/perfetto-traces/trace

sleep 3
perfetto --attach=session3
is_trace /data/misc/perfetto-traces/trace
");
}

/// `docs/getting-started/periodic-trace-snapshots.md`, with separate programs.
#[test]
fn periodic_snapshots() {
    run(r#"
daemons
config 'unique_session_name: "my_snapshot"' > snapshot_config.pbtxt
perfetto -c snapshot_config.pbtxt --txt \
  --background -o /tmp/snapshot_bg
session my_snapshot
perfetto --clone-by-name my_snapshot \
  -o /tmp/snapshot_1.pftrace
is_trace /tmp/snapshot_1.pftrace
rm /tmp/snapshot_1.pftrace
./tracebox --clone-by-name my_snapshot \
  -o /tmp/snapshot_1.pftrace
is_trace /tmp/snapshot_1.pftrace
perfetto --clone-by-name my_snapshot \
  -o /tmp/snapshot_2.pftrace
is_trace /tmp/snapshot_2.pftrace
for i in $(seq 1 3); do
  SNAP="/tmp/snap_${i}.pftrace"
  perfetto --clone-by-name my_snapshot -o "$SNAP"
  is_trace "$SNAP"
  sleep 5
done
if command -v killall > /dev/null; then
killall perfetto
else
kill $(pgrep -x perfetto)
fi
while perfetto --query | grep -q my_snapshot; do /bin/sleep 0.1; done
is_trace /tmp/snapshot_bg
"#);
}

/// The same page, with `tracebox` alone: it starts the daemons, and its session can be cloned by
/// `tracebox`.
#[test]
fn tracebox_in_the_background() {
    run(r#"
config 'unique_session_name: "my_snapshot"' > snapshot_config.pbtxt
PID=$(./tracebox -c snapshot_config.pbtxt --txt \
  --background -o /tmp/snapshot_bg)
/bin/sleep 1
if command -v killall > /dev/null; then
killall tracebox
else
kill $PID
fi
while kill -0 $PID 2>/dev/null && ! grep -q 'State:.Z' /proc/$PID/status; do /bin/sleep 0.1; done
is_trace /tmp/snapshot_bg
"#);
}
