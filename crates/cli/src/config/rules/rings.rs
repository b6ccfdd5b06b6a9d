//! Buffers: rings that lose names, and buffers that miss what they are for.

use esatto_schema::trace_config::BufferConfig;
use esatto_schema::trace_config::trigger_config::TriggerMode;
use esatto_schema::{DataSourceConfig, TraceConfig};

use crate::config::finding::Finding;
use crate::missing_trigger::MissingTrigger;
use crate::trace_config::discards;

pub(super) fn findings(config: &TraceConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(lost_names(config));
    let keeps_last =
        matches!(MissingTrigger::mode(config), Some(TriggerMode::STOP_TRACING | TriggerMode::CLONE_SNAPSHOT));
    for (i, buffer) in config.buffers.iter().enumerate() {
        if keeps_last && !is_ring(buffer) {
            let why = "a full buffer with DISCARD drops what comes before the trigger";
            let finding = Finding::warning(format!("buffers[{i}].fill_policy"), why);
            findings.push(finding.remedy("use `fill_policy: RING_BUFFER`"));
        }
        let is_used = sources(config).any(|source| targets(config, source) == Some(i));
        if !is_used && !config.data_sources.is_empty() {
            let why = format!("no data source writes into buffer {i}");
            findings.push(Finding::warning(format!("buffers[{i}]"), why).remedy("leave it out, or set target_buffer"));
        }
    }
    findings
}

/// Tells of a ring that overwrites names which later events refer to.
fn lost_names(config: &TraceConfig) -> Option<Finding> {
    let has_names = |source: &&DataSourceConfig| {
        let name = source.name.as_ref().map_or(&[][..], |name| name.as_bytes());
        name == b"track_event" || name.starts_with(b"org.chromium.") || name == b"linux.perf"
    };
    let into_ring = |source: &&DataSourceConfig| {
        targets(config, source).and_then(|index| config.buffers.get(index)).is_some_and(is_ring)
    };
    if !sources(config).filter(has_names).any(|source| into_ring(&source)) {
        return None;
    }
    let period = config.incremental_state_config.as_ref().map(|config| config.clear_period_ms.unwrap_or(0));
    match period {
        Some(0) => {
            let why = "with a clear_period_ms of 0, names that the ring has overwritten are lost, and later events cannot \
                       be read";
            let finding = Finding::warning("incremental_state_config.clear_period_ms", why);
            Some(finding.remedy("set `clear_period_ms: 5000`"))
        }
        Some(_) => None,
        None => {
            let why = if config.write_into_file == Some(true) {
                "a ring without incremental_state_config: if programs fill it faster than it is written into the file, \
                 names are lost, and no later event can be read"
            } else {
                "a ring without incremental_state_config: on Perfetto's service, names that the ring has overwritten are \
                 lost, and later events cannot be read"
            };
            Some(Finding::warning("", why).remedy("add `incremental_state_config { clear_period_ms: 5000 }`"))
        }
    }
}

fn is_ring(buffer: &BufferConfig) -> bool {
    !discards(buffer)
}

fn sources(config: &TraceConfig) -> impl Iterator<Item = &DataSourceConfig> {
    config.data_sources.iter().filter_map(|source| source.config.as_deref())
}

/// Returns the index of the buffer of a data source.
fn targets(config: &TraceConfig, source: &DataSourceConfig) -> Option<usize> {
    match source.target_buffer_name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => config.buffers.iter().position(|buffer| buffer.name.as_deref() == Some(name)),
        None => Some(source.target_buffer.unwrap_or(0) as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;

    const EVENTS: &str =
        "data_sources { config { name: 'track_event' track_event_config { enabled_categories: '*' } } }";

    #[test]
    fn a_ring_needs_its_names_again() {
        let ring = format!("buffers {{ size_kb: 64 }} {EVENTS}");
        let found = told(&ring);
        assert!(found.len() == 1 && found[0].contains("a ring without incremental_state_config"), "{found:#?}");
        let found = told(&format!("{ring} incremental_state_config {{ clear_period_ms: 0 }}"));
        assert!(found.len() == 1 && found[0].starts_with("incremental_state_config.clear_period_ms"), "{found:#?}");
        assert_eq!(told(&format!("{ring} incremental_state_config {{ clear_period_ms: 5000 }}")), [""; 0]);
        assert_eq!(told(&format!("buffers {{ size_kb: 64 fill_policy: DISCARD }} {EVENTS}")), [""; 0]);
        let file = "write_into_file: true file_write_period_ms: 1000 flush_period_ms: 5000";
        let found = told(&format!("{ring} {file}"));
        assert!(found.len() == 1 && found[0].contains("faster than it is written into the file"), "{found:#?}");
    }

    #[test]
    fn a_buffer_without_a_data_source_is_told() {
        let rest = "incremental_state_config { clear_period_ms: 5000 }";
        let found = told(&format!("buffers {{ size_kb: 64 }} buffers {{ size_kb: 64 name: 'b' }} {EVENTS} {rest}"));
        assert_eq!(found, ["buffers[1]: no data source writes into buffer 1"]);
        let named = EVENTS.replace("name: 'track_event'", "name: 'track_event' target_buffer_name: 'b'");
        let found = told(&format!("buffers {{ size_kb: 64 }} buffers {{ size_kb: 64 name: 'b' }} {named} {rest}"));
        assert_eq!(found, ["buffers[0]: no data source writes into buffer 0"]);
    }

    #[test]
    fn a_flight_recorder_needs_a_ring() {
        let triggers = "trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 9 triggers { name: 'x' } }";
        let found = told(&format!("buffers {{ size_kb: 64 fill_policy: DISCARD }} {EVENTS} {triggers}"));
        assert!(found.len() == 1 && found[0].starts_with("buffers[0].fill_policy"), "{found:#?}");
    }
}
