//! `cargo xtask soak`: checks that take too long to run for every change.

use crate::shell;
use crate::test::{Run, Skips, Tally, libtest};
use std::path::PathBuf;
use std::time::Instant;

type Step = fn(&mut Tally, &Skips) -> Result<(), String>;

/// The steps: name, description, function.
const STEPS: &[(&str, &str, Step)] = &[
    ("ignored", "run the tests marked #[ignore = \"soak…\"]", ignored),
    ("loom", "run the loom models with up to ESATTO_LOOM_PREEMPTIONS (5) preemptions", loom),
    (
        "query",
        "check and test the workspace query/, whose dependencies take minutes to compile, with ESATTO_QUERY_FUZZ_SEEDS (200) random queries",
        query,
    ),
    (
        "conformance",
        "compare generated code with prost's for ESATTO_CONFORMANCE_SEEDS (5) sets of schemas",
        conformance,
    ),
    (
        "sim",
        "simulate ESATTO_SIM_SEEDS (20000) seeds of each world, other ones every hour, and search for each planted bug",
        sim,
    ),
    (
        "asan",
        "run the SDK under AddressSanitizer for ESATTO_STRESS_SECONDS (60), with many signals and forks, and misuse the C library",
        asan,
    ),
    ("clock", "compare timestamps with CLOCK_BOOTTIME for ESATTO_CLOCK_SECONDS (180)", clock),
    (
        "platforms",
        "compile the SDK for each system of ESATTO_PLATFORMS (all), and run a static program",
        crate::platforms::run,
    ),
    (
        "compatibility",
        "build the book, and check each feature of all crates, and all crates with the oldest compiler",
        |tally, _| crate::checks::compatibility(tally),
    ),
    ("packages", "pack the crates as for crates.io, and build each from its package", packages),
    ("deb", "make the Debian packages twice, compare the bytes, and let lintian judge them", crate::release::deb),
    (
        "dist",
        "make the static programs twice, compare the bytes, run one, check the list of parts, and build the image",
        crate::release::dist,
    ),
    ("dependencies", "check licences, versions, sources and advisories with cargo-deny", crate::dependencies::run),
    ("fuzz", "run libFuzzer with AddressSanitizer, ESATTO_FUZZ_SECONDS (60) for each target of fuzz/", fuzz),
];

/// Runs the steps that `args` names, or all.
///
/// # Errors
///
/// A name is unknown, or a step failed; the summary names the failures.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--list") {
        STEPS.iter().for_each(|(name, what, _)| println!("{name:14} {what}"));
        return Ok(());
    }
    if let Some(unknown) = args.iter().find(|arg| STEPS.iter().all(|(name, ..)| name != arg)) {
        return Err(format!("unknown step '{unknown}'; cargo xtask soak --list names all steps"));
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

/// Runs the models with more preemptions than `cargo xtask test` allows.
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
    // A forked child cannot free the memory of its parent's other threads: no leak checks there.
    for (tests, options) in [(&["stress", "signals"][..], ""), (&["forks"], "detect_leaks=0")] {
        let mut cargo = shell::cargo();
        cargo.args(["test", "--release", "--target", HOST, "-p", "esatto"]);
        cargo.args(tests.iter().flat_map(|test| ["--test", test])).args(["--", "--nocapture"]);
        cargo.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address -Cdebug-assertions");
        cargo.env("ASAN_OPTIONS", options).env("CARGO_TARGET_DIR", shell::target_dir().join("asan"));
        cargo.env("ESATTO_STRESS_SECONDS", std::env::var("ESATTO_STRESS_SECONDS").unwrap_or_else(|_| "60".into()));
        tally.add(libtest::run(&mut cargo, Run { label: "asan" })?);
    }
    // This test compiles the C library and its users itself.
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

/// Checks more schemas than `cargo xtask test`, and other ones every hour.
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

/// Simulates other seeds every hour.
fn sim(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    let seeds = std::env::var("ESATTO_SIM_SEEDS").unwrap_or_else(|_| "20000".into());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let from = (now.as_secs() / 3600 * 1_000_000).to_string();
    let args = |args: &[&str]| args.iter().map(|&arg| arg.to_owned()).collect::<Vec<String>>();
    tally.check("simulation", crate::sim::run(&args(&["--seeds", &seeds, "--from", &from])));
    let rpc = ["--world", "rpc", "--seeds", &seeds, "--from", &from];
    tally.check("simulation of the RPC library", crate::sim::run(&args(&rpc)));
    tally.check("planted bugs", crate::sim::run(&args(&["--planted", "all", "--seeds", "1000"])));
    Ok(())
}

fn query(tally: &mut Tally, skips: &Skips) -> Result<(), String> {
    tally.check("clippy of query", crate::query::clippy());
    crate::query::test(tally, skips.file())
}

fn packages(tally: &mut Tally, _: &Skips) -> Result<(), String> {
    tally.check("packages", crate::package::run(true));
    Ok(())
}

/// Builds the fuzzers as cargo-fuzz does, which need not be installed, and runs each for a while.
/// Findings are in `fuzz/artifacts`; move a finding to `fuzz/corpus/TARGET` when it is fixed.
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

/// Returns the names of the `.rs` files in a folder.
fn names(folder: &std::path::Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(PathBuf::from(entry.ok()?.file_name()).file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}
