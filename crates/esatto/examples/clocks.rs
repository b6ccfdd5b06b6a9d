//! Events with another time than now, and with another clock.
//!
//! `cargo run -p esatto --example clocks` writes `clocks.pftrace` for <https://ui.perfetto.dev>.

use std::error::Error;
use std::thread::sleep;
use std::time::{Duration, Instant};

use esatto::{Backend, CustomClock, Session, Tracing, Track};

esatto::categories! { static GPU = "gpu"; }

static QUEUE: Track = Track::with_name("queue", 0);
/// A clock of the device: 16 MHz, so that a tick takes 62 ns.
static DEVICE: CustomClock = CustomClock::new(66, 62);

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;

    // The program knows only afterwards that it took long.
    let began = Instant::now();
    sleep(Duration::from_millis(3));
    if began.elapsed() > Duration::from_millis(1) {
        esatto::begin!(GPU, track: &QUEUE, "slow frame", at: began);
        esatto::end!(GPU, track: &QUEUE, at: Instant::now());
    }

    // A time in ticks of the device. Anchor the clock again from time to time, because it drifts.
    let ticks = |since: Instant| u64::try_from(since.elapsed().as_nanos() / 62).unwrap_or(u64::MAX);
    DEVICE.anchor(ticks(began));
    let (from, to) = (ticks(began) - 2000, ticks(began) - 500);
    esatto::begin!(GPU, track: &QUEUE, "draw", at: DEVICE.ticks(from));
    esatto::end!(GPU, track: &QUEUE, at: DEVICE.ticks(to));

    std::fs::write("clocks.pftrace", session.stop()?)?;
    Ok(())
}
