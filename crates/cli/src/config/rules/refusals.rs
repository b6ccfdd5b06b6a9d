//! Values that a service or `record` refuses (`docs/spec/service.md` §5).

use std::collections::HashSet;

use esatto_schema::TraceConfig;

use crate::config::finding::Finding;
use crate::trace_config::{Refusal, refusal};

/// Largest buffer (`docs/spec/service.md` §5, 30).
const LARGEST_BUFFER_KB: u32 = 4_194_300;

pub(super) fn findings(config: &TraceConfig, encoded: &[u8]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = refusal(config).map(of_record).into_iter().collect();
    findings.extend(buffers(config));
    findings.extend(targets(config));
    findings.extend(triggers(config));
    // The service has the last word. It tells only its first reason.
    if findings.is_empty() {
        findings.extend(of_service(encoded));
    }
    findings
}

fn of_record(refusal: Refusal) -> Finding {
    Finding::mistake(refusal.field, format!("cannot record: {}", refusal.why)).remedy(refusal.remedy)
}

/// Asks the service, whose words often begin with the field.
pub(super) fn of_service(encoded: &[u8]) -> Option<Finding> {
    let why = esatto_service::check_config(encoded).err()?;
    let first = why.split([' ', ':']).next().unwrap_or_default();
    let is_path =
        first.contains('_') && first.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte));
    let field = if is_path { first.to_owned() } else { String::new() };
    Some(Finding::mistake(field, format!("the service refuses the config: {why}")))
}

fn buffers(config: &TraceConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut names = HashSet::new();
    for (i, buffer) in config.buffers.iter().enumerate() {
        let size_kb = buffer.size_kb.unwrap_or(0);
        let field = format!("buffers[{i}].size_kb");
        if buffer.size_kb.is_none() {
            findings.push(
                Finding::mistake(field, "this buffer has no size_kb").remedy("add for instance `size_kb: 65536`"),
            );
        } else if size_kb == 0 || size_kb > LARGEST_BUFFER_KB {
            let why = format!("size_kb is {size_kb}, it must be between 1 and {LARGEST_BUFFER_KB}");
            findings.push(Finding::mistake(field, why));
        }
        let name = buffer.name.as_deref().unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            let why = format!("an earlier buffer has the name {:?}", String::from_utf8_lossy(name));
            findings.push(Finding::mistake(format!("buffers[{i}].name"), why));
        }
    }
    if config.buffers.is_empty() && !config.data_sources.is_empty() {
        let remedy = "add for instance `buffers { size_kb: 65536 fill_policy: RING_BUFFER }`";
        findings.push(Finding::mistake("", "the config has data sources but no buffers").remedy(remedy));
    }
    findings
}

fn targets(config: &TraceConfig) -> Vec<Finding> {
    let mut findings = Vec::new();
    let count = config.buffers.len();
    // Without buffers, there is another mistake.
    let sources = if count == 0 { &[][..] } else { &config.data_sources[..] };
    for (i, source) in sources.iter().enumerate() {
        let Some(source) = &source.config else { continue };
        let target = source.target_buffer.unwrap_or(0);
        if let Some(name) = source.target_buffer_name.as_deref().filter(|name| !name.is_empty()) {
            let named = config.buffers.iter().position(|buffer| buffer.name.as_deref() == Some(name));
            let name = String::from_utf8_lossy(name);
            let field = format!("data_sources[{i}].config.target_buffer_name");
            match named {
                None => findings.push(Finding::mistake(field, format!("no buffer has the name {name:?}"))),
                Some(index) if target != 0 && target as usize != index => {
                    let why = format!("target_buffer is {target}, but {name:?} is buffer {index}");
                    findings.push(Finding::mistake(field, why).remedy("leave out one of both"));
                }
                Some(_) => {}
            }
        } else if target as usize >= count {
            let buffers = if count == 1 {
                "1 buffer, number 0".to_owned()
            } else {
                format!("{count} buffers, 0 to {}", count - 1)
            };
            let why = format!("target_buffer is {target}, the config has {buffers}");
            findings.push(Finding::mistake(format!("data_sources[{i}].config.target_buffer"), why));
        }
    }
    findings
}

