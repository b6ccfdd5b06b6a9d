//! Numbers that change over time, and states.
//!
//! `cargo run -p esatto --example counters_and_states` writes `counters.pftrace` for
//! <https://ui.perfetto.dev>.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use esatto::{Backend, CounterTrack, Session, StateTrack, Tracing, Unit};

esatto::categories! { static NET = "net"; }

static QUEUE: CounterTrack = CounterTrack::new("queue length").unit(Unit::Count);
static LOAD: CounterTrack = CounterTrack::new("load").unit(Unit::Named("%"));
static SENT: CounterTrack = CounterTrack::new("sent").unit(Unit::Bytes).multiplier(1024).incremental();
static DEPTH: CounterTrack = CounterTrack::new("depth").in_this_thread();
static LINK: StateTrack = StateTrack::new("link");

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;

    esatto::state!(NET, &LINK, "connecting", attempt = 1);
    for round in 0..10_u64 {
        esatto::counter!(NET, &QUEUE, 10 - round);
        esatto::counter!(NET, &LOAD, 99.5 - round as f64);
        // Whole KiB; the trace contains differences, in bytes.
        esatto::counter!(NET, &SENT, round * 64);
        // A counter that is read together with a slice.
        let _send = esatto::slice!(NET, "send", counter: &DEPTH => round % 3);
        sleep(Duration::from_millis(1));
        if round == 2 {
            esatto::state!(NET, &LINK, dynamic: format!("up at {} Mbit/s", 100));
        }
    }
    esatto::state!(NET, &LINK);

    std::fs::write("counters.pftrace", session.stop()?)?;
    Ok(())
}
