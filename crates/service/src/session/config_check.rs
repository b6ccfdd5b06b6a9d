//! Checks of a TraceConfig on its own (`docs/spec/service.md §5`).
//!
//! `admission.rs` checks it against other sessions.

use esatto_map::Set;

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::buffer_config::ExperimentalMode;

use crate::buffer::MAX_SIZE_KB;
use crate::client_text::MAX_NAME_BYTES;
use crate::frame_limits::{MAX_CONFIG_BYTES, MAX_SOURCE_CONFIG_BYTES};
use crate::name_pattern::{NamePattern, Quota};
use crate::session::triggers;

const MAX_DURATION_MS: u32 = 7 * 24 * 3600 * 1000;
const MAX_GUARDED_DURATION_MS: u32 = 24 * 3600 * 1000;
const MAX_GUARDED_BUFFERS_KB: u32 = 131_072;
pub(crate) const MAX_BUFFERS: usize = 128;

/// Data sources in one config. The service refuses a config with more; the reference service has no
/// limit.
const MAX_DATA_SOURCES: usize = 1024;

/// Entries of `producers`, of `session_semaphores` and of `trigger_config.triggers` in one config,
/// each.
///
/// An entry of two bytes takes a hundred when it is decoded. The service refuses a config with
/// more; the reference service has no limit.
const MAX_ENTRIES: usize = 1024;

/// Tells whether `enable_extra_guardrails` is set.
pub(crate) fn is_guarded(config: &TraceConfig) -> bool {
    config.enable_extra_guardrails.unwrap_or(false)
}

/// Checks a config on its own.
///
/// # Errors
///
/// A text for the consumer: the field, its value and the limit.
pub(crate) fn check(config: &TraceConfig) -> Result<(), String> {
    check_duration(config)?;
    check_bugreport_filename(config)?;
    triggers::check(config)?;
    check_guardrails(config)?;
    check_buffers(config)?;
    check_targets(config)
}

/// Checks the sizes of the parts of a config that must fit into messages or that the service keeps.
///
/// # Errors
///
/// A text for the consumer: the part, its size and the limit.
pub(crate) fn check_sizes(config: &TraceConfig, source_configs: &[Vec<u8>], bytes: usize) -> Result<(), String> {
    check_size(bytes)?;
    for (source, encoded) in config.data_sources.iter().zip(source_configs) {
        if encoded.len() > MAX_SOURCE_CONFIG_BYTES {
            let name = source.config.as_ref().and_then(|config| config.name.as_deref()).unwrap_or_default();
            return Err(format!(
                "data source {:?}: its config has {} bytes, at most {MAX_SOURCE_CONFIG_BYTES} fit into a message to a producer",
                String::from_utf8_lossy(&name[..name.len().min(200)]),
                encoded.len()
            ));
        }
    }
    let triggers = config.trigger_config.as_ref().map_or(&[][..], |config| &config.triggers);
    let entries = [
        ("producers", config.producers.len()),
        ("session_semaphores", config.session_semaphores.len()),
        ("trigger_config.triggers", triggers.len()),
    ];
    if let Some((field, count)) = entries.into_iter().find(|&(_, count)| count > MAX_ENTRIES) {
        return Err(format!("{field} has {count} entries, at most {MAX_ENTRIES} are possible"));
    }
    let own = [
        ("unique_session_name", config.unique_session_name.as_deref()),
        ("bugreport_filename", config.bugreport_filename.as_deref()),
    ];
    let of_triggers = triggers.iter().map(|trigger| ("the name of a trigger", trigger.name.as_deref()));
    for (field, name) in own.into_iter().chain(of_triggers) {
        let len = name.map_or(0, <[u8]>::len);
        if len > MAX_NAME_BYTES {
            return Err(format!("{field} has {len} bytes, at most {MAX_NAME_BYTES} are possible"));
        }
    }
    Ok(())
}

/// Checks the size of a whole config, which a consumer gets when it attaches.
///
/// # Errors
///
/// A text for the consumer.
pub(crate) fn check_size(bytes: usize) -> Result<(), String> {
    if bytes > MAX_CONFIG_BYTES {
        return Err(format!("the config has {bytes} bytes, at most {MAX_CONFIG_BYTES} are possible"));
    }
    Ok(())
}

fn check_duration(config: &TraceConfig) -> Result<(), String> {
    let (max, guardrails) = if is_guarded(config) {
        (MAX_GUARDED_DURATION_MS, " with enable_extra_guardrails")
    } else {
        (MAX_DURATION_MS, "")
    };
    match config.duration_ms {
        Some(ms) if ms > max => Err(format!("duration_ms is {ms}, at most {max} is possible{guardrails}")),
        _ => triggers::check_mode(config, max),
    }
}

