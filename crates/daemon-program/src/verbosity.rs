//! [`Verbosity`]: level of the log.

use log::LevelFilter;

use crate::stderr_log;

/// Level of the log, as the command line chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbosity(pub LevelFilter);

impl Default for Verbosity {
    fn default() -> Self {
        Self(LevelFilter::Info)
    }
}

impl Verbosity {
    /// Logs more: the meaning of `-v`.
    pub fn raise(&mut self) {
        self.0 = if self.0 < LevelFilter::Debug { LevelFilter::Debug } else { LevelFilter::Trace };
    }

    /// Parses the value of `--log-level`.
    ///
    /// # Errors
    ///
    /// A line that names the value and the possible ones.
    pub fn parse(level: &str) -> Result<Self, String> {
        let level = match level {
            "error" => LevelFilter::Error,
            "warn" => LevelFilter::Warn,
            "info" => LevelFilter::Info,
            "debug" => LevelFilter::Debug,
            other => return Err(format!("cannot use --log-level {other:?}: it must be error, warn, info or debug")),
        };
        Ok(Self(level))
    }

    /// Starts to log to stderr.
    pub fn start_log(self) {
        stderr_log::init(self.0);
    }
}
