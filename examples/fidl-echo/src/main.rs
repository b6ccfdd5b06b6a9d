//! The echo service of FIDL's tutorial in two processes, whose calls trace themselves.
//!
//! ```sh
//! cargo run --release -p fidl-echo
//! ```
//!
//! `fidl/echo.fidl` names a category for the protocol, and both processes call
//! `esatto_rpc_trace::install`. No line here records a call.

#![forbid(unsafe_code)]

mod client;
mod recording;
mod server;

use std::error::Error;
use std::path::Path;
use std::time::Duration;

/// Code that `build.rs` generated.
mod fidl {
    include!(concat!(env!("OUT_DIR"), "/echo.rs"));
}

esatto::categories! {
    /// Work of the processes.
    static APP = "app";
}

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => recording::record(Path::new("fidl-echo.pftrace")),
        ["-o", output] => recording::record(Path::new(output)),
        ["server", socket] => trace("server", socket, server::run),
        ["client", socket] => trace("client", socket, client::run),
        _ => Err("usage: fidl-echo [-o FILE]".into()),
    }
}

/// Runs a process, which is recorded.
fn trace(name: &str, socket: &str, run: fn(&Path) -> Outcome) -> Outcome {
    esatto_rpc_trace::install();
    let tracing = esatto::Tracing::builder().system().categories(CATEGORIES).producer_name(name).start()?;
    if !tracing.wait_until_enabled(&APP, PATIENCE) {
        return Err("nobody records".into());
    }
    let outcome = run(Path::new(socket));
    tracing.flush(PATIENCE);
    outcome
}
