//! Measures Esatto beside its peers and prints one table: `esatto-bench [GROUP...] [--json FILE]`;
//! see README.md.

#![forbid(unsafe_code)]

mod build;
mod c_abi;
mod cargo;
mod fidl;
mod front;
mod options;
mod probes;
mod protozero;
mod query;
mod read;
mod row;
mod rpc;
mod samples;
mod sdk;
mod service;
mod stats;
mod symbols;
mod trace;
mod traced;

use std::process::ExitCode;

use options::{Group, Options};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let Some(options) = Options::parse(std::env::args().skip(1))? else { return Ok(()) };
    let mut rows = Vec::new();
    for &group in &options.groups {
        let found = match group {
            Group::Sdk => sdk::run(&options)?,
            Group::Protozero => protozero::run(&options)?,
            Group::Service => service::run(&options)?,
            Group::CAbi => c_abi::run(&options)?,
            Group::Rpc => rpc::run(&options)?,
            Group::Fidl => fidl::run(&options)?,
            Group::Probes => probes::run(&options)?,
            Group::Front => front::run(&options)?,
            Group::Read => read::run(&options)?,
            Group::Query => query::run_group(&options)?,
            Group::Build => build::run()?,
        };
        row::print(group.name(), &found);
        rows.extend(found);
        // After each group, so that a run that ends early keeps its results.
        if let Some(file) = &options.json {
            row::write_json(file, &rows)?;
        }
    }
    Ok(())
}
