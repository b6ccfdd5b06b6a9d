//! The `esatto` command.
//!
//! ```text
//! demo ──┬─ recorder ─ output    enable, drain, flush, stop, read; a trace file
//! record ┘     └─ private        a service of our own on private sockets, for the demo and commands
//! traced ── esatto-daemon on the standard sockets
//! info ──── esatto-trace
//! ```

#![forbid(unsafe_code)]

mod args;
mod config;
mod demo;
mod failure;
mod info;
mod output;
mod private;
mod progress;
mod record;
mod recorder;
mod signals;
mod traced;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    if let Some(program) = args.next().and_then(|name| traced::program_named(&name)) {
        return program(args.collect());
    }
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::DemoStage(args) => demo::run_stage(&args),
        Command::Record(args) => record::run(&args),
        Command::Traced(args) => traced::run(args),
        Command::Info(args) => info::run(&args),
    };
    result.unwrap_or_else(|failure| {
        eprintln!("esatto: {failure}");
        ExitCode::FAILURE
    })
}
