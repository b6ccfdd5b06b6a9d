//! A recording of a server and a client, each a process of its own.

use std::path::PathBuf;

use esatto_tests::tp::{self, Row};
use esatto_tests::{Harness, Implementation, Peer, Skip};

const CONFIG: &str = r#"
    buffers { size_kb: 16384 }
    data_sources {
      config {
        name: "track_event"
        track_event_config { disabled_categories: "*" enabled_categories: "rpc" enabled_categories: "app" enabled_categories: "rpc_calls" }
      }
    }"#;

/// Events of both processes: slices and instants, each with the process and its side.
const EVENTS: &str = "
    create table events as
    select slice.id as id, slice.name as name, slice.ts as ts, dur, depth, slice.parent_id as parent_id, slice.track_id as track_id, slice.category as category,
        upid as process, track.name as track, slice.arg_set_id as args,
        extract_arg(slice.arg_set_id, 'debug.role') as role, extract_arg(slice.arg_set_id, 'debug.status') as status
    from slice join track on slice.track_id = track.id left join process_track on track.id = process_track.id;
    create table calls as select * from events where role is not null;
    create table arrows as
    select one.id as from_id, one.name as from_name, one.role as from_role, one.process as from_process,
        other.id as to_id, other.name as to_name, other.role as to_role, other.process as to_process
    from flow join events as one on slice_out = one.id join events as other on slice_in = other.id;";

/// The trace of both processes.
#[derive(Debug)]
pub struct Trace {
    path: PathBuf,
    /// Keeps the folder.
    _harness: Harness,
}

/// Records the server and a client that plays `scenario`.
///
/// # Errors
///
/// A program is missing that this needs.
pub fn record(app: &str, scenario: &str, service: Implementation) -> Result<Trace, Skip> {
    Peer::TraceProcessor.require()?;
    if service == Implementation::Theirs {
        Peer::Official.require()?;
    }
    let harness = Harness::new();
    let _service = harness.service(service);
    let mut recording = harness.record(Implementation::Ours, "trace", CONFIG);
    let mut server = harness.start("server", harness.command(app).arg("server"));
    server.wait_for_log("ready");
    let mut client = harness.start("client", harness.command(app).args(["client", scenario]));
    client.wait_ok();
    harness.write("end", "");
    server.wait_ok();
    let path = harness.stop(&mut recording);
    Ok(Trace { path, _harness: harness })
}

impl Trace {
    /// The rows of a query on the tables `events`, `calls` and `arrows`.
    #[must_use]
    pub fn rows(&self, sql: &str) -> Vec<Row> {
        let rows = tp::rows(&self.path, &[EVENTS, sql].concat());
        println!("{sql}\n{rows:#?}");
        rows
    }

    /// The rows of a query as texts, columns in the order of their names' appearance in `columns`.
    #[must_use]
    pub fn texts<const N: usize>(&self, columns: [&str; N], rest: &str) -> Vec<[String; N]> {
        let list: Vec<String> = columns.iter().map(|column| format!("cast(({column}) as text)")).collect();
        let named: Vec<String> =
            list.iter().enumerate().map(|(place, column)| format!("{column} as c{place}")).collect();
        let rows = self.rows(&format!("select {} {rest}", named.join(", ")));
        rows.iter().map(|row| core::array::from_fn(|place| row.text(&format!("c{place}")).to_owned())).collect()
    }

    /// Checks what holds for each recording: the trace processor reports no error, every slice
    /// ends, none is in another of the same side, and all instants lie within the slice of their
    /// call.
    ///
    /// # Panics
    ///
    /// It does not hold.
    pub fn assert_lanes_read_right(&self) {
        let wrong = "select name, role, dur, depth from calls where track like 'rpc %' and (dur < 0 or depth != 0);";
        let outside = "select name, track from events where parent_id is null and role is null and track like 'rpc %'";
        let all = tp::query(&self.path, &[tp::COMPLAINTS, ";", EVENTS, wrong, outside].concat());
        assert!(all.len() == 3 && all.iter().all(Vec::is_empty), "{all:#?}");
    }
}
