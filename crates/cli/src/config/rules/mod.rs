//! Rules for configs: values that a service refuses, fields without effect, and losses to expect.
//!
//! Each rule looks at the config alone. It does not know the machine and the running programs.

mod files;
mod refusals;
mod rings;
mod sources;

use esatto_schema::TraceConfig;

use super::finding::Finding;

/// Returns all findings about a config.
pub(crate) fn findings(config: &TraceConfig, encoded: &[u8]) -> Vec<Finding> {
    let mut findings = refusals::findings(config, encoded);
    findings.extend(files::findings(config));
    findings.extend(rings::findings(config));
    findings.extend(sources::findings(config));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::finding::Severity;
    use crate::trace_config;
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
    fn presets_have_no_findings() {
        for preset in esatto_probes::presets::ALL {
            let found: Vec<String> = told(preset.text);
            assert!(found.is_empty(), "{}: {found:#?}", preset.name);
        }
    }
}
