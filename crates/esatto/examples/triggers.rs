//! Tells the service that something went wrong. A flight recorder that waits for this trigger then
//! writes its trace.
//!
//! ```text
//! trigger_config { trigger_mode: STOP_TRACING trigger_timeout_ms: 3600000 triggers { name: "slow_frame" stop_delay_ms: 1000 } }
//! ```

use std::time::Duration;

use esatto::Tracing;

esatto::categories! {
    static APP = "app";
}

fn main() -> Result<(), esatto::Error> {
    let tracing = Tracing::builder().system().categories(CATEGORIES).start()?;
    for frame in 0..60_u64 {
        let _frame = esatto::slice!(APP, "frame", number = frame);
        std::thread::sleep(Duration::from_millis(if frame == 42 { 100 } else { 16 }));
        if frame == 42 {
            // Reaches the service at once, or when it is connected, if that is within a second.
            tracing.activate_triggers(&["slow_frame"], Duration::from_secs(1));
        }
    }
    Ok(())
}
