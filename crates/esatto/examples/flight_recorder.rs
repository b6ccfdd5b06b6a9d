//! A flight recorder: a session inside the program records into a ring all the time. When something
//! goes wrong, the program takes a snapshot of the last moments, and the recording continues.
//!
//! ```sh
//! cargo run --release -p esatto --example flight_recorder              # writes slow-1.pftrace and so on
//! ```

use std::time::{Duration, Instant};

use esatto::{Backend, CloneOf, Session, SessionConfig, Tracing};

esatto::categories! {
    static SERVER = "server", "Requests and what they consist of";
}

/// Longer frames are too slow.
const LIMIT: Duration = Duration::from_millis(20);

fn main() -> Result<(), esatto::Error> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let ring = Session::open(Backend::InProcess)?;
    ring.on_error(|error| eprintln!("flight_recorder: {error}"));
    ring.record(SessionConfig::new().buffer_size_kb(8 * 1024).name("ring")).wait()?;

    let mut slow = 0;
    for number in 1..=50_u64 {
        let start = Instant::now();
        serve(number);
        if start.elapsed() > LIMIT {
            slow += 1;
            let path = format!("slow-{slow}.pftrace");
            // Dropping it closes the session.
            let snapshot = Session::open(Backend::InProcess)?;
            snapshot.clone_session(CloneOf::Name("ring".into())).wait()?;
            let bytes = snapshot.read_to_file(&path)?;
            println!("request {number} was slow: {bytes} bytes in {path}");
        }
    }
    let stats = ring.stats().wait()?;
    let written: u64 = stats.buffer_stats.iter().filter_map(|buffer| buffer.bytes_written).sum();
    println!("{written} bytes were recorded");
    ring.stop_recording().wait()
}

fn serve(number: u64) {
    let _request = esatto::slice!(SERVER, "request", number = number);
    for step in ["parse", "look up", "render"] {
        let _step = esatto::slice!(SERVER, dynamic: step);
        let is_slow = step == "look up" && number % 20 == 0;
        std::thread::sleep(Duration::from_millis(if is_slow { 30 } else { 1 }));
    }
}
