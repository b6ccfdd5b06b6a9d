//! Rules for configs: values that a service refuses, fields without effect, and losses to expect.
//!
//! Each rule looks at the config alone. It does not know the machine and the running programs.

mod files;
mod refusals;
mod rings;
mod sources;

use esatto_schema::TraceConfig;

use super::finding::Finding;
use crate::trace_config;

/// Parts of the largest config that a service takes.
const BUFFERS: usize = 128;
const DATA_SOURCES: usize = 1024;

/// Returns all findings about a config.
pub(crate) fn findings(config: &TraceConfig, encoded: &[u8]) -> Vec<Finding> {
    // The rules compare parts with each other. Services take no config with more parts.
    if config.buffers.len() > BUFFERS || config.data_sources.len() > DATA_SOURCES {
        return refusals::of_service(encoded).into_iter().collect();
    }
    let mut findings = refusals::findings(config, encoded);
    findings.extend(files::findings(config));
    findings.extend(rings::findings(config));
    findings.extend(sources::findings(config));
    if trace_config::waits_for_its_program(config) {
        let why = "the recording waits until the program that asked for it starts it";
        findings.push(Finding::warning("deferred_start", why).remedy("`record` refuses it: leave it out"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::finding::Severity;
    use esatto_protozero::Owned as _;

    /// Returns the fields and messages of the findings about a text.
    pub(super) fn told(text: &str) -> Vec<String> {
        let parser = esatto_text_format::Parser::new(trace_config::message().unwrap());
        let encoded = parser.parse(text).unwrap_or_else(|errors| panic!("{errors}"));
        let findings = findings(&TraceConfig::decode(&encoded).unwrap(), &encoded);
        findings
            .iter()
            .map(|finding| {
                let mark = if finding.severity == Severity::Mistake { "!" } else { "" };
                format!("{mark}{}: {}", finding.field, finding.message)
            })
            .collect()
    }

    #[test]
    fn a_deferred_start_is_told() {
        let base = "buffers { size_kb: 64 fill_policy: DISCARD } data_sources { config { name: 'linux.system_info' } }";
        assert_eq!(told(base), [""; 0]);
        let found = told(&format!("{base} deferred_start: true"));
        assert!(found.len() == 1 && found[0].starts_with("deferred_start: the recording waits"), "{found:#?}");
        let trigger = "trigger_config { trigger_mode: START_TRACING trigger_timeout_ms: 1000 \
                       triggers { name: 'x' stop_delay_ms: 1 } }";
        assert_eq!(told(&format!("{base} {trigger} deferred_start: true")), [""; 0]);
    }

    #[test]
    fn a_config_with_too_many_parts_is_refused_at_once() {
        for (text, noun) in
            [("buffers { size_kb: 64 }", "buffers"), ("data_sources { config { name: 'x' } }", "sources")]
        {
            let found = told(&text.repeat(100_000));
            assert!(found.len() == 1 && found[0].contains("100000") && found[0].contains(noun), "{found:#?}");
        }
    }

    #[test]
    fn presets_have_no_findings() {
        for preset in esatto_probes::presets::ALL {
            let found: Vec<String> = told(preset.text);
            assert!(found.is_empty(), "{}: {found:#?}", preset.name);
        }
    }
}
