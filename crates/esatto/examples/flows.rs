//! Arrows between events that belong together, in this process and across processes.
//!
//! `cargo run -p esatto --example flows` writes `flows.pftrace` for <https://ui.perfetto.dev>.

use std::error::Error;
use std::sync::mpsc;

use esatto::{Backend, Flow, Session, Tracing};

esatto::categories! { static JOBS = "jobs"; }

fn main() -> Result<(), Box<dyn Error>> {
    let _tracing = Tracing::builder().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;

    let (sender, jobs) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        for (number, flow) in jobs {
            let _work = esatto::slice!(JOBS, "work", end_flow: flow, number = number);
        }
    });
    for number in 0..3_u64 {
        // A flow of this process. With `Flow::global` and an id that is passed along, another
        // process continues it.
        let flow = Flow::unique();
        let request = Flow::scoped("request", number);
        {
            let _post = esatto::slice!(JOBS, "post", flow: flow, flow: request);
            sender.send((number, flow))?;
        }
        esatto::instant!(JOBS, "logged", end_flow: request);
    }
    drop(sender);
    worker.join().expect("the worker does not panic");

    std::fs::write("flows.pftrace", session.stop()?)?;
    Ok(())
}
