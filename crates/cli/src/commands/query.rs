//! The commands `esatto query`, `esatto export` and `esatto lake`: run the program `esatto-query`,
//! which is built and installed apart because its engine is large.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::args::Query;
use crate::failure::Failure;

const PROGRAM: &str = "esatto-query";

pub(crate) fn run(args: &Query) -> Result<ExitCode, Failure> {
    run_program(None, args, "cannot answer queries")
}

pub(crate) fn run_export(args: &Query) -> Result<ExitCode, Failure> {
    run_program(Some("export"), args, "cannot export traces")
}

pub(crate) fn run_lake(args: &Query) -> Result<ExitCode, Failure> {
    run_program(Some("lake"), args, "cannot look at lakes")
}

fn run_program(subcommand: Option<&str>, args: &Query, failure: &'static str) -> Result<ExitCode, Failure> {
    // Both programs are mostly installed together.
    for program in beside_this_program().into_iter().chain([PathBuf::from(PROGRAM)]) {
        // It returns only if the program cannot be started.
        let error = Command::new(&program).args(subcommand).args(&args.args).exec();
        if error.kind() != io::ErrorKind::NotFound {
            return Err(Failure::new(format!("cannot run {}", program.display()), error));
        }
    }
    let hint = "it is installed apart: run `cargo install --path query/query` in a copy of Esatto's repository";
    Err(Failure::new(failure, format!("{PROGRAM} is neither beside esatto nor in PATH")).hint(hint))
}

fn beside_this_program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.parent()?.join(PROGRAM);
    path.is_file().then_some(path)
}
