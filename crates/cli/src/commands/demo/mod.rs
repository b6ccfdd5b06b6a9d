//! The command `esatto demo`: records a pipeline of three processes that reads files of this
//! machine.
//!
//! ```text
//! scanner ──paths──▶ cruncher ──compressed files──▶ indexer
//! 2 walkers          3 workers: read, hash,         2 workers: unpack, verify,
//!                    compress                       tokenize, merge
//! ```
//!
//! The processes are this same program, started with the hidden command `demo-stage`; pipes connect
//! them. Each file is a flow from its discovery to the index, across threads and processes.

mod categories;
mod command;
mod cruncher;
mod indexer;
mod parcel;
mod queue;
mod scanner;
mod tracks;

use core::time::Duration;
use std::io::{self, BufReader, Read};
use std::process::ExitCode;
use std::thread::{self, ScopedJoinHandle};
use std::time::Instant;

use esatto::{CounterTrack, Flow, Tracing, counter, slice};

use self::categories::{CATEGORIES, PIPES, QUEUES};
use self::parcel::Parcel;
use self::queue::Queue;
use crate::args::{self, Stage};
use crate::console::say;
use crate::failure::{Attempt as _, Failure};

pub(crate) use self::command::run;

/// Larger files are left out: the demo shows many short steps, not a few long ones.
pub(crate) const MAX_FILE_BYTES: usize = 256 * 1024;

/// Time for which a stage waits for the session before it works untraced.
const SESSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Enough for the events of a thousand files, in case the service is busy for a moment.
const SHARED_MEMORY_KB: u32 = 2048;
const SHARED_PAGE_KB: u32 = 16;

/// Runs one process of the pipeline.
pub(crate) fn run_stage(args: &args::DemoStage) -> Result<ExitCode, Failure> {
    let name = args.stage.name();
    let failed = || format!("the {name} of the demo failed");
    let builder = Tracing::builder().system().categories(CATEGORIES).producer_name(format!("demo.{name}"));
    let tracing = builder.shared_memory(SHARED_MEMORY_KB, SHARED_PAGE_KB).start().attempt(failed)?;
    if !tracing.wait_until_enabled(&PIPES, SESSION_TIMEOUT) {
        say!("The {name} is not recorded: no session started within {} s.", SESSION_TIMEOUT.as_secs());
    }
    let (input, output) = (io::stdin(), io::stdout());
    match args.stage {
        Stage::Scanner => {
            let deadline = Instant::now() + args.time;
            scanner::run(&args.roots, deadline, args.max_files, output).map(drop)
        }
        Stage::Cruncher => cruncher::run(input, output).map(drop),
        Stage::Indexer => indexer::run(input).map(|index| {
            let words = index.distinct_words();
            println!("{} files, {words} distinct words, {} damaged on the way", index.documents, index.damaged);
        }),
    }
    .attempt(failed)?;
    drop(tracing);
    Ok(ExitCode::SUCCESS)
}

/// Takes parcels from a pipe into `queue`, and closes the queue at the end.
fn receive(input: impl Read, queue: &Queue<Parcel>, depth_track: &CounterTrack) -> io::Result<()> {
    let mut input = BufReader::new(input);
    let result = loop {
        let parcel = match Parcel::read_from(&mut input) {
            Ok(Some(parcel)) => parcel,
            Ok(None) => break Ok(()),
            Err(e) => break Err(e),
        };
        let id = parcel.id;
        let _receive = slice!(PIPES, "receive", file = id, |e| e.flow(Flow::global(id)));
        let pushed = {
            let _wait = slice!(QUEUES, "wait for room");
            queue.push(parcel)
        };
        match pushed {
            Some(depth) => counter!(QUEUES, depth_track, depth),
            None => break Ok(()),
        }
    };
    queue.close();
    result
}

/// Starts a thread with a name, which is also the name of its track.
fn named<'scope, 'env, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, 'env>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, body)
}

/// Returns the result of a thread. Resumes its panic in this thread.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
