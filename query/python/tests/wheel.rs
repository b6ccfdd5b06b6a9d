//! The wheel is built by maturin, installed by pip into an environment of its own, and tried by the
//! programs in `tests/python`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository is there")
}

/// The folder of build outputs.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is a folder of the target").to_owned()
}

/// Folders of packages from PyPI.
struct Peers {
    folder: PathBuf,
    readers: PathBuf,
    wheel: PathBuf,
}

impl Peers {
    /// Finds the packages.
    fn require() -> Result<Self, String> {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let peers = std::env::var_os("PEERS_DIR").map_or_else(|| home.join(".cache/perfetto-peers"), PathBuf::from);
        if peers.join(".readers").exists() && peers.join(".wheel").exists() {
            return Ok(Self { readers: peers.join("readers"), wheel: peers.join("wheel"), folder: peers });
        }
        Err(missing("no peers: run 'cargo xtask peers wheel'"))
    }
}

/// Returns the reason of a skip. In CI the peers must be there.
fn missing(reason: &str) -> String {
    let ci = std::env::var("CI").unwrap_or_default();
    assert!(ci.is_empty() || ci == "false" || ci == "0", "{reason}");
    reason.to_owned()
}

/// Runs a test that may find out that it cannot run, as in `tests/src/skip.rs`.
fn skip(test: impl FnOnce() -> Result<(), String>) {
    let Err(reason) = test() else { return };
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    eprintln!("SKIP {name}: {reason}");
    if let Some(file) = std::env::var_os("ESATTO_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(file);
        let line = format!("{name}\t{reason}\n");
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the skip is noted");
    }
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    text(&output)
}

/// Removes what Cargo has set for this test: a build that sees it would start from the beginning.
fn without_cargo(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let is_of_test =
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST") || name == "CARGO_CRATE_NAME";
        if is_of_test || name.starts_with("AWS_") || name.starts_with("PYTHON") || name == "VIRTUAL_ENV" {
            command.env_remove(&*name);
        }
    }
    command
}

/// Builds the wheel and installs it. Returns the environment's Python.
fn python(peers: &Peers) -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (wheels, environment) = (tmp.join("wheels"), tmp.join("python"));
        for folder in [&wheels, &environment] {
            let _may_be_missing = std::fs::remove_dir_all(folder);
        }
        let mut maturin = Command::new(peers.wheel.join("bin/maturin"));
        maturin.args(["build", "--locked", "--profile", "dev", "--target-dir"]);
        // The libraries of the peers' Pythons say nothing of the platform's: this wheel stays here.
        maturin.arg(target()).args(["--compatibility", "linux", "--out"]).arg(&wheels);
        run(without_cargo(&mut maturin).current_dir(env!("CARGO_MANIFEST_DIR")));
        let mut found =
            std::fs::read_dir(&wheels).expect("there are wheels").map(|entry| entry.expect("a file").path());
        let (Some(wheel), None) = (found.next(), found.next()) else { panic!("one wheel in {}", wheels.display()) };
        let name = wheel.file_name().expect("it is a file").to_string_lossy().into_owned();
        assert!(name.contains("-cp311-abi3-"), "{name} is for any Python from 3.11 on");
        run(without_cargo(Command::new("python3").args(["-m", "venv"]).arg(&environment)));
        let python = environment.join("bin/python");
        let pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"];
        run(without_cargo(Command::new(&python).args(pip).arg(&wheel)));
        python
    })
}

/// A command with the environment's Python, which also finds the packages of the peers.
fn command(peers: &Peers, name: &str) -> Command {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("wheel-{name}"));
    let _may_be_missing = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let mut command = Command::new(python(peers));
    without_cargo(&mut command);
    let path = std::env::join_paths([&peers.readers, &peers.wheel]).expect("the folders have plain names");
    command.current_dir(&folder).env("PYTHONPATH", path).env("MPLBACKEND", "agg").env("HOME", &folder);
    // Tests must not write beside their programs.
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("JUPYTER_PLATFORM_DIRS", "1");
    command.env("PEERS_DIR", &peers.folder).env("ESATTO_ROOT", root()).env("ESATTO_QUERY", program());
    command
}

/// The program `esatto-query` of the same build.
fn program() -> PathBuf {
    let program = target().join("debug/esatto-query");
    assert!(program.exists(), "{} is missing: cargo build -p esatto-query", program.display());
    program
}

/// Runs a program of `tests/python`.
fn check(name: &str) {
    skip(|| {
        let peers = Peers::require()?;
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/python/{name}.py"));
        let output = run(command(&peers, name).arg(program).arg("-v"));
        let ran = output.lines().find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
        assert!(ran.is_some_and(|ran| ran > 0), "{output}");
        if let Some(reason) = output.lines().find_map(|line| line.split_once("... skipped ")) {
            let reason = reason.1.trim_matches(['\'', '"']);
            return Err(missing(reason));
        }
        Ok(())
    });
}

#[test]
fn rows_equal_those_of_peers() {
    check("peers");
}

#[test]
fn results_become_tables_of_packages() {
    check("conversions");
}

#[test]
fn sessions_open_traces_and_lakes() {
    check("sessions");
}

#[test]
fn mistakes_raise_exceptions() {
    check("mistakes");
}

#[test]
fn queries_can_be_interrupted() {
    check("interrupts");
}

#[test]
fn documentation_is_true() {
    check("documentation");
}

#[test]
fn stubs_agree_with_the_module() {
    skip(|| {
        let peers = Peers::require()?;
        let mut stubtest = command(&peers, "stubs");
        // maturin's library inside of the package; the package has its names.
        let allowed = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wheel-stubs/allowed");
        std::fs::write(&allowed, "esatto\\.esatto\n").expect("a file can be written");
        run(stubtest.args(["-m", "mypy.stubtest", "esatto", "--allowlist"]).arg(allowed));
        let uses = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/types_of_users.py");
        run(command(&peers, "types").args(["-m", "mypy", "--strict", "--cache-dir", "cache"]).arg(uses));
        Ok(())
    });
}
