//! The program `traced_probes`: the data sources of the machine.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    esatto_probes::traced_probes(std::env::args_os().skip(1))
}
