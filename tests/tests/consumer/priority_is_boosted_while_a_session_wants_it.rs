//! `priority_boost`: the kernel schedules the service sooner while the session exists. Where that
//! is not allowed, the config is refused with the reason.

use crate::{config, path, recording, require};
use esatto_tests::{Harness, Implementation, Program, Signal, Skip, wait_until};

/// Nice value, real-time priority and policy of a process (1: SCHED_FIFO).
fn scheduling(program: &Program) -> (i64, i64, i64) {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.pid())).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("the name is in parentheses");
    let field =
        |number: usize| fields.split_whitespace().nth(number - 3).and_then(|text| text.parse().ok()).expect("a number");
    (field(19), field(40), field(41))
}

/// CAP_SYS_NICE.
fn may_boost(program: &Program) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).expect("it runs");
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("its capabilities");
    u64::from_str_radix(effective.trim(), 16).expect("in hex") & 1 << 23 != 0
}

fn scenario(service: Implementation, client: Implementation) -> Result<(), Skip> {
    require()?;
    let harness = Harness::with_perfetto(client);
    let service = harness.service(service);
    let before = scheduling(&service);
    let boost = "priority_boost { policy: POLICY_SCHED_FIFO priority: 3 }";
    if !may_boost(&service) {
        let config = config(&harness, "cfg", boost);
        let (_, log) = harness.run_perfetto(&["--txt", "-c", &config, "-o", &path(&harness, "trace")]);
        assert!(log.contains("priority"), "{log}");
        assert_eq!(scheduling(&service), before);
        return Ok(());
    }
    let mut strong = recording(&harness, "strong", boost);
    assert_eq!(scheduling(&service).1, 3);
    assert_eq!(scheduling(&service).2, 1);
    let mut weak = recording(&harness, "weak", "priority_boost { policy: POLICY_SCHED_OTHER priority: 4 }");
    assert_eq!(scheduling(&service).2, 1, "the strongest counts");
    let ended = |program: &mut Program, expected: (i64, i64, i64)| {
        program.signal(Signal::INT);
        program.wait_ok();
        wait_until(&format!("the scheduling is {expected:?}"), || (scheduling(&service) == expected).then_some(()));
    };
    ended(&mut strong, (-4, 0, 0));
    ended(&mut weak, before);
    Ok(())
}
esatto_tests::for_each_client!(scenario);
