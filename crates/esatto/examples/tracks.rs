//! Custom tracks: for numbered things, for each request, in groups, in order.
//!
//! `cargo run -p esatto --example tracks` writes `tracks.pftrace` for <https://ui.perfetto.dev>.

use std::error::Error;
use std::thread::sleep;
use std::time::Duration;

use esatto::{Backend, ChildOrdering, Session, Tracing, Track};

esatto::categories! { static NET = "net"; }

static CONNECTIONS: Track = Track::with_name("connections", 0)
    .description("All that are open; the most important ones first")
    .child_ordering(ChildOrdering::Explicit);
static CONTROL: Track = Track::with_name("control", 0).within(&CONNECTIONS).sibling_rank(-1);
static QUEUE: Track = Track::with_name("queue", 0).in_this_thread();

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;
    Track::of_this_thread().named("accepting").describe_now();

    // Numbered things.
    let connections = [1, 2].map(|n| Track::with_name("connection", n).within(&CONNECTIONS));
    esatto::begin!(NET, track: &CONTROL, "keep alive");
    for connection in &connections {
        esatto::begin!(NET, track: connection, "transfer");
    }

    // Requests overlap: each has its own lane, and readers draw them in as few rows as possible.
    // Another thread may end a slice that this one began.
    std::thread::scope(|scope| {
        for number in 0..4 {
            let request = Track::unique("request");
            esatto::begin!(NET, track: &request, "GET", number = number);
            scope.spawn(move || {
                let _queue = esatto::slice!(NET, track: &QUEUE, "taken");
                sleep(Duration::from_millis(5 - number));
                esatto::end!(NET, track: &request, status = 200);
            });
            sleep(Duration::from_millis(1));
        }
    });

    for connection in &connections {
        esatto::end!(NET, track: connection);
    }
    esatto::end!(NET, track: &CONTROL);
    std::fs::write("tracks.pftrace", session.stop()?)?;
    Ok(())
}
