//! `esatto-load (before|after) PACKETS`
//!
//! A program with a data source of its own, `com.example.load`, and without track events. It
//! registers the data source before or after it connects to the tracing service, and writes so many
//! packets at once. It prints how many milliseconds it has waited.

#![forbid(unsafe_code)]

use std::time::Instant;

use esatto::{DataSource, Setup, Source, Tracing};

struct Load;

static LOAD: Source<Load> = Source::new("com.example.load");

impl DataSource for Load {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

fn main() -> Result<(), esatto::Error> {
    let mut args = std::env::args().skip(1);
    let is_before = args.next().is_some_and(|order| order == "before");
    let packets: u32 = args.next().and_then(|count| count.parse().ok()).unwrap_or(5);
    let begin = Instant::now();
    if is_before {
        LOAD.register()?;
    }
    let _tracing = Tracing::builder().system().start()?;
    LOAD.register()?;
    println!("{}", begin.elapsed().as_millis());
    for number in 0..packets {
        LOAD.trace(|context| {
            let now = context.now_ns();
            context.packet(|packet| {
                packet.timestamp(now);
                packet.for_testing().str(format!("load {number}."));
            });
        });
    }
    Ok(())
}
