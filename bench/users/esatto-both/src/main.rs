//! A program with one slice, which is recorded by the system's service and by the program itself.

use esatto::{Backend, Session, Tracing};

esatto::categories! {
    static APP = "app";
}

fn main() -> Result<(), esatto::Error> {
    let _tracing = Tracing::builder().system().in_process().categories(CATEGORIES).start()?;
    let session = Session::start(Backend::InProcess, esatto::track_events(1024))?;
    {
        let _slice = esatto::slice!(APP, "main");
        println!("done");
    }
    let trace = session.stop()?;
    println!("{} bytes", trace.len());
    Ok(())
}
