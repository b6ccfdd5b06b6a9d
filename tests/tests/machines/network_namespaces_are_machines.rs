//! Two guests and a host that share only a network: three network namespaces.

use crate::guest::{Found, Guest, host_inside};
use crate::network::{Namespace, connect};
use esatto_tests::workload::{self, CONFIG, Expected, Workload};
use esatto_tests::{Harness, Implementation, Peer, skip};

const WORKLOAD: Workload = Workload { threads: 2, rounds: 100, pause_us: 200 };

#[test]
fn and_a_config_chooses_among_them() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        Peer::Producer.require()?;
        let harness = Harness::new();
        let [here, there1, there2] = [Namespace::new("h")?, Namespace::new("g1")?, Namespace::new("g2")?];
        let addresses = [connect(&here, &there1, 1)?, connect(&here, &there2, 2)?].map(|host| format!("{host}:20001"));
        let _service = host_inside(&harness, Implementation::Ours, "0.0.0.0:20001", &here.wrapper());
        let guests = [("guest1", there1.wrapper()), ("guest2", there2.wrapper())];
        let guests = guests.map(|(name, wrapper)| Guest::inside(&harness, name, wrapper));
        let _relays = [guests[0].relay(&addresses[0]), guests[1].relay(&addresses[1])];

        // The first config wants all machines, the second one of them.
        let all = format!("{CONFIG}trace_all_machines: true\n");
        let one = CONFIG.replace("data_sources {", "data_sources { machine_name_filter: \"guest2\"");
        let mut all = harness.record(Implementation::Ours, "all", &all);
        let mut one = harness.record(Implementation::Ours, "one", &one);
        harness.wait_for_sessions(2);
        let mut programs = [
            harness.application(Implementation::Ours, WORKLOAD),
            guests[0].application(Implementation::Ours, WORKLOAD),
            guests[0].application(Implementation::Theirs, WORKLOAD),
            guests[1].application(Implementation::Theirs, WORKLOAD),
        ];
        for program in &mut programs {
            program.wait_ok();
        }
        let (all, one) = (harness.stop(&mut all), harness.stop(&mut one));

        let expected =
            [0, 1, 2, 3].map(|n: usize| Expected { pid: programs[n].pid(), workload: WORKLOAD, details: true });
        let ids = [0, guests[0].id(), guests[0].id(), guests[1].id()];
        workload::assert_whole(&all, &expected);
        let found = Found::in_trace(&all);
        for (program, id) in programs.iter().zip(ids) {
            assert_eq!(found.machine_of(program), id);
        }
        let mut known = [0, guests[0].id(), guests[1].id()];
        known.sort_unstable();
        assert_eq!(found.machines, known);
        workload::assert_whole(&one, &expected[3..]);
        assert_eq!(Found::in_trace(&one).processes(), 1, "of one machine alone");
        Ok(())
    });
}

#[test]
fn and_programs_come_back_when_the_host_does() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let [here, there] = [Namespace::new("ch")?, Namespace::new("cg")?];
        let address = format!("{}:20001", connect(&here, &there, 1)?);
        let guest = Guest::inside(&harness, "guest1", there.wrapper());
        let mut relay = harness.start("relay", &mut guest.relay_command(&address));
        relay.wait_for_log("No control connection");
        let mut program = guest.application(Implementation::Ours, WORKLOAD);
        relay.wait_for_log("closing connections of producers");

        let _service = host_inside(&harness, Implementation::Ours, "0.0.0.0:20001", &here.wrapper());
        relay.wait_for_log("The service knows this machine and its clocks");
        let mut recording =
            harness.record(Implementation::Ours, "trace", &format!("{CONFIG}trace_all_machines: true\n"));
        program.wait_ok();
        let trace = harness.stop(&mut recording);
        workload::assert_whole(&trace, &[Expected { pid: program.pid(), workload: WORKLOAD, details: true }]);
        Ok(())
    });
}
