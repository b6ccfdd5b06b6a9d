//! Sessions over what arguments name: traces as files, patterns and URLs, or a lake.

use std::sync::Arc;

use esatto_lake::Lake;
use tokio::runtime::Handle;

use crate::program::half_of_memory;
use crate::remote::Remote;
use crate::{Broken, Options, Session, Traces, find_files};

/// Options of the opening.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Treatment of damaged traces; by default, a single trace is kept and those of several are
    /// skipped.
    pub broken: Option<Broken>,
    /// Tables of a single trace also have columns that tell traces apart.
    pub has_trace_columns: bool,
    /// Bytes of memory for traces and queries together.
    pub memory_limit: usize,
    /// Threads that work on a query.
    pub threads: usize,
    /// An engine that runs plans on other machines.
    pub remote: Option<Arc<dyn Remote>>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        let Options { has_trace_columns, threads, remote, .. } = Options::default();
        Self { broken: None, has_trace_columns, memory_limit: half_of_memory(), threads, remote }
    }
}

/// Opens a lake, or traces. Traces are read when a statement needs them. Waits for object stores,
/// so call it outside of asynchronous code.
///
/// # Errors
///
/// A pattern fits no file, or there is no lake, or a lake cannot be read.
pub fn open(sources: &[String], options: &OpenOptions, runtime: &Handle) -> Result<Session, String> {
    if let Some(lake) = lake_of(sources)? {
        return open_lake(&lake, options, runtime);
    }
    let (files, are_several) = find_files(sources)?;
    let broken = options.broken.unwrap_or(if are_several { Broken::Skip } else { Broken::Keep });
    let mut session = options_of_session(options);
    session.has_trace_columns |= are_several;
    // Traces and queries share the memory.
    session.memory_limit /= 2;
    let traces = Traces::new(files, broken, session.memory_limit)?;
    Session::new(traces, &session).map_err(|error| error.to_string())
}

/// Opens a lake, as [`open`] does.
///
/// # Errors
///
/// Its catalogue cannot be read.
pub fn open_lake(lake: &Lake, options: &OpenOptions, runtime: &Handle) -> Result<Session, String> {
    let entries = lake.entries().map_err(|error| error.to_string())?;
    let options = options_of_session(options);
    runtime.block_on(Session::of_lake(lake, entries, &options)).map_err(|error| error.to_string())
}

fn options_of_session(options: &OpenOptions) -> Options {
    let OpenOptions { has_trace_columns, memory_limit, threads, ref remote, .. } = *options;
    Options { memory_limit, threads, has_trace_columns, remote: remote.clone() }
}

/// Returns the lake that the arguments name, if they name one.
fn lake_of(arguments: &[String]) -> Result<Option<Lake>, String> {
    if !arguments.iter().any(|argument| Lake::is_lake(argument)) {
        return Ok(None);
    }
    match arguments {
        [lake] => Ok(Some(Lake::open(lake).map_err(|error| error.to_string())?)),
        _ => Err("a query can have one lake, and nothing beside it; export the traces into the lake".to_owned()),
    }
}
