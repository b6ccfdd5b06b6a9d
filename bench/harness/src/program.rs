//! A measured program: its command line and its results.

use std::io::{Read, Write};
use std::time::Duration;

use crate::batch::{Case, Plan, Samples, sample, sample_pair};

/// What a measured program does.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// All cases; the first one is measured on two threads, too.
    pub cases: &'static [Case],
    /// Connects, and returns when the category `bench` is recorded.
    pub start: fn(),
    /// Sees to it that all this thread recorded gets to the service. Returns the number of events it records itself.
    pub finish: fn() -> u64,
}

/// Runs `PROGRAM time BATCHES PAUSE_US`, which measures every case, or `PROGRAM count CASE OPERATIONS PAUSE_US`, which only does so many
/// operations of one case. Then waits for the end of stdin, so that the session can be stopped while the process lives.
///
/// # Panics
///
/// On a wrong command line or if the results cannot be written.
pub fn run(program: &Program) {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    (program.start)();
    let mut out = std::io::stdout().lock();
    let mut events = 0;
    match args[..] {
        ["time", batches, pause] => {
            let plan = Plan { batches: number(batches) as usize, pause: Duration::from_micros(number(pause)) };
            for (index, case) in program.cases.iter().enumerate() {
                let one = sample(case, plan);
                events += Samples::operations(case, plan) * case.events;
                report(&mut out, case.name, &one.wall);
                if index == 0 {
                    let two = sample_pair(case, plan);
                    events += 2 * Samples::operations(case, plan) * case.events;
                    report(&mut out, &format!("{}, CPU time", case.name), &one.cpu);
                    report(&mut out, &format!("{}, two threads", case.name), &two.wall);
                    report(&mut out, &format!("{}, two threads, CPU time", case.name), &two.cpu);
                }
            }
        }
        ["count", name, operations, pause] => {
            let case = program.cases.iter().find(|case| case.name == name).expect("a case of that name");
            let mut left = number(operations);
            while left > 0 {
                let now = left.min(case.ops);
                (case.run)(now);
                events += now * case.events;
                left -= now;
                std::thread::sleep(Duration::from_micros(number(pause)));
            }
        }
        _ => panic!("time BATCHES PAUSE_US | count CASE OPERATIONS PAUSE_US"),
    }
    events += (program.finish)();
    writeln!(out, "{{\"events\": {events}}}").expect("stdout takes the results");
    out.flush().expect("stdout takes the results");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn report(out: &mut impl Write, case: &str, ns: &[f64]) {
    let ns: Vec<String> = ns.iter().map(|ns| format!("{ns:.2}")).collect();
    writeln!(out, "{{\"case\": \"{case}\", \"ns\": [{}]}}", ns.join(",")).expect("stdout takes the results");
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}
