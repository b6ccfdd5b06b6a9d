//! The clock of channels and servers.

use std::time::Instant;

/// Returns the time.
#[inline]
pub(crate) fn now() -> Instant {
    #[cfg(feature = "simulated")]
    if let Some(now) = crate::simulated::now() {
        return now;
    }
    Instant::now()
}
