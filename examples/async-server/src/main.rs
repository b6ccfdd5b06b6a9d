//! An HTTP server on tokio whose requests are traced, with clients that keep it busy for a moment.
//!
//! ```sh
//! # Records itself into this file:
//! cargo run -p esatto-example-async-server -- server.pftrace
//! # Is recorded by a service:
//! esatto record -o server.pftrace -- target/debug/esatto-example-async-server
//! ```
//!
//! Open `server.pftrace` in <https://ui.perfetto.dev>. Each request has a lane, from the accepted
//! connection to the last byte, and slices on the threads that worked for it, with arrows between
//! them. `RUST_LOG` selects the messages on standard error. The trace has those of the level INFO
//! and above.

#![forbid(unsafe_code)]

mod client;
mod server;
mod store;

use std::error::Error;
use std::path::PathBuf;

use esatto::{Backend, Session, Tracing};
use tokio::net::TcpListener;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, fmt};

use crate::store::Store;

/// Number of clients at the same time, and of requests of each client.
const CLIENTS: u64 = 20;
const REQUESTS: u64 = 25;

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args_os().nth(1).map(PathBuf::from);
    let builder = Tracing::builder().categories(store::CATEGORIES);
    // The trace points are the same in both cases.
    let _tracing = if file.is_some() { builder.in_process() } else { builder.system() }.start()?;
    esatto::trace_panics();

    // Two layers, each with its own filter: one writes text, the other one traces.
    let text = fmt::layer().with_writer(std::io::stderr).with_filter(EnvFilter::from_default_env());
    let traced = esatto_tracing::layer().with_filter(EnvFilter::new("info"));
    tracing_subscriber::registry().with(text).with(traced).init();

    let session = match &file {
        Some(_) => Some(Session::start(Backend::InProcess, esatto::track_events(16 * 1024))?),
        None => None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answered = runtime.block_on(serve_and_ask())?;
    println!("{answered} requests were answered");
    if let (Some(session), Some(file)) = (session, file) {
        std::fs::write(&file, session.stop()?)?;
        println!("open {} in https://ui.perfetto.dev", file.display());
    }
    Ok(())
}

/// Serves until all clients have their answers, and returns the number of answers.
async fn serve_and_ask() -> std::io::Result<u64> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(server::serve(listener, Store::default()));
    let clients: Vec<_> = (0..CLIENTS).map(|id| tokio::spawn(client::run(id, address, REQUESTS))).collect();
    let mut answered = 0;
    for client in clients {
        answered += client.await??;
    }
    server.abort();
    Ok(answered)
}

#[cfg(test)]
mod tests;
