//! The program `esatto-cluster`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    esatto_cluster::program::run_program()
}
