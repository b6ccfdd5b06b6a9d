//! The config of a recording: read, parsed, and completed (`docs/spec/cli.md` §5).

use core::fmt;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};

use esatto_protozero::Owned as _;
use esatto_schema::trace_attributes::Attribute;
use esatto_schema::trace_config::{StatsdLogging, StatsdMetadata};
use esatto_schema::{TraceAttributes, TraceConfig};
use esatto_trace::escape::Lines;

use super::light_mode::LightMode;
use super::options::{Format, Options, StatsdIds};
use crate::trace_config;

/// Longest config.
const MAX_CONFIG_BYTES: u64 = 16 << 20;
/// Name of the built-in config.
const TEST: &str = ":test";

/// Reasons why there is no config.
#[derive(Debug)]
pub(crate) enum ConfigError {
    Unreadable {
        file: String,
        why: io::Error,
    },
    TooLong,
    Empty,
    /// Mistakes of a text, in several lines.
    Text(String),
    /// A wrong option of the light mode.
    Option(String),
    /// The encoding is broken; `is_text` if it looks like text.
    Encoding {
        is_text: bool,
    },
    Internal(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const INVALID: &str = "The trace config is invalid, bailing out.";
        match self {
            Self::Unreadable { file, why } => write!(f, "Could not open {file}: {why}"),
            Self::TooLong => write!(f, "The trace config has more than 16 MiB. {INVALID}"),
            Self::Empty => f.write_str("The TraceConfig is empty"),
            Self::Text(_) => f.write_str(INVALID),
            Self::Option(mistake) => write!(f, "{mistake}. {INVALID}"),
            Self::Encoding { is_text: false } => f.write_str(INVALID),
            Self::Encoding { is_text: true } => write!(
                f,
                "{INVALID} It looks like a textual config, but an encoded one is expected. Try adding --txt to the \
                 cmdline."
            ),
            Self::Internal(why) => f.write_str(why),
        }
    }
}

/// Returns the config that the options name, without the changes of [`complete`].
pub(crate) fn read(options: &Options) -> Result<TraceConfig, ConfigError> {
    let Some(file) = &options.config else {
        if !options.light_mode.is_used() {
            return Err(ConfigError::Empty);
        }
        return options.light_mode.config().map_err(ConfigError::Option);
    };
    if file == TEST {
        return test_config().config().map_err(ConfigError::Option);
    }
    let bytes = content(file)?;
    let encoded = match options.format {
        Format::Encoded => bytes,
        Format::Text | Format::LossyText => {
            let message = trace_config::message().map_err(|failure| ConfigError::Internal(failure.to_string()))?;
            let name = Lines(file.to_string_lossy()).to_string();
            let parser = esatto_text_format::Parser::new(message).file_name(name);
            let parser = parser.lossy(options.format == Format::LossyText);
            parser.parse(bytes).map_err(|errors| ConfigError::Text(errors.to_string()))?
        }
    };
    if encoded.is_empty() {
        return Err(ConfigError::Empty);
    }
    TraceConfig::decode(&encoded).map_err(|_| ConfigError::Encoding {
        is_text: encoded.iter().all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()),
    })
}

