//! Recording without a config (`docs/spec/cli.md` §6).

use esatto_schema::trace_config::{BufferConfig, DataSource};
use esatto_schema::{DataSourceConfig, FtraceConfig, SysStatsConfig, TraceConfig};

const DEFAULT_DURATION_MS: u64 = 10_000;
const DEFAULT_BUFFER_KB: u64 = 32 << 10;
const FLUSH_PERIOD_MS: u32 = 30_000;
const DISKSTAT_PERIOD_MS: u32 = 1000;

/// Options that stand for a config.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LightMode {
    pub(crate) time: Option<String>,
    pub(crate) buffer: Option<String>,
    pub(crate) size: Option<String>,
    pub(crate) apps: Vec<String>,
    /// Events of the kernel, `GROUP/NAME`, and categories.
    pub(crate) words: Vec<String>,
}

impl LightMode {
    /// Returns whether one of the options was given.
    pub(crate) fn is_used(&self) -> bool {
        *self != Self::default()
    }

    /// Returns the config.
    ///
    /// # Errors
    ///
    /// A line that names the wrong option.
    pub(crate) fn config(&self) -> Result<TraceConfig, String> {
        let parsed = |option: &str, value: &Option<String>, units: &[(&str, u64)], example: &str| match value {
            None => Ok(None),
            Some(text) => amount(text, units).map(Some).ok_or_else(|| {
                let names: Vec<&str> = units.iter().map(|unit| unit.0).collect();
                format!(
                    "--{option} argument is invalid: {text:?}; it is a number and one of {}, for example {example}",
                    names.join(" ")
                )
            }),
        };
        let duration_ms = parsed("time", &self.time, TIMES, "10s")?.unwrap_or(DEFAULT_DURATION_MS);
        let buffer_kb = parsed("buffer", &self.buffer, SIZES, "32mb")?.map_or(DEFAULT_BUFFER_KB, |bytes| bytes >> 10);
        let max_file_bytes = parsed("size", &self.size, SIZES, "500mb")?.unwrap_or(0);
        let limited = |option: &str, value: u64| {
            u32::try_from(value).map_err(|_| format!("--{option} argument is invalid: it is too large"))
        };
        Ok(TraceConfig {
            duration_ms: Some(limited("time", duration_ms)?),
            buffers: vec![BufferConfig { size_kb: Some(limited("buffer", buffer_kb)?), ..BufferConfig::default() }],
            flush_period_ms: Some(FLUSH_PERIOD_MS),
            max_file_size_bytes: Some(max_file_bytes),
            write_into_file: (max_file_bytes > 0).then_some(true),
            data_sources: self.data_sources(),
            ..TraceConfig::default()
        })
    }

    fn data_sources(&self) -> Vec<DataSource> {
        let is_hypervisor = |word: &&String| matches!(word.as_str(), "hyp" | "hypervisor");
        let (events, words): (Vec<&String>, Vec<&String>) = self.words.iter().partition(|word| word.contains('/'));
        let mut sources = Vec::new();
        for word in &words {
            match word.as_str() {
                "gfx" => sources.push(named("android.surfaceflinger.frametimeline")),
                "disk" => sources.push(DataSourceConfig {
                    sys_stats_config: Some(
                        SysStatsConfig { diskstat_period_ms: Some(DISKSTAT_PERIOD_MS), ..SysStatsConfig::default() }
                            .into(),
                    ),
                    ..named("linux.sys_stats")
                }),
                _ => {}
            }
        }
        let categories: Vec<&String> = words.iter().copied().filter(|word| !is_hypervisor(word)).collect();
        if !events.is_empty() || !categories.is_empty() || !self.apps.is_empty() {
            let texts = |list: &[&String]| list.iter().map(|text| text.as_str().into()).collect();
            sources.push(ftrace(FtraceConfig {
                ftrace_events: texts(&events),
                atrace_categories: texts(&categories),
                atrace_apps: self.apps.iter().map(|app| app.as_str().into()).collect(),
                symbolize_ksyms: Some(true),
                ..FtraceConfig::default()
            }));
        }
        // There is one hypervisor, so the last name counts.
        if let Some(word) = words.iter().copied().rfind(is_hypervisor) {
            sources.push(ftrace(FtraceConfig {
                instance_name: Some(word.as_str().into()),
                ftrace_events: vec![format!("{word}/*").into()],
                ..FtraceConfig::default()
            }));
        }
        let in_first_buffer = |name| DataSourceConfig { target_buffer: Some(0), ..named(name) };
        sources.extend(["linux.process_stats", "linux.system_info"].map(in_first_buffer));
        sources.into_iter().map(|config| DataSource { config: Some(config.into()), ..DataSource::default() }).collect()
    }
}

