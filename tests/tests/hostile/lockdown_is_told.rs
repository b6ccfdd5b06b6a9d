//! A service in lockdown mode says so: to those who list and record, in its log and its metrics,
//! and to the programs that it refuses.

use crate::users::{ALICE, BOB, as_user, open_to_all, require_root};
use esatto_tests::workload::{CONFIG_WITHOUT_DEBUG, Workload};
use esatto_tests::{Harness, Implementation, esatto_bin, skip, wait_until};

const LOCKDOWN: &str = "buffers { size_kb: 64 } data_sources { config { name: \"track_event\" } } lockdown_mode: ";
/// A program that traces until it is killed.
const ENDLESS: Workload = Workload { threads: 1, rounds: 1_000_000, pause_us: 1000 };

/// Runs `esatto` with these arguments, as the service's user, and returns all that it prints.
fn esatto(harness: &Harness, arguments: &[&str]) -> String {
    let output = harness.command(esatto_bin()).args(arguments).output().expect("it runs");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

/// Records a config that sets or lifts the mode.
fn switch(harness: &Harness, operation: &str) -> String {
    harness.write("lockdown.cfg", format!("{LOCKDOWN}{operation}"));
    esatto(harness, &["record", "-t", "100ms", "-c", "lockdown.cfg", "-o", "lockdown.pftrace", "--force"])
}

#[test]
fn by_everything_that_takes_part() {
    skip(|| {
        require_root()?;
        let harness = Harness::new();
        let metrics = harness.path("traced.prom");
        let service = harness.service_with(Implementation::Ours, |command| {
            command.arg("--metrics-file").arg(&metrics);
        });
        open_to_all(&harness, &[&harness.producer_socket(), &harness.consumer_socket()]);
        assert!(!esatto(&harness, &["list"]).contains("ockdown"));
        assert!(esatto(&harness, &["list", "--json"]).contains("\"lockdown\": null"));

        let mut own = harness.application(Implementation::Ours, ENDLESS);
        let connected = |uid| {
            let command = &mut harness.application_command(Implementation::Ours, ENDLESS);
            as_user(uid, || harness.start(&format!("of-{uid}"), command))
        };
        let alice = connected(ALICE);
        harness.wait_for_producers(2);
        let said = switch(&harness, "LOCKDOWN_SET");
        let mode = "Lockdown mode is on, set by uid 0: the service records only programs of uid 0";
        assert!(said.contains(mode), "{said}");
        assert!(service.log().contains("sets lockdown mode: only producers of uid 0 are served"), "{}", service.log());

        let bob = connected(BOB);
        let refused = format!("of uid {BOB} is refused: lockdown mode, set by uid 0, serves only uid 0");
        wait_until("the refusal", || service.log().contains(&refused).then_some(()));
        let listed = wait_until("a second attempt", || {
            let listed = esatto(&harness, &["list"]);
            listed.contains("refused 2 connections").then_some(listed)
        });
        assert!(listed.starts_with(mode) && listed.contains("Left out of those connected: 1."), "{listed}");
        assert!(esatto(&harness, &["list", "--json"]).contains("\"set_by_uid\": 0"));
        assert_eq!(service.log().matches(&refused).count(), 1, "{}", service.log());
        assert_eq!(bob.log().matches("it refused this program; perhaps it is in lockdown mode").count(), 1);

        harness.write("events.cfg", CONFIG_WITHOUT_DEBUG);
        let said = esatto(&harness, &["record", "-t", "300ms", "-c", "events.cfg", "-o", "events.pftrace"]);
        assert!(said.contains(mode) && said.contains("Left out of those connected: 1."), "{said}");
        own.kill();
        harness.wait_for_producers(1);
        let said = esatto(&harness, &["record", "-t", "300ms", "-c", "events.cfg", "-o", "none.pftrace"]);
        assert!(
            said.contains("No event was recorded: lockdown mode leaves out the programs that the config"),
            "{said}"
        );
        wait_until("new numbers", || {
            let numbers = std::fs::read_to_string(&metrics).unwrap_or_default();
            let count = numbers.lines().find_map(|line| line.strip_prefix("esatto_lockdown_refusals_total "));
            let is_refused = count.is_some_and(|count| count.parse::<u64>().is_ok_and(|count| count >= 2));
            (numbers.contains("\nesatto_lockdown 1\n") && is_refused).then_some(())
        });

        let said = switch(&harness, "LOCKDOWN_CLEAR");
        assert!(!said.contains("Lockdown"), "{said}");
        assert!(service.log().contains("lifts lockdown mode: "), "{}", service.log());
        harness.wait_for_producers(2);
        assert!(!esatto(&harness, &["list"]).contains("ockdown"));
        drop((own, alice, bob));
        Ok(())
    });
}
