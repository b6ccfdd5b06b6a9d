//! The example's trace, as Perfetto's trace processor reads it: arrows between the processes, and
//! the ids of RFC-0035.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use esatto_tests::{Harness, Implementation, Peer, skip, tp};

const CONFIG: &str = "
    buffers { size_kb: 4096 }
    data_sources { config {
        name: \"track_event\"
        track_event_config { disabled_categories: \"*\" enabled_categories: \"app\" enabled_categories: \"echo\" }
    } }";

/// Slices and instants, each with its process and its side of the connection.
const SEEN: &str = "
    create table seen as
    select slice.id as id, slice.name as name, dur, slice.category as category,
        extract_arg(slice.arg_set_id, 'debug.role') as role, process.name as process
    from slice join thread_track on slice.track_id = thread_track.id
        join thread using (utid) join process using (upid);
    create table arrows as
    select one.process || ' ' || one.name || ' → ' || other.process || ' ' || other.name as arrow,
        one.role || ' → ' || other.role as roles, flow.trace_id as id
    from flow join seen as one on slice_out = one.id join seen as other on slice_in = other.id;";

fn judge(trace: &Path) {
    tp::assert_clean(trace);
    let rows = |sql: &str| tp::rows(trace, &[SEEN, sql].concat());
    assert!(rows("select * from seen where dur < 0").is_empty(), "all slices end");
    let arrows = rows("select arrow, roles, count(*) as count from arrows group by 1, 2 order by 1");
    let arrows: Vec<_> = arrows.iter().map(|row| (row.text("arrow"), row.text("roles"), row.int("count"))).collect();
    let expected = [
        ("client Echo.EchoString → server Echo.EchoString", "client → server", 3),
        ("client Echo.SendString → server Echo.SendString", "client → server", 3),
        ("server Echo.EchoString → client Echo.EchoString reply", "server → client", 3),
        ("server Echo.OnString → client Echo.OnString", "server → client", 3),
    ];
    assert_eq!(arrows, expected);
    assert!(rows("select * from seen where name like 'Echo.%' and category != 'echo'").is_empty());

    // (connection & 0xffff) << 48 | (ordinal & 0xffffffff) << 16 | kind << 8 | number & 0xff
    let ids = rows("select distinct cast(id as text) as id from arrows");
    let ids: BTreeSet<u64> = ids.iter().map(|row| row.text("id").parse::<i64>().unwrap() as u64).collect();
    assert_eq!(ids.len(), 9, "one id per message and its response");
    assert_eq!(ids.iter().map(|id| id >> 48).collect::<BTreeSet<_>>().len(), 1, "one connection");
    let ordinals: BTreeSet<u64> = ids.iter().map(|id| id >> 16 & 0xffff_ffff).collect();
    assert_eq!(ordinals.len(), 3, "three ordinals");
    for kind in 0..3 {
        let numbers: Vec<u64> = ids.iter().filter(|id| (**id >> 8) & 0xff == kind).map(|id| id & 0xff).collect();
        assert_eq!(numbers, [1, 2, 3], "kind {kind}");
    }
}

#[test]
fn the_command_records_itself() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let trace = harness.path("trace");
        let mut example = Command::new(env!("CARGO_BIN_EXE_fidl-echo"));
        harness.start("example", example.arg("-o").arg(&trace)).wait_ok();
        judge(&trace);
        Ok(())
    });
}

#[test]
fn perfettos_service_records_both_processes() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        Peer::Official.require()?;
        let harness = Harness::new();
        let _service = harness.service(Implementation::Theirs);
        let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
        let start = |role: &str| {
            let mut command = harness.command(env!("CARGO_BIN_EXE_fidl-echo"));
            harness.start(role, command.arg0(role).arg(role).arg(harness.path("echo")))
        };
        let mut server = start("server");
        server.wait_for_log("ready");
        start("client").wait_ok();
        server.wait_ok();
        judge(&harness.stop(&mut recording));
        Ok(())
    });
}
