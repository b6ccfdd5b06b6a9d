//! Records the start of a program for a session that begins later.
//!
//! ```sh
//! cargo build --release -p esatto --example startup
//! esatto record -o startup.pftrace -- target/release/examples/startup
//! ```

use std::time::Duration;

use esatto::{Backend, StartupTracing, Tracing};

esatto::categories! {
    static APP = "app", "The program from its first line on";
}

fn main() -> Result<(), esatto::Error> {
    let tracing = Tracing::builder().system().categories(CATEGORIES).start()?;
    // Only a session with the same config gets it: all categories, here.
    let startup = StartupTracing::new(&esatto::track_events(1024))
        .timeout(Duration::from_secs(5))
        .on_adopted(|| eprintln!("startup: a session has the beginning"))
        .on_aborted(|| eprintln!("startup: no later session took over"))
        .start(Backend::System)?;
    eprintln!("startup: {} data source records", startup.instances());

    {
        let _slice = esatto::slice!(APP, "read the configuration");
        std::thread::sleep(Duration::from_millis(20));
    }
    {
        let _slice = esatto::slice!(APP, "warm up");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The example waits for the session; a real program continues.
    std::thread::sleep(Duration::from_secs(6));
    esatto::instant!(APP, "at work");
    drop(tracing);
    Ok(())
}
