//! The simulator as a program; `cargo xtask sim` builds and runs it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use esatto_sim::found;
use esatto_sim::planted::{self, Planted};
use esatto_sim::runner::{self, Finding};
use esatto_sim::state::State;

#[global_allocator]
static ALLOCATOR: esatto_sim::alloc::Counting = esatto_sim::alloc::Counting;

const USAGE: &str = "\
cargo xtask sim [OPTIONS]

  --seeds N        so many seeds (default 100)
  --from S         beginning with this one (default 1)
  --seed S         only this one
  --trace          print every event of it
  --jobs J         threads (default: all cores)
  --state FILE     go on where the run with this file ended: skip the seeds that are done, add those that follow
  --found          the seeds that once found a bug
  --planted NAME   with this bug awake, until it is found; 'all': each in turn; 'known': each with the seed that is
                   known to find it";

#[derive(Debug)]
struct Options {
    from: u64,
    seeds: u64,
    is_single: bool,
    is_traced: bool,
    jobs: usize,
    planted: Option<String>,
    state: Option<PathBuf>,
    is_found: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let options = match parse(&args) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    if !cfg!(debug_assertions) {
        eprintln!("the simulator must be built with debug assertions: cargo xtask sim");
        return ExitCode::FAILURE;
    }
    runner::catch_panics();
    let is_good = match options.planted.as_deref() {
        Some("all") => find_all(&options),
        Some("known") => find_known(),
        Some(name) => match planted::named(name) {
            Some(bug) if options.is_single => single(options.from, bug.name, options.is_traced).is_err(),
            Some(bug) => find(bug, &options),
            None => {
                eprintln!("no bug is called {name}");
                false
            }
        },
        None if options.is_found => run_found(),
        None if options.is_single => single(options.from, "", options.is_traced).is_ok(),
        None => clean(&options),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(args: &[String]) -> Result<Options, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        from: 1,
        seeds: 100,
        is_single: false,
        is_traced: false,
        jobs,
        planted: None,
        state: None,
        is_found: false,
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{arg} {text} is no number"));
        match arg.as_str() {
            "--seeds" => options.seeds = number(value()?)?,
            "--from" => options.from = number(value()?)?,
            "--seed" => {
                (options.from, options.seeds, options.is_single) = (number(value()?)?, 1, true);
            }
            "--jobs" => options.jobs = number(value()?)? as usize,
            "--planted" => options.planted = Some(value()?.clone()),
            "--state" => options.state = Some(value()?.into()),
            "--found" => options.is_found = true,
            "--trace" => options.is_traced = true,
            _ => return Err(format!("the simulator knows no {arg}")),
        }
    }
    Ok(options)
}

fn single(seed: u64, planted: &'static str, is_traced: bool) -> Result<(), ()> {
    match runner::try_seed(seed, planted, is_traced) {
        Ok(tally) => {
            println!("seed {seed}: {tally}");
            Ok(())
        }
        Err(finding) => {
            report(&finding, planted);
            Err(())
        }
    }
}

fn clean(options: &Options) -> bool {
    let start = Instant::now();
    let seeds = options.from..options.from.saturating_add(options.seeds);
    let mut state = match options.state.clone().map(State::load).transpose() {
        Ok(state) => state,
        Err(error) => {
            eprintln!("{error}");
            return false;
        }
    };
    if let Some(state) = &state {
        println!("{} of {} seeds are done", state.done_of(&seeds), options.seeds);
    }
    let outcome = runner::run_seeds(seeds, options.jobs, "", false, state.as_mut());
    outcome.findings.iter().for_each(|finding| report(finding, ""));
    println!(
        "{} seeds in {:.1} s, {} findings: {}",
        outcome.seeds,
        start.elapsed().as_secs_f64(),
        outcome.findings.len(),
        outcome.tally
    );
    outcome.findings.is_empty()
}

/// Searches for a planted bug.
fn find(bug: &Planted, options: &Options) -> bool {
    let seeds = options.from..options.from.saturating_add(options.seeds);
    let outcome = runner::run_seeds(seeds, options.jobs, bug.name, true, None);
    match outcome.findings.first() {
        Some(finding) => {
            println!("{:32} seed {:4}: {}", bug.name, finding.seed, one_line(&finding.what));
            true
        }
        None => {
            println!("{:32} NOT FOUND in {} seeds", bug.name, outcome.seeds);
            false
        }
    }
}

fn find_all(options: &Options) -> bool {
    if !planted::can_be_woken() {
        return false;
    }
    let found = planted::ALL.iter().filter(|bug| find(bug, options)).count();
    println!("{found} of {} planted bugs found", planted::ALL.len());
    found == planted::ALL.len()
}

/// Each bug must be found by the seed that is known to find it.
fn find_known() -> bool {
    if !planted::can_be_woken() {
        return false;
    }
    let missed: Vec<&str> = planted::ALL
        .iter()
        .filter(|bug| runner::try_seed(bug.found_by, bug.name, false).is_ok())
        .map(|bug| bug.name)
        .collect();
    println!("{} of {} planted bugs found by their seeds", planted::ALL.len() - missed.len(), planted::ALL.len());
    missed.iter().for_each(|name| println!("not found: {name}; look with --planted {name} --seeds 1000"));
    missed.is_empty()
}

/// Each seed that found a bug must find nothing now.
fn run_found() -> bool {
    let findings: Vec<Finding> =
        found::SEEDS.iter().filter_map(|(seed, _)| runner::try_seed(*seed, "", false).err()).collect();
    findings.iter().for_each(|finding| report(finding, ""));
    println!("{} of {} seeds find nothing any more", found::SEEDS.len() - findings.len(), found::SEEDS.len());
    findings.is_empty()
}

fn report(finding: &Finding, planted: &str) {
    let planted = if planted.is_empty() { String::new() } else { format!(" --planted {planted}") };
    println!("seed {} finds: {}", finding.seed, finding.what);
    println!("    replay: cargo xtask sim --seed {}{planted} [--trace]", finding.seed);
}

fn one_line(text: &str) -> String {
    let text = text.replace('\n', " ");
    let end = text.char_indices().nth(140).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}
