//! Prints events to the terminal while they happen, in colours: an interceptor in place of the
//! trace.

use std::time::Duration;

use esatto::{Backend, Session, Tracing};

esatto::categories! {
    static APP = "app";
}

fn main() -> Result<(), esatto::Error> {
    esatto_console::register()?;
    let _tracing = Tracing::builder().in_process().start()?;
    let mut config = esatto::track_events(64);
    for source in &mut config.data_sources {
        let source = source.config.as_mut().expect("`track_events` has made one");
        source.interceptor_config.get_or_insert_default().name = Some("console".into());
    }
    let session = Session::start(Backend::InProcess, config)?;

    let _frame = esatto::slice!(APP, "frame", number = 1_u32);
    {
        let _draw = esatto::slice!(APP, "draw", triangles = 1024_u32);
        esatto::instant!(APP, "vsync");
        std::thread::sleep(Duration::from_millis(16));
    }
    drop(_frame);
    session.stop().map(drop)
}