fn check_bugreport_filename(config: &TraceConfig) -> Result<(), String> {
    let name = config.bugreport_filename.as_deref().unwrap_or_default();
    match name.iter().find(|byte| !byte.is_ascii_alphanumeric() && !b"-_.".contains(byte)) {
        Some(&byte) => {
            Err(format!("bugreport_filename contains {:?}, only [a-zA-Z0-9-_.] may be used", char::from(byte)))
        }
        None => Ok(()),
    }
}

fn check_guardrails(config: &TraceConfig) -> Result<(), String> {
    if !is_guarded(config) {
        return Ok(());
    }
    if config.deferred_start == Some(true) {
        return Err("deferred_start is not possible with enable_extra_guardrails".to_owned());
    }
    let mut sum = 0u64;
    for (i, buffer) in config.buffers.iter().enumerate() {
        let size_kb = buffer.size_kb.unwrap_or(0);
        if size_kb % 4 != 0 {
            return Err(format!(
                "buffers[{i}].size_kb is {size_kb}, with enable_extra_guardrails it is a multiple of 4"
            ));
        }
        sum += u64::from(size_kb);
    }
    let overrides = config.guardrail_overrides.as_ref().and_then(|guardrails| guardrails.max_tracing_buffer_size_kb);
    let max = u64::from(overrides.unwrap_or(0).max(MAX_GUARDED_BUFFERS_KB));
    if sum > max {
        return Err(format!("the buffers take {sum} KiB, at most {max} are possible with enable_extra_guardrails"));
    }
    Ok(())
}

fn check_buffers(config: &TraceConfig) -> Result<(), String> {
    if config.buffers.len() > MAX_BUFFERS {
        return Err(format!("the config has {} buffers, at most {MAX_BUFFERS} are possible", config.buffers.len()));
    }
    let mut names = Set::new();
    for (i, buffer) in config.buffers.iter().enumerate() {
        let name = buffer.name.as_deref().unwrap_or_default();
        if !name.is_empty() && !names.insert(name) {
            return Err(format!("two buffers have the name {:?}", String::from_utf8_lossy(name)));
        }
        let size_kb = buffer.size_kb.unwrap_or(0);
        if size_kb == 0 || size_kb > MAX_SIZE_KB {
            return Err(format!("buffers[{i}].size_kb is {size_kb}, it must be between 1 and {MAX_SIZE_KB}"));
        }
        let mode = buffer.experimental_mode.unwrap_or_default();
        if mode != ExperimentalMode::MODE_UNSPECIFIED && mode != ExperimentalMode::TRACE_BUFFER_V2 {
            return Err(format!("buffers[{i}].experimental_mode is {}, which is not supported", mode.0));
        }
    }
    Ok(())
}

fn check_targets(config: &TraceConfig) -> Result<(), String> {
    if config.data_sources.len() > MAX_DATA_SOURCES {
        let sources = config.data_sources.len();
        return Err(format!("the config has {sources} data sources, at most {MAX_DATA_SOURCES} are possible"));
    }
    for source in config.data_sources.iter().filter_map(|source| source.config.as_ref()) {
        let source_name = source.name.clone().unwrap_or_default();
        let target = source.target_buffer.unwrap_or(0);
        if let Some(name) = source.target_buffer_name.as_deref().filter(|name| !name.is_empty()) {
            let Some(index) = buffer_named(config, name) else {
                let name = String::from_utf8_lossy(name);
                return Err(format!("data source {source_name}: there is no buffer with target_buffer_name {name:?}"));
            };
            if target != 0 && target as usize != index {
                return Err(format!(
                    "data source {source_name}: target_buffer {target} is not the buffer of target_buffer_name"
                ));
            }
        }
        if target as usize >= config.buffers.len() {
            let buffers = match config.buffers.len() {
                1 => "1 buffer".to_owned(),
                count => format!("{count} buffers"),
            };
            return Err(format!("data source {source_name}: target_buffer is {target}, the config has {buffers}"));
        }
    }
    // An entry without a config has no name and matches nothing, but needs a buffer like any other.
    if config.buffers.is_empty() && !config.data_sources.is_empty() {
        return Err("the config has data sources but no buffers".to_owned());
    }
    Ok(())
}

/// Compiles the `producer_name_regex_filter` of each data source.
///
/// # Errors
///
/// A text for the consumer.
pub(crate) fn compile_patterns(config: &TraceConfig, quota: &Quota) -> Result<Vec<Vec<NamePattern>>, String> {
    let compile = |pattern: &esatto_protozero::ProtoString| {
        NamePattern::new(pattern, quota).map_err(|error| format!("producer_name_regex_filter: {error}"))
    };
    config.data_sources.iter().map(|source| source.producer_name_regex_filter.iter().map(compile).collect()).collect()
}