fn content(file: &OsStr) -> Result<Vec<u8>, ConfigError> {
    let unreadable = |why| ConfigError::Unreadable { file: file.to_string_lossy().into_owned(), why };
    let mut bytes = Vec::new();
    let read = if file == "-" {
        io::stdin().take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes)
    } else {
        File::open(file).and_then(|file| file.take(MAX_CONFIG_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(unreadable)?;
    if bytes.len() as u64 > MAX_CONFIG_BYTES { Err(ConfigError::TooLong) } else { Ok(bytes) }
}

fn test_config() -> LightMode {
    let events = ["sched/sched_switch", "power/cpu_idle", "power/cpu_frequency", "power/gpu_frequency"];
    LightMode {
        time: Some("2s".to_owned()),
        words: events.iter().map(|&event| event.to_owned()).collect(),
        ..LightMode::default()
    }
}

/// Makes the changes that every client makes before it sends a config.
///
/// # Errors
///
/// There are no random numbers.
pub(crate) fn complete(config: &mut TraceConfig, options: &Options) -> Result<(), ConfigError> {
    let internal = |failure: crate::failure::Failure| ConfigError::Internal(failure.to_string());
    trace_config::complete(config, None).map_err(internal)?;
    if let Some(id) = options.statsd.subscription {
        config.trace_uuid_lsb = Some(id);
    }
    config.statsd_metadata = Some(metadata(options.statsd));
    if config.statsd_logging != Some(StatsdLogging::STATSD_LOGGING_ENABLED) {
        config.statsd_logging = Some(StatsdLogging::STATSD_LOGGING_DISABLED);
    }
    // Only uploads have guardrails.
    config.enable_extra_guardrails = Some(false);
    if !options.attributes.is_empty() {
        let attributes = config.trace_attributes.get_or_insert_with(TraceAttributes::default);
        attributes.attribute.extend(options.attributes.iter().map(|(key, value)| attribute(key, value)));
    }
    Ok(())
}

fn metadata(ids: StatsdIds) -> StatsdMetadata {
    StatsdMetadata {
        triggering_alert_id: ids.alert,
        triggering_config_id: ids.config,
        triggering_config_uid: ids.config_uid,
        triggering_subscription_id: ids.subscription,
        ..StatsdMetadata::default()
    }
}

fn attribute(key: &str, value: &str) -> Attribute {
    Attribute { key: Some(key.into()), string_value: Some(value.into()), ..Attribute::default() }
}

#[cfg(test)]
mod tests {
    use super::super::options::Request;
    use super::*;

    fn options(args: &[&str]) -> Options {
        match Options::parse(args.iter().map(Into::into)) {
            Ok(Request::Run(options)) => *options,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    /// Reads this text as a config.
    fn read_text(content: &[u8], format: &[&str]) -> Result<TraceConfig, ConfigError> {
        let folder = crate::private_service::Folder::create().unwrap();
        let path = folder.path().join("c.cfg");
        std::fs::write(&path, content).unwrap();
        read(&options(&[&["-c", path.to_str().unwrap()], format].concat()))
    }

    #[test]
    fn mistakes_have_a_place_and_unknown_fields_may_be_left_out() {
        let text = b"duration_ms: 5\nnothing_of_this_name: 3\n";
        let error = read_text(text, &["--txt"]).unwrap_err();
        let ConfigError::Text(blocks) = &error else { panic!("{error}") };
        assert!(
            blocks.contains(":2:1 error: No field named \"nothing_of_this_name\" in proto TraceConfig"),
            "{blocks}"
        );
        assert_eq!(error.to_string(), "The trace config is invalid, bailing out.");
        assert_eq!(read_text(text, &["--txt-lossy"]).unwrap().duration_ms, Some(5));
    }

    #[test]
    fn a_text_without_txt_gets_the_hint() {
        let error = read_text(b"duration_ms: 5\n", &[]).unwrap_err().to_string();
        assert!(error.contains("Try adding --txt"), "{error}");
        let error = read_text(b"\xff\xff\xff", &[]).unwrap_err().to_string();
        assert_eq!(error, "The trace config is invalid, bailing out.");
        assert_eq!(read_text(b"", &[]).unwrap_err().to_string(), "The TraceConfig is empty");
        assert_eq!(read_text(b"# nothing\n", &["--txt"]).unwrap_err().to_string(), "The TraceConfig is empty");
        assert_eq!(read(&options(&[])).unwrap_err().to_string(), "The TraceConfig is empty");
    }

    #[test]
    fn unknown_fields_of_an_encoded_config_are_kept() {
        let config = read_text(&[0x18, 5, 0xfa, 0xff, 0x7f, 1, b'x'], &[]).unwrap();
        assert_eq!((config.duration_ms, config.unknown_fields.len()), (Some(5), 5));
    }

    #[test]
    fn the_client_completes_the_config() {
        let options = options(&["-c", ":test", "--add-attribute", "a=b", "--alert-id", "7", "--subscription-id", "9"]);
        let mut config = read(&options).unwrap();
        assert_eq!(config.duration_ms, Some(2000));
        config.enable_extra_guardrails = Some(true);
        complete(&mut config, &options).unwrap();
        assert_ne!(config.trace_uuid_msb.unwrap_or(0), 0);
        assert_eq!(config.trace_uuid_lsb, Some(9));
        assert_eq!(config.enable_extra_guardrails, Some(false));
        assert_eq!(config.statsd_logging, Some(StatsdLogging::STATSD_LOGGING_DISABLED));
        let statsd = config.statsd_metadata.unwrap();
        assert_eq!((statsd.triggering_alert_id, statsd.triggering_subscription_id), (Some(7), Some(9)));
        assert_eq!(config.trace_attributes.unwrap().attribute, [attribute("a", "b")]);
    }
}
