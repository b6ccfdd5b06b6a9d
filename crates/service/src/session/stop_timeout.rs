//! Time that data sources may take to acknowledge their stop (`docs/spec/service.md §10`).

use super::{Session, or_default};

/// Milliseconds that data sources may take to acknowledge their stop.
const DEFAULT_STOP_TIMEOUT_MS: u32 = 5000;

impl Session {
    pub(crate) fn stop_timeout_ms(&self) -> u32 {
        or_default(self.config.data_source_stop_timeout_ms, DEFAULT_STOP_TIMEOUT_MS)
    }
}
