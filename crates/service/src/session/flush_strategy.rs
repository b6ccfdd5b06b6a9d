//! The times at which a running session flushes its data sources (`docs/spec/service.md` §12, §18).

use esatto_schema::TraceConfig;
use esatto_schema::trace_config::WriteFlushMode;

use super::trace_file;

/// Milliseconds between two flushes of a session that streams into a file.
const FILE_FLUSH_PERIOD_MS: u32 = 5000;

/// The times at which data sources are asked to flush while the session runs. EnableTracing fixes
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlushStrategy {
    Never,
    Periodic { period_ms: u32 },
    BeforeFileWrites,
}

impl FlushStrategy {
    pub(crate) fn of(config: &TraceConfig) -> Self {
        let by_config = match config.flush_period_ms {
            None | Some(0) => Self::Never,
            Some(period_ms) => Self::Periodic { period_ms },
        };
        if !config.write_into_file.unwrap_or(false) {
            return by_config;
        }
        match config.write_flush_mode {
            Some(WriteFlushMode::WRITE_FLUSH_DISABLED) => by_config,
            Some(WriteFlushMode::WRITE_FLUSH_ENABLED) => Self::BeforeFileWrites,
            _ if trace_file::write_period_ms(config) > FILE_FLUSH_PERIOD_MS => Self::BeforeFileWrites,
            _ => Self::Periodic { period_ms: FILE_FLUSH_PERIOD_MS },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flush_strategy_follows_the_table() {
        let config = |file, flush_period_ms, file_write_period_ms, write_flush_mode| TraceConfig {
            write_into_file: Some(file),
            flush_period_ms,
            file_write_period_ms,
            write_flush_mode,
            ..TraceConfig::default()
        };
        let periodic = |period_ms| FlushStrategy::Periodic { period_ms };
        for (config, expected) in [
            (config(false, None, None, None), FlushStrategy::Never),
            (config(false, Some(70), None, None), periodic(70)),
            (config(true, Some(70), Some(5000), None), periodic(5000)),
            (config(true, Some(70), Some(5001), None), FlushStrategy::BeforeFileWrites),
            (config(true, None, Some(1), Some(WriteFlushMode::WRITE_FLUSH_ENABLED)), FlushStrategy::BeforeFileWrites),
            (config(true, Some(70), Some(1), Some(WriteFlushMode::WRITE_FLUSH_DISABLED)), periodic(70)),
        ] {
            assert_eq!(FlushStrategy::of(&config), expected);
        }
    }
}
