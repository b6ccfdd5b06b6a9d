//! Pages that a kernel wrote.

use super::Session;
use super::session::recorded;
use crate::ftrace::parse_status::ParseStatuses;

const EVENTS: [(&str, &str); 8] = [
    ("sched", "sched_switch"),
    ("sched", "sched_waking"),
    ("sched", "sched_wakeup"),
    ("sched", "sched_process_exit"),
    ("sched", "sched_process_exec"),
    ("task", "task_rename"),
    ("task", "task_newtask"),
    ("ftrace", "print"),
];

fn session() -> Session {
    EVENTS.iter().fold(Session::new(), |session, (group, name)| session.with(group, name))
}

#[test]
fn compact_and_full_encoding_have_the_same_switches() {
    let pages = recorded("sched.bin");
    let full = session().encode(&pages);
    let compact = session().compact().encode(&pages);

    let full_switches: Vec<_> = full
        .bundles()
        .flat_map(|bundle| bundle.event())
        .filter_map(|event| {
            let switch = event.sched_switch()?;
            let comm = switch.next_comm()?.to_vec();
            Some((event.timestamp()?, switch.prev_state()?, switch.next_pid()?, switch.next_prio()?, comm))
        })
        .collect();
    let mut compact_switches = Vec::new();
    for bundle in compact.bundles() {
        let Some(sched) = bundle.compact_sched() else { continue };
        let comms: Vec<_> = sched.intern_table().collect();
        let mut time = 0;
        let mut states = sched.switch_prev_state();
        let mut pids = sched.switch_next_pid();
        let mut prios = sched.switch_next_prio();
        let mut indexes = sched.switch_next_comm_index();
        for delta in sched.switch_timestamp() {
            time += delta;
            let comm = comms[indexes.next().unwrap() as usize].to_vec();
            compact_switches.push((time, states.next().unwrap(), pids.next().unwrap(), prios.next().unwrap(), comm));
        }
    }
    assert!(full_switches.len() > 10, "{}", full_switches.len());
    assert_eq!(full_switches, compact_switches);
    assert_eq!(full.encoder.errors(), ParseStatuses::default());
    assert_eq!(compact.encoder.errors(), ParseStatuses::default());
    assert_eq!(full.observed.renamed, compact.observed.renamed);
}
