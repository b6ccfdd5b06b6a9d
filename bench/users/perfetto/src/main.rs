//! A program with one slice.

use perfetto_sdk::{producer::*, track_event::*, *};

track_event_categories! {
    pub mod categories {
        ( "app", "", [] ),
    }
}
use categories as perfetto_te_ns;

fn main() {
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::SYSTEM).build());
    TrackEvent::init();
    categories::register().expect("first registration");
    scoped_track_event!("app", "main");
    println!("done");
}
