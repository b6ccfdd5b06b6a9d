//! `cargo xtask soak`: what takes too long for every change.

use crate::shell;
use crate::test::{Run, Skips, Tally, libtest};
use std::path::PathBuf;
use std::time::Instant;

type Step = fn(&mut Tally, &Skips) -> Result<(), String>;

/// Name, what it does.
const STEPS: &[(&str, &str, Step)] = &[
    ("ignored", "tests marked #[ignore = \"soak…\"]", ignored),
    ("mutations", "a hundred times the mutations of `test` for every parser of foreign bytes", mutations),
    ("loom", "models of the shared memory and the SDK with up to ESATTO_LOOM_PREEMPTIONS (5) preemptions", loom),
    ("conformance", "generated code against prost's, ESATTO_CONFORMANCE_SEEDS (5) times as many schemas", conformance),
    ("sim", "the simulator, ESATTO_SIM_SEEDS (20000) seeds that differ every hour, and each planted bug anew", sim),
    (
        "asan",
        "everything of the SDK at once under AddressSanitizer, for ESATTO_STRESS_SECONDS (60), storms of signals and forks, and misuse of the C library",
        asan,
    ),
    ("clock", "timestamps beside CLOCK_BOOTTIME, for ESATTO_CLOCK_SECONDS (180)", clock),
    (
        "platforms",
        "the SDK for each system of ESATTO_PLATFORMS (all), and a static program that runs",
        crate::platforms::run,
    ),
    ("fuzz", "libFuzzer with AddressSanitizer, ESATTO_FUZZ_SECONDS (60) for each target of fuzz/", fuzz),
];

/// Runs the steps named in `args`, or all.
///
/// # Errors
///
/// An unknown name, or something failed; the summary says what.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--list") {
        STEPS.iter().for_each(|(name, what, _)| println!("{name:11} {what}"));
        return Ok(());
    }
    if let Some(unknown) = args.iter().find(|arg| STEPS.iter().all(|(name, ..)| name != arg)) {
        return Err(format!("soak knows no '{unknown}' (see --list)"));
    }
    let start = Instant::now();
    let skips = Skips::new()?;
    let mut tally = Tally::default();
    for (name, what, step) in STEPS {
        if args.is_empty() || args.iter().any(|arg| arg == name) {
            shell::heading(what);
            step(&mut tally, &skips)?;
        }
    }
    tally.skipped(skips.collect()?);
    tally.print(start.elapsed());
    if tally.is_good() { Ok(()) } else { Err(String::new()) }
}

fn ignored(tally: &mut Tally, skips: &Skips) -> Result<(), String> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--workspace", "--no-fail-fast", "--", "--ignored"]);
    cargo.env("ESATTO_SKIPS", skips.file()).env("ESATTO_BIN", shell::target_dir().join("debug/esatto"));
    tally.add(libtest::run(&mut cargo, Run { label: "ignored" })?);
    Ok(())
}

fn mutations(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--release", "-p", "esatto-tests", "--test", "fuzz"]);
    cargo.env("ESATTO_FUZZ_ROUNDS", "200000");
    tally.add(libtest::run(&mut cargo, Run { label: "mutations" })?);
    Ok(())
}

/// The models with more preemptions than for every change.
fn loom(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    let bound = std::env::var("ESATTO_LOOM_PREEMPTIONS").unwrap_or_else(|_| "5".into());
    for package in ["esatto-shm", "esatto-instances"] {
        let mut cargo = crate::checks::loom(package);
        cargo.arg("models::").env("LOOM_MAX_PREEMPTIONS", &bound);
        tally.add(libtest::run(&mut cargo, Run { label: "loom" })?);
    }
    Ok(())
}

