//! A program to record: three threads that draw frames.
//!
//! ```sh
//! cargo build --release -p esatto --example frames
//! esatto record -o frames.pftrace -- target/release/examples/frames
//! ```

use std::time::Duration;

use esatto::{CounterTrack, Flow, Tracing, Track, Unit};

esatto::categories! {
    static RENDERING = "rendering", "Frames and what they consist of", tags: ["ui"];
    static DETAILS = "details", "Every single triangle", tags: ["slow"];
}

static QUEUE: CounterTrack = CounterTrack::new("queue depth").unit(Unit::Count);

fn main() -> Result<(), esatto::Error> {
    let tracing = Tracing::builder().system().categories(CATEGORIES).start()?;
    if !tracing.wait_until_enabled(&RENDERING, Duration::from_secs(10)) {
        eprintln!("frames: nobody records the category `rendering`; drawing all the same");
    }
    std::thread::scope(|scope| {
        for thread in 0..3 {
            std::thread::Builder::new()
                .name(format!("worker-{thread}"))
                .spawn_scoped(scope, move || draw(thread))
                .expect("a thread can be started");
        }
    });
    Ok(())
}

fn draw(thread: u64) {
    let gpu = Track::with_name("gpu", thread);
    for frame in 0..100_u64 {
        let flow = Flow::process(thread << 32 | frame);
        let _frame = esatto::slice!(RENDERING, "frame", number = frame, even = frame % 2 == 0, label = "grün");
        {
            let _draw = esatto::slice!(RENDERING, "draw", |event| event.flow(flow));
            let _details = esatto::slice!(DETAILS, "details");
            esatto::instant!(RENDERING, "tick");
            esatto::counter!(RENDERING, &QUEUE, thread * 100 + frame % 10);
            std::thread::sleep(Duration::from_millis(1));
        }
        let _upload = esatto::slice!(RENDERING, track: &gpu, "upload", |event| event.end_flow(flow));
    }
    esatto::instant!(RENDERING, "done");
}
