//! A data source that cannot record says why in the trace, and holds nothing up.

use crate::{Pair, tracefs};
use esatto_tests::{Harness, Implementation, Skip, tp};
use std::time::{Duration, Instant};

/// There is no such instance of tracefs.
const CONFIG: &str = r#"
buffers { size_kb: 1024 }
duration_ms: 300
data_sources { config {
  name: "linux.ftrace"
  ftrace_config { instance_name: "esatto-no-such-instance" ftrace_events: "sched/sched_switch" }
} }
data_sources { config { name: "linux.process_stats" process_stats_config { scan_all_processes_on_start: true } } }
"#;

fn scenario(service: Implementation) -> Result<(), Skip> {
    let pair = Pair { probes: Implementation::Ours, service };
    pair.require()?;
    let _turn = tracefs()?;
    let harness = Harness::new();
    let _service = harness.service(service);
    let _probes = harness.probes(Implementation::Ours);
    let begin = Instant::now();
    let trace = harness.record(service, "trace", CONFIG).finish();
    // The service would wait 10 s for the start and 5 s for the stop.
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    let bytes = std::fs::read(&trace).expect("the trace is there");
    let has = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("esatto-no-such-instance"), "the reason names the value");
    let errors = tp::rows(&trace, "select str_value as text from metadata where name = 'ftrace_setup_errors'");
    assert!(errors.len() == 1 && errors[0].text("text").contains("esatto-no-such-instance"), "{errors:?}");
    let processes = tp::rows(&trace, "select name from process where pid > 0");
    assert!(processes.len() > 2, "the other data source records");
    Ok(())
}
esatto_tests::for_each_service!(scenario);
