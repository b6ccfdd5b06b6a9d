//! Times for which a recording waits at its end.

use core::time::Duration;

use esatto_schema::TraceConfig;

use crate::awaited_programs::Patience;

/// Time that the service gives programs to flush and to stop if the config names none
/// (`docs/spec/service.md` §10, §12).
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time that the service itself may need for a flush and for a stop, beyond that.
const FLUSH_MARGIN: Duration = Duration::from_secs(2);
pub(super) const STOP_MARGIN: Duration = Duration::from_secs(10);

/// Longest times until the service answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub(super) flush: Duration,
    pub(super) stop: Duration,
}

impl Timeouts {
    /// Adds the margins to the times that programs have.
    pub(super) fn of(patience: Patience) -> Self {
        Self { flush: patience.flush + FLUSH_MARGIN, stop: patience.stop + STOP_MARGIN }
    }
}

/// Returns the times that programs have with this config.
pub(super) fn patience(config: &TraceConfig) -> Patience {
    let of = |ms: Option<u32>| ms.filter(|&ms| ms != 0).map_or(DEFAULT_TIMEOUT, |ms| Duration::from_millis(ms.into()));
    Patience { flush: of(config.flush_timeout_ms), stop: of(config.data_source_stop_timeout_ms) }
}
