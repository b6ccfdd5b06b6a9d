//! A recording that has no event because the programs are on other machines is no success. It names
//! the machines, and a name of a machine that is mistyped in the config.

use crate::guest::{Guest, host, loopback_address};
use esatto_tests::workload::{CONFIG, Workload};
use esatto_tests::{Harness, Implementation, Skip, esatto_bin};

const EMPTY: i32 = 3;

fn scenario(service: Implementation) -> Result<(), Skip> {
    let harness = Harness::new();
    let address = loopback_address();
    let _service = host(&harness, service, &address);
    let guest = Guest::new(&harness, "guest1");
    let _relay = guest.relay(&address);
    // Its events are never recorded, so it waits.
    let _application = guest.application(Implementation::Ours, Workload { threads: 1, rounds: 10, pause_us: 100 });
    harness.wait_for_data_source("track_event");
    let record = |name: &str, args: &[&str]| {
        let mut command = harness.command(esatto_bin());
        command.args(["record", "-t", "1500ms", "-o", name]).args(args);
        let mut record = harness.start(name, &mut command);
        (record.wait().code(), record.log())
    };
    let assert_says = |(status, log): (Option<i32>, String), reason: &str| {
        for line in [format!("So far, {reason}"), format!("No event was recorded: {reason}")] {
            assert!(log.contains(&line), "{line:?} is not in\n{log}");
        }
        assert!(status == Some(EMPTY) && !log.contains("Open it in"), "{status:?}\n{log}");
    };
    assert_says(
        record("default", &[]),
        "the connected programs are on other machines (guest1); set `trace_all_machines: true` or \
         `machine_name_filter: \"guest1\"` in a config.",
    );
    let typo = CONFIG.replace("data_sources {", "data_sources { machine_name_filter: \"gest1\"");
    harness.write("typo.cfg", typo);
    assert_says(
        record("typo", &["-c", "typo.cfg"]),
        "machine_name_filter names no connected machine: \"gest1\" (did you mean \"guest1\"?). \
         Known are: host, guest1.",
    );
    let host_only = CONFIG.replace("data_sources {", "data_sources { machine_name_filter: \"host\"");
    harness.write("host.cfg", host_only);
    assert_says(
        record("host", &["-c", "host.cfg"]),
        "machine_name_filter wants the data source \"track_event\" of host, but only programs of other machines offer \
         it: guest1.",
    );
    let typo = CONFIG.replace("track_event_config {", "track_event_config { disabled_categories: \"*\"");
    let typo =
        typo.replace("enabled_categories: \"rend", "enabled_categories: \"xrend").replace("\"debug\"", "\"xdebug\"");
    harness.write("category.cfg", format!("{typo}trace_all_machines: true\n"));
    assert_says(record("category", &["-c", "category.cfg"]), "no category matches \"xrendering\"");
    Ok(())
}
esatto_tests::for_each_service!(scenario);
