//! The program `esatto-query`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    esatto_query::program::run_program(std::env::args_os(), None)
}
