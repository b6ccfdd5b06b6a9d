//! A measured program: its command line and its results.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::time::Duration;

use crate::batch::{Batch, Case, Plan, Samples, sample, sample_flood};
use crate::operation::Operation;

/// A measured program.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// All cases.
    pub cases: &'static [Case],
    /// Connects, and returns when the category `bench` is recorded.
    pub start: fn(&Options),
    /// Ends it.
    pub finish: fn() -> Finished,
}

/// How to measure: `--NAME VALUE` on the command line.
#[derive(Debug, Default)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// The argument after `--NAME`, if it was given.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Result of a library at the end of a run.
#[derive(Debug, Default)]
pub struct Finished {
    /// Events that `finish` recorded itself.
    pub events: u64,
    /// The trace, if the program was the one to record it.
    pub trace: Option<Vec<u8>>,
}

const USAGE: &str =
    "[--NAME VALUE]... time BATCHES PAUSE_US | count CASE OPERATIONS PAUSE_US | flood THREADS OPERATIONS";

/// Runs a program:
///
/// - `time BATCHES PAUSE_US` measures every case on one thread and on two: a line `{"case": …,
///   "threads": …, "wall": […], "cpu": […]}` for each, with ns per operation of each batch;
/// - `count CASE OPERATIONS PAUSE_US` only does so many operations of one case;
/// - `flood THREADS OPERATIONS` does so many slice pairs on each thread without a pause, and prints
///   a line as above.
///
/// The last line is `{"events": …}`, how many were recorded. With `--trace FILE` the trace goes
/// there. Then it waits for the end of stdin, so that the session can be stopped while the process
/// lives.
///
/// # Panics
///
/// On a wrong command line or if the results cannot be written.
pub fn run(program: &Program) {
    let mut args = std::env::args().skip(1).peekable();
    let mut options = Options::default();
    while let Some(name) = args.next_if(|arg| arg.starts_with("--")) {
        options.0.insert(name[2..].to_owned(), args.next().expect(USAGE));
    }
    let args: Vec<String> = args.collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    (program.start)(&options);
    let mut events = match args[..] {
        ["time", batches, pause] => time(program, Plan { batches: number(batches) as usize, pause: us(pause) }),
        ["count", name, operations, pause] => count(program.case(name), number(operations), us(pause)),
        ["flood", threads, operations] => {
            flood(program.case(Operation::Pair.name()), number(threads) as usize, number(operations))
        }
        _ => panic!("{USAGE}"),
    };
    let finished = (program.finish)();
    events += finished.events;
    if let (Some(file), Some(trace)) = (options.get("trace"), finished.trace) {
        std::fs::write(file, trace).expect("the trace can be written");
    }
    say(&format!("{{\"events\": {events}}}"));
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

impl Program {
    fn case(&self, name: &str) -> &Case {
        self.cases.iter().find(|case| case.name == name).expect("a case of that name")
    }
}

fn time(program: &Program, plan: Plan) -> u64 {
    let mut events = 0;
    for case in program.cases {
        for threads in [1, 2] {
            report(case.name, threads, &sample(case, plan, threads));
            events += threads as u64 * Samples::operations(case, plan) * case.events;
        }
    }
    events
}

fn count(case: &Case, operations: u64, pause: Duration) -> u64 {
    let mut left = operations;
    while left > 0 {
        let now = left.min(case.ops);
        (case.run)(&mut Batch::of(now));
        left -= now;
        std::thread::sleep(pause);
    }
    operations * case.events
}

fn flood(case: &Case, threads: usize, operations: u64) -> u64 {
    report(case.name, threads, &sample_flood(case, operations, threads));
    threads as u64 * operations * case.events
}

fn report(case: &str, threads: usize, samples: &Samples) {
    let list = |ns: &[f64]| ns.iter().map(|ns| format!("{ns:.2}")).collect::<Vec<_>>().join(",");
    let (wall, cpu) = (list(&samples.wall), list(&samples.cpu));
    say(&format!("{{\"case\": \"{case}\", \"threads\": {threads}, \"wall\": [{wall}], \"cpu\": [{cpu}]}}"));
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("stdout takes the results");
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

fn us(text: &str) -> Duration {
    Duration::from_micros(number(text))
}
