//! A program writes its state when a recording starts, and finishes its work when one stops.
//!
//! `cargo run -p esatto --example observers` writes `observers.pftrace` for
//! <https://ui.perfetto.dev>.

use std::error::Error;

use esatto::{Backend, Session, SessionObserver, Started, Stop, Tracing};

esatto::categories! { static CACHE = "cache"; }

struct Cache;

impl SessionObserver for Cache {
    fn on_start(&self, session: &Started<'_>) {
        esatto::instant!(CACHE, "state", session = session.instance(), entries = 17);
    }

    fn on_stop(&self, stop: Stop) {
        // The session waits until `stop` is dropped, at most as long as its config says.
        std::thread::spawn(move || {
            esatto::instant!(CACHE, "final state", entries = 21);
            stop.complete();
        });
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let _observing = esatto::observe_sessions(Cache);
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;
    esatto::instant!(CACHE, "hit");
    std::fs::write("observers.pftrace", session.stop()?)?;
    println!("{} session so far", esatto::session_count());
    Ok(())
}
