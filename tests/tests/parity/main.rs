//! The same config and the same deterministic producer with two services, Perfetto's `traced` (v56)
//! and ours. The traces have the same packets in the same order, the statistics have the same
//! counters, and the producer gets the same commands.
//!
//! This table lists the differences that are right. The comparison leaves out nothing else:
//!
//! | field | reason |
//! | --- | --- |
//! | `timestamp` (8) of service packets, `clock_snapshot` (6) values | times. Which clocks there are, and in which order, is compared |
//! | how many clock snapshots follow each other | one is kept if a clock has drifted by 10 ms: a matter of time |
//! | `trace_uuid` (89), `tracing_session_id` | ids drawn by the service; that they are there is compared |
//! | `system_info` (45): `tracing_service_version` (4) | the name of the service |
//! | `trace_provenance` (124) | V1 buffers of v56 list no sequences; a service may list them in every case (`docs/spec/service.md` §16) |
//! | `previous_packet_dropped` (42): which bits | a set of reasons since v57, a bool in v56; with V2 it is compared whether it is there |
//! | the same on the first packet that a trace has of a sequence, if it is not the writer's first | ours marks it, v56 does not (`docs/spec/trace-buffer.md` §19) |
//! | `timestamp_clock_id` (58) of service packets | after v58.2 only |
//!
//! Our buffers have the order of V1 and count like V2, for every mode in the config
//! (`docs/spec/trace-buffer.md` §11, §19). So without V2 the test compares the order of all
//! packets, and the counters that V1 counts in the same way. With V2 it compares the packets of
//! each sequence, and every counter.

mod buffers;
mod clones;
mod consumers;
mod frees;
mod outcome;
mod players;
mod sessions;

use esatto_tests::{Harness, Implementation, Peer, Skip, skip};
use outcome::{Outcome, Rules};
use players::Players;

/// Plays a scenario to both services and compares the outcomes.
fn compare(rules: Rules, scenario: impl Fn(&mut Players<'_>)) {
    skip(|| {
        Peer::Official.require()?;
        let [theirs, ours] =
            [Implementation::Theirs, Implementation::Ours].map(|implementation| play(implementation, &scenario));
        theirs.assert_equal(&ours, rules);
        Ok::<(), Skip>(())
    });
}

fn play(implementation: Implementation, scenario: &impl Fn(&mut Players<'_>)) -> Outcome {
    let harness = Harness::new();
    let mut service = harness.service(implementation);
    let mut players = Players::new(&harness);
    scenario(&mut players);
    let outcome = players.into_outcome();
    assert!(service.is_running(), "the service died of it");
    outcome
}