fn triggers(config: &TraceConfig) -> Vec<Finding> {
    use crate::missing_trigger::MissingTrigger;
    use esatto_schema::trace_config::trigger_config::TriggerMode;

    let Some(mode) = MissingTrigger::mode(config) else { return Vec::new() };
    let mut findings = Vec::new();
    let timeout_ms = config.trigger_config.as_ref().and_then(|triggers| triggers.trigger_timeout_ms);
    if timeout_ms.unwrap_or(0) == 0 {
        let remedy = "add for instance `trigger_timeout_ms: 3600000`, an hour, to trigger_config";
        let finding = Finding::mistake("trigger_config.trigger_timeout_ms", "triggers need a trigger_timeout_ms");
        findings.push(finding.remedy(remedy));
    }
    if config.duration_ms.unwrap_or(0) != 0 {
        let finding = Finding::mistake("duration_ms", "duration_ms is not possible with triggers");
        findings.push(finding.remedy("leave it out: trigger_timeout_ms takes its place"));
    }
    let keeps_ring = mode == TriggerMode::STOP_TRACING || mode == TriggerMode::CLONE_SNAPSHOT;
    if keeps_ring && config.write_into_file == Some(true) {
        let why = "write_into_file is not possible with trigger_mode STOP_TRACING or CLONE_SNAPSHOT";
        findings.push(Finding::mistake("write_into_file", why).remedy("leave it out"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::tests::told;

    const SOURCE: &str = "data_sources { config { name: 'track_event' track_event_config { enabled_categories: '*' } } } \
                          incremental_state_config { clear_period_ms: 5000 }";

    #[test]
    fn each_buffer_and_target_is_checked() {
        let text = format!(
            "buffers {{ size_kb: 0 }} buffers {{ name: 'a' size_kb: 4194301 }} buffers {{ name: 'a' }} {SOURCE} \
             data_sources {{ config {{ name: 'linux.system_info' target_buffer: 3 }} }} \
             data_sources {{ config {{ name: 'linux.system_info' target_buffer_name: 'b' }} }} \
             data_sources {{ config {{ name: 'linux.system_info' target_buffer_name: 'a' target_buffer: 2 }} }}"
        );
        let found = told(&text);
        let mistakes: Vec<_> = found.iter().filter(|line| line.starts_with('!')).map(String::as_str).collect();
        assert_eq!(
            mistakes,
            [
                "!buffers[0].size_kb: size_kb is 0, it must be between 1 and 4194300",
                "!buffers[1].size_kb: size_kb is 4194301, it must be between 1 and 4194300",
                "!buffers[2].size_kb: this buffer has no size_kb",
                "!buffers[2].name: an earlier buffer has the name \"a\"",
                "!data_sources[1].config.target_buffer: target_buffer is 3, the config has 3 buffers, 0 to 2",
                "!data_sources[2].config.target_buffer_name: no buffer has the name \"b\"",
                "!data_sources[3].config.target_buffer_name: target_buffer is 2, but \"a\" is buffer 1",
            ]
        );
    }

    #[test]
    fn the_service_has_the_last_word() {
        let found = told(&format!("buffers {{ size_kb: 64 }} {SOURCE} duration_ms: 604800001"));
        assert_eq!(
            found,
            ["!duration_ms: the service refuses the config: duration_ms is 604800001, at most 604800000 is possible"]
        );
    }

    #[test]
    fn triggers_need_a_time_and_no_file() {
        let triggers = "trigger_config { trigger_mode: STOP_TRACING triggers { name: 'x' } }";
        let found =
            told(&format!("buffers {{ size_kb: 64 }} {SOURCE} {triggers} duration_ms: 5 write_into_file: true"));
        let mistakes: Vec<_> = found.iter().filter(|line| line.starts_with('!')).collect();
        assert_eq!(mistakes.len(), 3, "{found:#?}");
    }
}
