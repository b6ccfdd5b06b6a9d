//! The program `traced`: the tracing service.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    esatto_daemon::traced(std::env::args_os().skip(1))
}
