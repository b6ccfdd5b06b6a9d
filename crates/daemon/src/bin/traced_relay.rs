//! The program `traced_relay`: lets programs of this machine be recorded by the service of another
//! one.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    esatto_daemon::traced_relay(std::env::args_os().skip(1))
}