fn named(name: &str) -> DataSourceConfig {
    DataSourceConfig { name: Some(name.into()), ..DataSourceConfig::default() }
}

fn ftrace(config: FtraceConfig) -> DataSourceConfig {
    DataSourceConfig { ftrace_config: Some(config.into()), ..named("linux.ftrace") }
}

/// Units of times, in milliseconds.
const TIMES: &[(&str, u64)] = &[("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
/// Units of sizes, in bytes.
const SIZES: &[(&str, u64)] =
    &[("k", 1 << 10), ("kb", 1 << 10), ("m", 1 << 20), ("mb", 1 << 20), ("g", 1 << 30), ("gb", 1 << 30)];

/// Parses digits that one of the units follows. An empty text and `0` are zero.
fn amount(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    if text.is_empty() || text == "0" {
        return Some(0);
    }
    let (digits, unit) = text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit())?);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn light(time: &str, size: &str, words: &[&str]) -> LightMode {
        LightMode {
            time: Some(time.to_owned()),
            size: Some(size.to_owned()),
            words: words.iter().map(|&word| word.to_owned()).collect(),
            ..LightMode::default()
        }
    }

    fn names(config: &TraceConfig) -> Vec<String> {
        let configs = config.data_sources.iter().filter_map(|source| source.config.as_ref());
        configs.map(|config| String::from_utf8_lossy(config.name.as_ref().unwrap().as_bytes()).into_owned()).collect()
    }

    #[test]
    fn numbers_have_one_unit() {
        for (text, want) in [
            ("", Some(0)),
            ("0", Some(0)),
            ("3s", Some(3000)),
            ("250ms", Some(250)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("5", None),
            ("s", None),
            ("5S", None),
            ("5 s", None),
            ("-5s", None),
            ("1.5s", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(amount(text, TIMES), want, "{text:?}");
        }
        assert_eq!((amount("4k", SIZES), amount("2gb", SIZES)), (Some(4096), Some(2 << 30)));
    }

    #[test]
    fn a_size_streams_into_the_file() {
        let config = light("0", "1mb", &[]).config().unwrap();
        assert_eq!((config.duration_ms, config.write_into_file), (Some(0), Some(true)));
        assert_eq!(config.max_file_size_bytes, Some(1 << 20));
        assert_eq!(light("0", "0", &[]).config().unwrap().write_into_file, None);
    }

    #[test]
    fn data_sources_come_in_the_order_of_the_spec() {
        let config = light("1s", "", &["disk", "hyp", "sched/x", "gfx"]).config().unwrap();
        let wanted = [
            "linux.sys_stats",
            "android.surfaceflinger.frametimeline",
            "linux.ftrace",
            "linux.ftrace",
            "linux.process_stats",
            "linux.system_info",
        ];
        assert_eq!(names(&config), wanted);
        let ftrace = config.data_sources[2].config.as_ref().unwrap().ftrace_config.as_ref().unwrap();
        assert_eq!(ftrace.atrace_categories, ["disk", "gfx"]);
        assert_eq!(names(&light("1s", "", &[]).config().unwrap()), ["linux.process_stats", "linux.system_info"]);
    }

    #[test]
    fn mistakes_name_the_option_and_the_units() {
        let said = light("5", "", &[]).config().unwrap_err();
        assert_eq!(said, "--time argument is invalid: \"5\"; it is a number and one of ms s m h, for example 10s");
        assert!(light("1s", "1tb", &[]).config().unwrap_err().starts_with("--size argument is invalid"));
        assert!(light("99999h", "", &[]).config().unwrap_err().contains("too large"));
    }
}
