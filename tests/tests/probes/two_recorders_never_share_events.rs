//! The kernel gives each event to one reader only. So a second daemon does not read an instance of
//! tracefs that another one records: it says why, and the first one misses nothing.

use crate::tracefs;
use esatto_tests::Instance;
use esatto_tests::{Harness, Implementation, Peer, Signal, skip, tp};
use std::process::Command;

fn config(instance: &Instance) -> String {
    format!(
        "buffers {{ size_kb: 32768 }} data_sources {{ config {{ name: \"linux.ftrace\" ftrace_config {{ instance_name: \
         \"{}\" ftrace_events: \"task/task_newtask\" ftrace_events: \"task/task_rename\" }} }} }}",
        instance.name()
    )
}

#[test]
fn the_second_is_told_and_the_first_has_all() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let _turn = tracefs()?;
        let instance = Instance::new("shared");
        let (first, second) = (Harness::new(), Harness::new());
        let _daemons = [&first, &second]
            .map(|harness| (harness.service(Implementation::Ours), harness.probes(Implementation::Ours)));
        let mut recording = first.record(Implementation::Ours, "trace", &config(&instance));
        instance.wait_until_on("task/task_rename");
        let mut refused = second.record(Implementation::Ours, "trace", &config(&instance));
        second.wait_for_sessions(1);
        for _ in 0..20 {
            Command::new("true").status().expect("it runs");
        }
        refused.program.signal(Signal::INT);
        refused.program.wait();
        let log = refused.program.log();
        assert!(
            log.contains("linux.ftrace did not record everything") && log.contains("is in use by another"),
            "{log}"
        );
        assert!(log.contains("instance_name"), "{log}");
        // The end of the second does not switch off the events of the first.
        instance.wait_until_on("task/task_rename");
        for _ in 0..20 {
            Command::new("true").status().expect("it runs");
        }
        let trace = recording.stop();
        let rows = tp::rows(
            &trace,
            "select count(*) as number from ftrace_event join args using (arg_set_id)
             where name = 'task_rename' and key = 'newcomm' and string_value = 'true'",
        );
        assert_eq!(rows[0].int("number"), 40);
        Ok(())
    });
}
