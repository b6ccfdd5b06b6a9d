//! Chores of this workspace, run as `cargo xtask COMMAND`.

#![forbid(unsafe_code)]

mod api;
mod book;
mod bounds;
mod checks;
mod codegen;
mod deb;
mod dependencies;
mod dist;
mod ftrace_schema;
mod imports;
mod install;
mod layers;
mod lint;
mod package;
mod peers;
mod platforms;
mod prose;
mod query;
mod release;
mod shell;
mod sim;
mod soak;
mod system_files;
mod test;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask COMMAND

  test [ARGS...]        install what is missing, run every test, print a summary; with ARGS:
                        only `cargo test ARGS`
  soak [NAME...]        what takes too long for `test`: see `cargo xtask soak --list`
  sim [OPTIONS]         the service, or the RPC library, in a simulated world: see `cargo xtask sim --help`
  lint                  rustfmt, clippy, docs, layers and bounds, warnings as errors
  book [--check]        check the links of all pages, build docs/ as a book in target/book
  bounds                compare docs/bounds.md with the constants in the sources
  layers [CRATE...]     check the order of the crates, and of the modules inside (ARCHITECTURE.md)
  api [--update]        compare the public items of the libraries with tests/public-api
  package [--verify]    pack the crates as for crates.io; --verify builds each from its package
  prose [PATH...]       check the width and the beginnings of comments and pages
  codegen [--check]     generate the code of crates/schema and crates/ports
  install [PART...] [--prefix DIR]
                        the programs with links, man pages and units, and the C library: see `cargo xtask install --help`
  deb [OPTIONS]         packages for Debian: see `cargo xtask deb --help`
  dist [OPTIONS]        static programs in an archive, with checksums and a list of their parts: see --help
  peers [--force] [official] [ui] [protoc] [valgrind] [systemd] [openssh] [cmake] [rustc] [platforms] [typos] [musl] [debian] [nspawn] [packaging] [container] [sbom] [browser] [readers] [producer]
                        install the real Perfetto to test against, and other peers (default: all that tests need)
  tp ARGS...            the real trace processor: SQL on a trace
  ui-check ARGS...      open a trace in the real Perfetto UI, take a screenshot
  bench [GROUP...] [--rounds N] [--json FILE]
                        measure against the peers; --help tells more";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let command = args.next().unwrap_or_default();
    let args: Vec<String> = args.collect();
    // `bench`, `deb`, `dist`, `install` and `sim` have a help of their own.
    let asks_help = args.iter().any(|arg| arg == "--help" || arg == "-h");
    let done = match command.as_str() {
        "test" | "soak" | "lint" | "layers" | "api" | "package" | "prose" | "book" | "bounds" | "codegen" | "peers"
            if asks_help =>
        {
            println!("{USAGE}");
            Ok(())
        }
        "test" => test::run(&args),
        "soak" => soak::run(&args),
        "lint" => lint::run(),
        "sim" => sim::run(&args),
        "layers" => layers::run(&args),
        "api" => api::run(&args),
        "package" => package::run(args.iter().any(|arg| arg == "--verify")),
        "prose" => prose::run(&args),
        "book" => book::run(&args),
        "bounds" => bounds::run(),
        "codegen" => codegen::run(&args),
        "install" => install::run(&args),
        "deb" => deb::run(&args),
        "dist" => dist::run(&args),
        "peers" => peers::run("install", &args),
        "tp" => peers::run("tp", &args),
        "ui-check" => peers::run("ui-check", &args),
        "bench" => bench(&args),
        "" | "help" | "-h" | "--help" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("unknown command '{other}'\n{USAGE}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // `test` has printed its summary, whose last line must stay the last one.
            if !message.is_empty() {
                eprintln!("xtask: {message}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs the bench workspace, which takes the arguments as they are.
fn bench(args: &[String]) -> Result<(), String> {
    let manifest = shell::root().join("bench/Cargo.toml");
    if !manifest.exists() {
        return Err(format!("{} is missing", manifest.display()));
    }
    let mut cargo = shell::cargo();
    cargo.args(["run", "--quiet", "--release", "--manifest-path"]).arg(manifest).arg("--").args(args);
    shell::run(&mut cargo)
}
