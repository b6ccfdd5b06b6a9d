//! A time namespace makes a machine that was booted at another time. Its clocks differ from ours by
//! more than a day, but the events of both are on one axis.

use crate::guest::{Guest, host, loopback_address};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, Program, Skip, tp, wait_until};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

const SHORT: Workload = Workload { threads: 1, rounds: 20, pause_us: 1000 };

/// How far the clocks of the guest are ahead.
const BOOTTIME_S: u64 = 200_000;
const MONOTONIC_S: u64 = 100_000;

/// Tolerance of the estimate on a busy machine. A round trip takes microseconds.
const TOLERANCE_NS: i64 = 1_000_000_000;

/// Something that is in the other time namespace, as long as it lives.
pub(crate) fn time_namespace(harness: &Harness) -> Result<(Program, Vec<OsString>), Skip> {
    let mut command = Command::new("unshare");
    command.args([
        "--time",
        "--fork",
        "--kill-child",
        "--boottime",
        &BOOTTIME_S.to_string(),
        "--monotonic",
        &MONOTONIC_S.to_string(),
    ]);
    let mut holder = harness.start("time", command.args(["sh", "-c", "echo there; exec sleep 1000"]));
    let there = wait_until("the namespace is there, or cannot be made", || {
        let there = holder.log().contains("there");
        (there || !holder.is_running()).then_some(there)
    });
    if !there {
        return Err(Skip(format!("no time namespaces: {}", holder.log().trim())));
    }
    let namespace = PathBuf::from(format!("/proc/{}/ns/time_for_children", holder.pid()));
    let mut option = OsString::from("--time=");
    option.push(namespace);
    Ok((holder, vec!["nsenter".into(), option]))
}

fn scenario(service: Implementation) -> Result<(), Skip> {
    Peer::TraceProcessor.require()?;
    Peer::Producer.require()?;
    let harness = Harness::new();
    let (_holder, wrapper) = time_namespace(&harness)?;
    let address = loopback_address();
    let _service = host(&harness, service, &address);
    let guest = Guest::inside(&harness, "guest1", wrapper);
    let _relay = guest.relay(&address);
    let mut recording = harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
    harness.wait_for_sessions(1);

    // One after the other.
    let run = |mut program: Program| {
        program.wait_ok();
        program.pid()
    };
    let pids = [
        run(harness.application(Implementation::Ours, SHORT)),
        run(guest.application(Implementation::Ours, SHORT)),
        run(guest.application(Implementation::Theirs, SHORT)),
        run(harness.application(Implementation::Theirs, SHORT)),
    ];
    let trace = harness.stop(&mut recording);
    workload::assert_whole(&trace, &pids.map(|pid| Expected { pid, workload: SHORT, details: true }));

    let sql = "select p.pid, min(s.ts) as first, max(s.ts) as last from slice s
        join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid) group by p.pid";
    let rows = tp::rows(&trace, sql);
    let times = pids.map(|pid| {
        let row = rows.iter().find(|row| row.int("pid") == i64::from(pid)).expect("each has slices");
        (row.int("first"), row.int("last"))
    });
    for (before, after) in times.iter().zip(&times[1..]) {
        assert!(before.1 < after.0 + TOLERANCE_NS, "in the order in which they ran: {times:?}");
        assert!(
            after.0 - before.1 < i64::try_from(MONOTONIC_S).expect("small") * TOLERANCE_NS / 2,
            "nearby: {times:?}"
        );
    }
    Ok(())
}
esatto_tests::for_each_service!(scenario);
