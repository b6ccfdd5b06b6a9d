use esatto_tests::{Harness, Implementation, Peer, Skip, for_each_service, tp, wait_until};

use crate::abi_version::AbiVersion;
use crate::build::program;

for_each_service!(what_it_recorded_is_there);

const CONFIG: &str = r#"
    buffers { size_kb: 32768 }
    data_sources { config { name: "track_event" track_event_config { enabled_categories: "*" } } }
    data_sources { config { name: "c.exits" } }
"#;

/// The command of the same implementation records the program.
fn what_it_recorded_is_there(service: Implementation) -> Result<(), Skip> {
    Peer::Official.require()?;
    let harness = Harness::new();
    let trace = recorded(&harness, service, "exits.c");
    Peer::TraceProcessor.require()?;
    // The last slices are open. The packet that was being written at the end is lost.
    let sql = "SELECT name, count() AS n FROM slice GROUP BY name ORDER BY name; \
               SELECT DISTINCT extract_arg(arg_set_id, 'debug.thread') AS name FROM slice WHERE name = 'round' ORDER BY name; \
               SELECT name FROM stats WHERE value <> 0 AND severity = 'error'";
    let answers = tp::query(&trace, sql);
    let [slices, threads, errors] = &answers[..] else { panic!("{} answers", answers.len()) };
    assert_eq!((slices[0].text("name"), slices[0].int("n")), ("first", 1));
    assert!(slices[1].text("name") == "round" && slices[1].int("n") > 1000, "{slices:?}");
    assert_eq!(threads.iter().map(|row| row.text("name")).collect::<Vec<_>>(), ["one", "two"]);
    assert!(errors.is_empty(), "{errors:?}");
    Ok(())
}

/// The functions that the program has registered for its end, before and after ours, and its
/// destructors.
fn what_it_does_at_its_end_is_there(service: Implementation) -> Result<(), Skip> {
    Peer::Official.require()?;
    let harness = Harness::new();
    let trace = recorded(&harness, service, "at_exit.c");
    let bytes = std::fs::read(&trace).expect("it is there");
    for text in ["packet of main", "totals at the end"] {
        assert!(bytes.windows(text.len()).any(|window| window == text.as_bytes()), "{text}");
    }
    Peer::TraceProcessor.require()?;
    let sql = "SELECT name, count() AS n, max(depth) AS depth FROM slice GROUP BY name ORDER BY name";
    let rows = tp::query(&trace, sql).remove(0);
    let found: Vec<_> = rows.iter().map(|row| (row.text("name"), row.int("n"), row.int("depth"))).collect();
    let expected =
        [("closing", 100, 1), ("destructor", 1, 0), ("early handler", 1, 0), ("handler", 1, 0), ("main", 1, 0)];
    assert_eq!(found, expected);
    Ok(())
}

mod at_its_end {
    esatto_tests::for_each_service!(super::what_it_does_at_its_end_is_there);
}

fn recorded(harness: &Harness, service: Implementation, source: &str) -> std::path::PathBuf {
    let program = program(AbiVersion::V58, source, &[]);
    let _service = harness.service(service);
    let consumer = if service == Implementation::Ours { Implementation::Theirs } else { Implementation::Ours };
    let mut recording = harness.record(consumer, "trace", CONFIG);
    wait_until("it records", || (harness.state().sessions_started == 1).then_some(()));
    let mut command = harness.command(program);
    harness.start("exits", command.env("BACKEND", "system").arg(harness.folder())).wait_ok();
    harness.stop(&mut recording)
}
