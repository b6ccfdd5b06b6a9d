//! The simulator as a program; `cargo xtask sim` builds and runs it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use esatto_planted::Bug;
use esatto_sim::found;
use esatto_sim::runner::{self, Finding, WorldKind};
use esatto_sim::state::State;

#[global_allocator]
static ALLOCATOR: esatto_sim::alloc::Counting = esatto_sim::alloc::Counting;

const USAGE: &str = "\
cargo xtask sim [OPTIONS]

  --world NAME     what is simulated: service (default), the tracing service; or rpc, the library of
                   the sockets
  --seeds N        number of seeds (default 100)
  --from S         first seed (default 1)
  --seed S         run this seed only
  --trace          print every event of the seed
  --jobs J         number of threads (default: all cores)
  --state FILE     continue the run that wrote this file: skip its seeds, add those that follow
  --found          run the seeds that once found a bug, in both worlds
  --planted NAME   wake this planted bug (tests/sim/planted/bugs) and search for it;
                   'all': search for each in turn, in its world; 'known': check that each is found by
                   its seed";

#[derive(Debug)]
struct Options {
    world: WorldKind,
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
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    if !cfg!(debug_assertions) {
        eprintln!("the simulator needs debug assertions; run it with cargo xtask sim");
        return ExitCode::FAILURE;
    }
    runner::catch_panics();
    let is_good = match options.planted.as_deref() {
        Some(name) => match bugs() {
            Ok(bugs) => search(name, &bugs, &options),
            Err(error) => {
                eprintln!("{error}");
                false
            }
        },
        None if options.is_found => run_found(),
        None if options.is_single => single(options.world, options.from, "", options.is_traced).is_ok(),
        None => clean(&options),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns `None` if the arguments ask for help.
fn parse(args: &[String]) -> Result<Option<Options>, String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        world: WorldKind::Service,
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
        let number = |text: &String| text.parse::<u64>().map_err(|_| format!("{arg} {text} is not a number"));
        match arg.as_str() {
            "--world" => {
                let name = value()?;
                options.world = WorldKind::named(name).ok_or_else(|| format!("there is no world {name}"))?;
            }
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
            "-h" | "--help" => return Ok(None),
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(Some(options))
}

/// Returns the bugs that this program's sources contain.
fn bugs() -> Result<Vec<Bug>, String> {
    // `cargo xtask sim` sets the variable when it builds the copy that contains the bugs.
    if option_env!("ESATTO_ARE_BUGS_PLANTED").is_none_or(str::is_empty) {
        return Err("this simulator was built without planted bugs; run cargo xtask sim --planted".to_owned());
    }
    Bug::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("planted/bugs"))
}

/// Runs one seed and prints its outcome.
fn single(world: WorldKind, seed: u64, planted: &str, is_traced: bool) -> Result<(), ()> {
    match runner::try_seed(world, seed, planted, is_traced) {
        Ok(tally) => {
            println!("seed {seed}: {}", tally.of(world));
            Ok(())
        }
        Err(finding) => {
            report(world, &finding, planted);
            Err(())
        }
    }
}

/// Runs seeds without a planted bug; none may find anything.
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
    let outcome = runner::run_seeds(options.world, seeds, options.jobs, "", false, state.as_mut());
    outcome.findings.iter().for_each(|finding| report(options.world, finding, ""));
    println!(
        "{} seeds in {:.1} s, {} findings: {}",
        outcome.seeds,
        start.elapsed().as_secs_f64(),
        outcome.findings.len(),
        outcome.tally.of(options.world)
    );
    outcome.findings.is_empty()
}

/// Runs what `--planted NAME` asks for.
fn search(name: &str, bugs: &[Bug], options: &Options) -> bool {
    match name {
        "all" => {
            let found = bugs.iter().filter(|bug| find(bug, options)).count();
            println!("{found} of {} planted bugs found", bugs.len());
            found == bugs.len()
        }
        "known" => {
            let found = bugs.iter().filter(|bug| is_known(bug)).count();
            println!("{found} of {} planted bugs found by their seeds", bugs.len());
            found == bugs.len()
        }
        _ => match bugs.iter().find(|bug| bug.name == name) {
            Some(bug) if options.is_single => {
                single(world_of(bug), options.from, &bug.name, options.is_traced).is_err()
            }
            Some(bug) => find(bug, options),
            None => {
                eprintln!("tests/sim/planted/bugs contains no {name}.bug");
                false
            }
        },
    }
}

/// Returns the world that finds a planted bug.
fn world_of(bug: &Bug) -> WorldKind {
    WorldKind::named(&bug.world).unwrap_or_else(|| panic!("{}.bug: there is no world {}", bug.name, bug.world))
}

/// Runs seeds until one finds a planted bug.
fn find(bug: &Bug, options: &Options) -> bool {
    let seeds = options.from..options.from.saturating_add(options.seeds);
    let outcome = runner::run_seeds(world_of(bug), seeds, options.jobs, &bug.name, true, None);
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

/// Checks that the seed of a planted bug finds it, and by which invariant.
fn is_known(bug: &Bug) -> bool {
    match runner::try_seed(world_of(bug), bug.seed, &bug.name, false) {
        Err(finding) if finding.what.contains(&bug.finding) => return true,
        Err(finding) => {
            println!("{}: found, but not by '{}': {}", bug.name, bug.finding, one_line(&finding.what));
        }
        Ok(_) => println!("{}: not found; search with --planted {} --seeds 1000", bug.name, bug.name),
    }
    false
}

/// Runs the seeds that once found a bug; none may find anything now.
fn run_found() -> bool {
    let seeds = |world, seeds: &'static [(u64, &str)]| seeds.iter().map(move |(seed, _)| (world, *seed));
    let all = seeds(WorldKind::Service, found::SEEDS).chain(seeds(WorldKind::Rpc, found::RPC_SEEDS));
    let findings: Vec<(WorldKind, Finding)> = all
        .clone()
        .filter_map(|(world, seed)| Some((world, runner::try_seed(world, seed, "", false).err()?)))
        .collect();
    findings.iter().for_each(|(world, finding)| report(*world, finding, ""));
    let all = all.count();
    println!("{} of {all} seeds find nothing", all - findings.len());
    findings.is_empty()
}

fn report(world: WorldKind, finding: &Finding, planted: &str) {
    let planted = if planted.is_empty() { String::new() } else { format!(" --planted {planted}") };
    println!("seed {} finds: {}", finding.seed, finding.what);
    println!("    replay: cargo xtask sim{} --seed {}{planted} [--trace]", world.option(), finding.seed);
}

fn one_line(text: &str) -> String {
    let text = text.replace('\n', " ");
    let end = text.char_indices().nth(140).map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}