/// Returns the index of the buffer with this name.
pub(crate) fn buffer_named(config: &TraceConfig, name: &[u8]) -> Option<usize> {
    config.buffers.iter().position(|buffer| buffer.name.as_deref() == Some(name))
}

/// Returns the index of the buffer that a data source writes to.
pub(crate) fn target_buffer(config: &TraceConfig, source: &esatto_schema::DataSourceConfig) -> Option<usize> {
    let index = match source.target_buffer_name.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => buffer_named(config, name)?,
        None => source.target_buffer.unwrap_or(0) as usize,
    };
    (index < config.buffers.len()).then_some(index)
}

#[cfg(test)]
mod tests {
    use esatto_schema::trace_config::{BufferConfig, DataSource};
    use esatto_schema::{DataSourceConfig, TraceConfig};

    use super::*;

    fn buffer(size_kb: u32) -> BufferConfig {
        BufferConfig { size_kb: Some(size_kb), ..BufferConfig::default() }
    }

    fn source(name: &str, target_buffer: u32) -> DataSource {
        let config =
            DataSourceConfig { name: Some(name.into()), target_buffer: Some(target_buffer), ..Default::default() };
        DataSource { config: Some(Box::new(config)), ..DataSource::default() }
    }

    fn refusal(config: TraceConfig) -> String {
        check(&config).expect_err("the config is to be refused")
    }

    #[test]
    fn ordinary_configs_pass() {
        assert_eq!(check(&TraceConfig::default()), Ok(()));
        let config = TraceConfig {
            buffers: vec![buffer(1), buffer(MAX_SIZE_KB)],
            data_sources: vec![source("a", 0), source("b", 1)],
            duration_ms: Some(MAX_DURATION_MS),
            ..Default::default()
        };
        assert_eq!(check(&config), Ok(()));
    }

    #[test]
    fn absurd_sizes_are_refused_with_the_value_and_the_bound() {
        let zero = TraceConfig { buffers: vec![buffer(0)], ..Default::default() };
        assert_eq!(refusal(zero), "buffers[0].size_kb is 0, it must be between 1 and 4194300");
        let large = TraceConfig { buffers: vec![buffer(1), buffer(4_194_301)], ..Default::default() };
        assert_eq!(refusal(large), "buffers[1].size_kb is 4194301, it must be between 1 and 4194300");
        let many = TraceConfig { buffers: vec![buffer(1); 129], ..Default::default() };
        assert!(refusal(many).contains("129"));
        let long = TraceConfig { duration_ms: Some(MAX_DURATION_MS + 1), ..Default::default() };
        assert!(refusal(long).contains("duration_ms"));
    }

    #[test]
    fn targets_must_exist() {
        let none = TraceConfig { data_sources: vec![source("a", 0)], ..Default::default() };
        assert_eq!(refusal(none), "data source a: target_buffer is 0, the config has 0 buffers");
        let mut named = source("a", 0);
        named.config.as_mut().unwrap().target_buffer_name = Some("x".into());
        let unknown = TraceConfig { buffers: vec![buffer(4)], data_sources: vec![named.clone()], ..Default::default() };
        assert!(refusal(unknown).contains("target_buffer_name"));
        let x = BufferConfig { name: Some("x".into()), ..buffer(4) };
        named.config.as_mut().unwrap().target_buffer = Some(1);
        let contradiction =
            TraceConfig { buffers: vec![x.clone(), buffer(4)], data_sources: vec![named], ..Default::default() };
        assert!(refusal(contradiction).contains("target_buffer 1"));
        let twice = TraceConfig { buffers: vec![x.clone(), x], ..Default::default() };
        assert!(refusal(twice).contains("\"x\""));
    }

    #[test]
    fn unsupported_fields_are_named() {
        let mode = BufferConfig { experimental_mode: Some(ExperimentalMode(2)), ..buffer(4) };
        assert!(refusal(TraceConfig { buffers: vec![mode], ..Default::default() }).contains("experimental_mode is 2"));
    }

    #[test]
    fn guardrails_are_tighter() {
        let guarded = || TraceConfig { enable_extra_guardrails: Some(true), ..Default::default() };
        assert!(refusal(TraceConfig { deferred_start: Some(true), ..guarded() }).contains("deferred_start"));
        assert!(refusal(TraceConfig { buffers: vec![buffer(5)], ..guarded() }).contains("multiple of 4"));
        assert!(refusal(TraceConfig { buffers: vec![buffer(131_076)], ..guarded() }).contains("131072"));
        assert!(refusal(TraceConfig { duration_ms: Some(86_400_001), ..guarded() }).contains("86400000"));
    }
}
