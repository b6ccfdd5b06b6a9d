//! Group `build`: what an SDK adds to the build of a program.

use std::path::Path;
use std::time::Instant;

use crate::cargo;
use crate::row::{Of, Row};

const GROUP: &str = "build";
const PEER: &str = "perfetto-sdk 1.2.1";

/// Cost of a clean build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    wall_s: f64,
    pub(crate) cpu_s: f64,
    stripped_kb: f64,
    pub(crate) crates: f64,
}

/// How it is built.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    name: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

/// This workspace's profile: thin LTO, one codegen unit, no unwinding.
pub(crate) const AS_SHIPPED: Profile =
    Profile { name: "as shipped", environment: &[("CARGO_PROFILE_RELEASE_STRIP", "symbols")] };

/// Symbols are stripped in both, so that sizes are those of what runs.
const PROFILES: [Profile; 2] = [
    AS_SHIPPED,
    Profile {
        name: "cargo's default",
        environment: &[
            ("CARGO_PROFILE_RELEASE_STRIP", "symbols"),
            ("CARGO_PROFILE_RELEASE_LTO", "false"),
            ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"),
            ("CARGO_PROFILE_RELEASE_PANIC", "unwind"),
        ],
    },
];

/// Ours, with the reach of the added size in KB: a program that the system's service records, and
/// one that also records itself. Both have default features.
const OURS: [(&str, &str, f64); 2] =
    [("system", "bench-user-esatto", 220.0), ("system and in-process", "bench-user-esatto-both", 480.0)];

/// Reach for the CPU time that Esatto adds to a user's clean build: it is felt in every CI job.
const MAX_ADDED_CPU_S: f64 = 15.0;
const MAX_CRATES: f64 = 15.0;

pub(crate) fn run() -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for profile in PROFILES {
        let none = measure("bench-user-none", "bench-user-none", profile)?;
        let theirs = measure("bench-user-perfetto", "perfetto-sdk", profile)
            .inspect_err(|error| eprintln!("bench: without {PEER}: {error}"))
            .ok();
        for (what, package, max_added_kb) in OURS {
            let ours = measure(package, "esatto", profile)?;
            let row = |case: &str, unit, value: &dyn Fn(Cost) -> f64| {
                let case = format!("{}, {what}: {case}", profile.name);
                Row::new(GROUP, case, unit, value(ours)).beside(PEER, theirs.map(value))
            };
            rows.extend([
                // The added cost is the difference to an empty program: with link-time optimisation
                // even that program optimises the standard library.
                row("added to a clean release build, CPU time", "s", &|cost| cost.cpu_s - none.cpu_s)
                    .reach(Of::Value, MAX_ADDED_CPU_S),
                row("clean release build, CPU time", "s", &|cost| cost.cpu_s),
                row("clean release build, wall time", "s", &|cost| cost.wall_s),
                row("crates in the dependency tree", "crates", &|cost| cost.crates).reach(Of::Value, MAX_CRATES),
                row("stripped program", "KB", &|cost| cost.stripped_kb),
                row("added to a stripped program", "KB", &|cost| cost.stripped_kb - none.stripped_kb)
                    .reach(Of::Value, max_added_kb),
            ]);
        }
        let floor = |case: &str, unit, value| Row::new(GROUP, format!("floor: {}, {case}", profile.name), unit, value);
        rows.push(floor("clean release build of an empty program, CPU time", "s", none.cpu_s));
        rows.push(floor("stripped empty program", "KB", none.stripped_kb));
    }
    Ok(rows)
}

/// Builds `package` from nothing and counts the crates that `sdk` needs, itself included.
pub(crate) fn measure(package: &str, sdk: &str, profile: Profile) -> Result<Cost, String> {
    eprintln!("bench: build: {package}, {}", profile.name);
    // Downloads are not measured.
    run_cargo(cargo::command().args(["fetch", "--quiet"]))?;
    let target = tempfile::tempdir().map_err(|error| format!("temporary folder: {error}"))?;
    let cpu = children_cpu_s()?;
    let wall = Instant::now();
    run_cargo(
        cargo::command()
            .args(["build", "--quiet", "--release", "--offline", "-p", package, "--target-dir"])
            .arg(target.path())
            .envs(profile.environment.iter().copied()),
    )?;
    let wall_s = wall.elapsed().as_secs_f64();
    let cpu_s = children_cpu_s()? - cpu;
    let program = target.path().join("release").join(package);
    let stripped = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?.len();
    Ok(Cost { wall_s, cpu_s, stripped_kb: stripped as f64 / 1000.0, crates: count_crates(package, sdk)? })
}

fn run_cargo(command: &mut std::process::Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("cargo {:?}: {status}", command.get_args().next())) }
}

/// Distinct crates, normal and build dependencies.
fn count_crates(package: &str, sdk: &str) -> Result<f64, String> {
    let output = cargo::command()
        .args(["tree", "--offline", "--no-dedupe", "--prefix", "none", "-e", "normal,build", "-p", package])
        .output()
        .map_err(|error| format!("cargo tree: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let name_and_version = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut crates: Vec<String> = text.lines().filter(|line| !line.is_empty()).map(name_and_version).collect();
    crates.sort_unstable();
    crates.dedup();
    if !crates.iter().any(|name| name.split(' ').next() == Some(sdk)) {
        return Err(format!("cargo tree names no {sdk} among the dependencies of {package}"));
    }
    // The program itself is not the SDK's.
    Ok((crates.len() - usize::from(package != sdk)) as f64)
}

/// CPU time of all children that have ended, in seconds (`/proc/self/stat`, fields 16 and 17).
fn children_cpu_s() -> Result<f64, String> {
    /// `USER_HZ`, the same on all of Linux.
    const TICKS_PER_S: f64 = 100.0;
    let file = Path::new("/proc/self/stat");
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    // The second field, the program's name, may hold spaces; it ends with the last parenthesis.
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS_PER_S)
}
