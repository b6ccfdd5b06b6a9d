//! All kinds of track events in one trace, recorded by a program at a fixed address.

use std::sync::LazyLock;

use esatto_tests::Peer;
use esatto_tests::{skip, tp};

use crate::run::{Run, Stage};

/// The trace of the program, which checks categories and callbacks itself.
static RUN: LazyLock<Run> =
    LazyLock::new(|| Run::new("track_events.c", Stage::Fixed, |_| ()).expect("no peer is needed"));

fn rows(sql: &str) -> Vec<tp::Row> {
    tp::query(&RUN.file("trace"), sql).remove(0)
}

fn texts(sql: &str) -> Vec<String> {
    rows(sql).iter().map(|row| row.text("x").to_owned()).collect()
}

#[test]
fn slices_and_instants_have_their_names_and_category() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        assert_eq!(texts("SELECT DISTINCT category AS x FROM slice"), ["net"]);
        assert_eq!(
            texts("SELECT name AS x FROM slice ORDER BY ts"),
            [
                "0.6 ms",
                "from an array",
                "FROM an array",
                "slice",
                "slice",
                "slice",
                "args",
                "args inline",
                "on a named track",
                "end of flow",
                "on a registered track",
                "on a nested track",
                "with fields",
                "with fields",
                "correlated",
                "dynamic",
                "by hand"
            ]
        );
        assert_eq!(rows("SELECT count(*) AS n FROM slice WHERE dur < 0")[0].int("n"), 0, "all have ended");
        assert_eq!(rows("SELECT dur FROM slice WHERE name = '0.6 ms'")[0].int("dur"), 600_000);
        Ok(())
    });
}

#[test]
fn annotations_have_their_values() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        for name in ["args", "args inline"] {
            let keys = ["b", "u", "i", "d", "s", "odd", "p"];
            let columns = keys.map(|key| format!("extract_arg(arg_set_id, 'debug.{key}') AS {key}")).join(", ");
            let row = rows(&format!("SELECT {columns} FROM slice WHERE name = '{name}'")).remove(0);
            assert_eq!((row.int("b"), row.int("u"), row.int("i")), (1, 7, -7));
            assert_eq!((row.real("d"), row.text("s"), row.text("odd"), row.int("p")), (1.5, "text", "\u{fffd}!", 16));
        }
        let interned =
            "SELECT extract_arg(arg_set_id, 'debug.interned name') AS n FROM slice WHERE name = 'with fields'";
        assert_eq!(rows(interned).iter().map(|row| row.int("n")).collect::<Vec<_>>(), [5, 5]);
        Ok(())
    });
}

#[test]
fn tracks_counters_and_flows_have_their_events() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let track = |name: &str| {
            let sql =
                format!("SELECT t.name AS x FROM slice s JOIN track t ON t.id = s.track_id WHERE s.name = '{name}'");
            texts(&sql).remove(0)
        };
        assert_eq!(track("on a named track"), "my track");
        assert_eq!(track("on a registered track"), "registered");
        assert_eq!(track("on a nested track"), "inner");
        let parent = "SELECT p.name AS x FROM track t JOIN track p ON p.id = t.parent_id WHERE t.name = 'inner'";
        assert_eq!(texts(parent), ["outer"]);
        let values =
            rows("SELECT c.value FROM counter c JOIN track t ON t.id = c.track_id WHERE t.name = 'my counter'");
        assert_eq!(values.iter().map(|row| row.real("value")).collect::<Vec<_>>(), [79.0, 0.5]);
        let flow = "SELECT i.name || ' -> ' || o.name AS x FROM flow JOIN slice i ON i.id = slice_out JOIN slice o ON o.id = slice_in";
        assert_eq!(texts(flow), ["on a named track -> end of flow"]);
        Ok(())
    });
}

#[test]
fn the_trace_processor_reports_no_error() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let errors = "SELECT name AS x FROM stats WHERE value <> 0 AND (severity IN ('error', 'data_loss') OR name IN \
                      ('track_event_tokenizer_errors', 'track_event_parser_errors', 'interned_data_tokenizer_errors', \
                      'tokenizer_skipped_packets'))";
        assert_eq!(texts(errors), [""; 0]);
        Ok(())
    });
}