fn asan(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    const HOST: &str = "x86_64-unknown-linux-gnu";
    // A forked child leaks the memory of its parent's other threads: skip leak checks there.
    for (tests, options) in [(&["stress", "signals"][..], ""), (&["forks"], "detect_leaks=0")] {
        let mut cargo = shell::cargo();
        cargo.args(["test", "--release", "--target", HOST, "-p", "esatto"]);
        cargo.args(tests.iter().flat_map(|test| ["--test", test])).args(["--", "--nocapture"]);
        cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address -Cdebug-assertions");
        cargo.env("ASAN_OPTIONS", options).env("CARGO_TARGET_DIR", shell::target_dir().join("asan"));
        cargo.env("ESATTO_STRESS_SECONDS", std::env::var("ESATTO_STRESS_SECONDS").unwrap_or_else(|_| "60".into()));
        tally.add(libtest::run(&mut cargo, Run { label: "asan" })?);
    }
    // These compile the C library, and what uses it, by themselves.
    let mut cargo = shell::cargo();
    cargo.args(["test", "-p", "esatto-capi", "--test", "sound"]).env("ESATTO_CAPI_ASAN", "1");
    tally.add(libtest::run(&mut cargo, Run { label: "asan of C" })?);
    Ok(())
}

fn clock(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--release", "-p", "esatto", "--test", "timestamps_follow_the_clock"]);
    cargo.env("ESATTO_CLOCK_SECONDS", std::env::var("ESATTO_CLOCK_SECONDS").unwrap_or_else(|_| "180".into()));
    tally.add(libtest::run(&mut cargo, Run { label: "clock" })?);
    Ok(())
}

/// More schemas than for every change, and others each time: the seeds follow the hour.
fn conformance(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    let seeds: u64 = std::env::var("ESATTO_CONFORMANCE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let first = now.as_secs() / 3600 * 1000;
    for seed in first..first + seeds {
        println!("ESATTO_CONFORMANCE_SEED={seed}");
        let mut cargo = shell::cargo();
        cargo.args(["test", "-p", "esatto-conformance", "--test", "conformance"]);
        cargo.env("ESATTO_CONFORMANCE_SEED", seed.to_string());
        cargo.env("ESATTO_CONFORMANCE_SCHEMAS", "8").env("ESATTO_CONFORMANCE_VALUES", "100");
        tally.add(libtest::run(&mut cargo, Run { label: "conformance" })?);
    }
    Ok(())
}

/// Other seeds each time.
fn sim(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    let seeds = std::env::var("ESATTO_SIM_SEEDS").unwrap_or_else(|_| "20000".into());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let from = (now.as_secs() / 3600 * 1_000_000).to_string();
    let args = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect::<Vec<String>>();
    tally.check("simulation", crate::sim::run(&args(&["--seeds", &seeds, "--from", &from])));
    tally.check("planted bugs", crate::sim::run(&args(&["--planted", "all", "--seeds", "1000"])));
    Ok(())
}

/// Builds the fuzzers as cargo-fuzz does (which need not be installed) and runs each for a while.
/// What they find lies in `fuzz/artifacts`; move it to `fuzz/corpus/TARGET` when it is fixed.
fn fuzz(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address -Cdebug-assertions -Ccodegen-units=1";
    const HOST: &str = "x86_64-unknown-linux-gnu";
    let fuzz = shell::root().join("fuzz");
    let target_dir = fuzz.join("target");
    let mut build = shell::cargo();
    build.args(["build", "--release", "--bins", "--target", HOST, "--manifest-path"]).arg(fuzz.join("Cargo.toml"));
    build.env("CARGO_TARGET_DIR", &target_dir).env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", FLAGS);
    let built = shell::run(&mut build);
    let failed = built.is_err();
    tally.check("build of the fuzzers", built);
    if failed {
        return Ok(());
    }
    let seconds = std::env::var("ESATTO_FUZZ_SECONDS").unwrap_or_else(|_| "60".into());
    for name in names(&fuzz.join("fuzz_targets"))? {
        let corpus = fuzz.join("target/corpus").join(&name);
        let artifacts = fuzz.join("artifacts").join(&name);
        let own = fuzz.join("corpus").join(&name);
        for folder in [&corpus, &artifacts, &own] {
            std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        let mut fuzzer = std::process::Command::new(target_dir.join(HOST).join("release").join(&name));
        fuzzer.arg(format!("-max_total_time={seconds}")).args(["-timeout=10", "-rss_limit_mb=2048", "-verbosity=0"]);
        fuzzer.arg(format!("-artifact_prefix={}/", artifacts.display())).arg(&corpus).arg(&own);
        tally.check(&format!("fuzzer {name}"), shell::run(&mut fuzzer));
    }
    Ok(())
}

/// The names of the `.rs` files in a folder.
fn names(folder: &std::path::Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name()).file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
