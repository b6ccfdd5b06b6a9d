//! Recordings into a file: fields without effect, and how much the buffers must hold.

use esatto_schema::TraceConfig;

use crate::config::finding::Finding;
use crate::trace_config::{discarding_buffers_of_file, lone_fields, period_warning};

pub(super) fn findings(config: &TraceConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    for field in lone_fields(config) {
        let finding = Finding::warning(field, format!("{field} has no effect without write_into_file"));
        findings.push(finding.remedy("add `write_into_file: true`"));
    }
    if let Some(warning) = period_warning(config) {
        findings.push(Finding::warning("flush_period_ms", warning.trim_end_matches('.')));
    }
    if config.write_into_file != Some(true) {
        return findings;
    }
    for i in discarding_buffers_of_file(config) {
        let why = "with DISCARD, nothing more gets into the file after the size of the buffer was written once, and the \
                   trace processor reports config_write_into_file_discard";
        let finding = Finding::warning(format!("buffers[{i}].fill_policy"), why);
        findings.push(finding.remedy("use `fill_policy: RING_BUFFER`"));
    }
    match config.file_write_period_ms {
        None | Some(0) => {
            let why = "write_into_file without file_write_period_ms: the buffers must hold the data of 5 s";
            let remedy = "add for instance `file_write_period_ms: 1000`, or make the buffers large enough";
            findings.push(Finding::warning("write_into_file", why).remedy(remedy));
        }
        Some(1..100) => {
            let why = "the service writes the file at most every 100 ms";
            findings.push(Finding::warning("file_write_period_ms", why));
        }
        Some(_) => {}
    }
    if config.flush_period_ms.unwrap_or(0) == 0 {
        let why = "write_into_file without flush_period_ms: older services do not collect the events of programs that \
                   write little, and the trace processor reports config_write_into_file_no_flush";
        findings.push(Finding::warning("write_into_file", why).remedy("add `flush_period_ms: 5000`"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;

    const REST: &str = "buffers { size_kb: 64 } incremental_state_config { clear_period_ms: 5000 } data_sources { config \
                        { name: 'track_event' track_event_config { enabled_categories: '*' } } }";

    #[test]
    fn a_file_needs_its_periods() {
        let found = told(&format!("{REST} write_into_file: true"));
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].contains("file_write_period_ms") && found[1].contains("flush_period_ms"), "{found:#?}");
        let periods = "write_into_file: true file_write_period_ms: 2500 flush_period_ms: 5000";
        assert_eq!(told(&format!("{REST} {periods}")), [""; 0]);
        let found = told(&format!("{REST} {}", periods.replace("2500", "50")));
        assert!(found.len() == 1 && found[0].contains("every 100 ms"), "{found:#?}");
    }

    #[test]
    fn a_file_needs_buffers_that_go_on() {
        let rest = REST.replace("size_kb: 64", "size_kb: 64 fill_policy: DISCARD");
        assert_eq!(told(&rest), [""; 0]);
        let periods = "write_into_file: true file_write_period_ms: 2500 flush_period_ms: 5000";
        let found = told(&format!("{rest} {periods}"));
        assert!(found.len() == 1 && found[0].starts_with("buffers[0].fill_policy: with DISCARD"), "{found:#?}");
    }

    #[test]
    fn fields_of_a_file_have_no_effect_without_one() {
        let found = told(&format!("{REST} output_path: '/tmp/x' max_file_size_bytes: 7"));
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].starts_with("output_path: output_path has no effect"), "{found:#?}");
    }
}
