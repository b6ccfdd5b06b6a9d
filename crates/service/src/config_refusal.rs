//! Check of a config without a service.

use esatto_protozero::Owned as _;
use esatto_schema::{TraceConfig, TraceConfigReader};

use crate::name_pattern::Quota;
use crate::priority_boost;
use crate::read::compression::Codec;
use crate::read::trace_filter::TraceFilter;
use crate::session::config_check;
use crate::session::instance_config::raw_source_configs;
use crate::session::triggers;

/// Checks an encoded `TraceConfig` as a service without sessions does before it starts one.
///
/// It makes neither buffers nor files, and does not know the rights of the consumer.
///
/// # Errors
///
/// The text with which the service refuses the config.
pub fn check_config(encoded: &[u8]) -> Result<(), String> {
    let config = TraceConfig::decode(encoded).map_err(|error| format!("it is no encoded TraceConfig: {error}"))?;
    config_check::check(&config)?;
    config_check::check_sizes(&config, &raw_source_configs(TraceConfigReader::new(encoded)), encoded.len())?;
    let quota = Quota::default();
    config_check::compile_patterns(&config, &quota)?;
    triggers::compile_patterns(&config, &quota)?;
    config.trace_filter.as_deref().map(|filter| TraceFilter::load(filter, &quota)).transpose()?;
    Codec::of(&config)?;
    priority_boost::boost_of(&config)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use esatto_schema::trace_config::{BufferConfig, DataSource};

    use super::*;

    fn config(size_kb: u32, pattern: &str) -> Vec<u8> {
        let source = DataSource { producer_name_regex_filter: vec![pattern.into()], ..DataSource::default() };
        TraceConfig {
            buffers: vec![BufferConfig { size_kb: Some(size_kb), ..BufferConfig::default() }],
            data_sources: vec![source],
            ..TraceConfig::default()
        }
        .encode()
    }

    #[test]
    fn a_config_is_refused_with_the_words_of_the_service() {
        let refusal = check_config(&config(0, "")).unwrap_err();
        assert_eq!(refusal, "buffers[0].size_kb is 0, it must be between 1 and 4194300");
        assert!(check_config(b"\xff").unwrap_err().starts_with("it is no encoded TraceConfig"));
    }

    #[cfg(feature = "regex")]
    #[test]
    fn patterns_are_compiled() {
        assert_eq!(check_config(&config(64, "app.*")), Ok(()));
        let refusal = check_config(&config(64, "(")).unwrap_err();
        assert!(refusal.starts_with("producer_name_regex_filter: "), "{refusal}");
    }
}
