//! The command `esatto`.
//!
//! ```text
//! demo ──┬─ recording session ─ trace output   enable, drain, flush, stop, read; a trace file
//! record ┘         └─ private service          a service on private sockets, for the demo and commands
//! traced ── esatto-daemon on the standard sockets
//! probes ── esatto-probes, the data sources of the machine
//! relay ─── esatto-daemon's relay to the service of another machine
//! list ──── programs of a service
//! sessions, snapshot, top ─ sessions of a service
//! info, check, dump ─ esatto-inputs, esatto-trace
//! query, export, lake ─ the program esatto-query
//! report ── esatto-report
//! view, ui-bridge ── esatto-ui-server, a browser
//! convert ─ esatto-convert
//! cut, merge, redact ─ esatto-edit
//! config ── text format, JSON, rules for configs
//! doctor ── sockets, rights and limits of this machine
//! perfetto, trigger_perfetto ─ the command lines of Perfetto's programs
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_sign_loss))]

mod args;
mod awaited_programs;
mod browser;
mod category_patterns;
mod commands;
mod config;
mod console;
mod damage;
mod doctor;
mod empty_recording;
mod failure;
mod machine_losses;
mod machine_service;
mod machine_sources;
mod missed_programs;
mod missing_trigger;
mod perfetto;
mod presets;
mod private_service;
mod process_name;
mod producer_filter;
mod program_names;
mod progress;
mod quantities;
mod recording_session;
mod result_file;
mod ring_size;
mod service_connection;
mod service_errors;
mod service_state;
mod session_list;
mod shell_word;
mod snapshots;
mod start_time;
mod stop_signal;
mod table;
mod terminal;
mod trace_config;
mod trace_content;
mod trace_input;
mod trace_output;
mod trace_point;
mod unimplemented_sources;
mod unreadable_packets;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::commands::{
    check, completions, convert, cut, demo, dump, info, list, man, merge, query, record, redact, report, sessions,
    snapshot, top, trigger, ui_bridge, view,
};
use crate::console::say;

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    if let Some(program) = args.next().and_then(|name| program_names::program_named(&name)) {
        return program(args.collect());
    }
    let result = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::DemoStage(args) => demo::run_stage(&args),
        Command::Record(args) => record::run(&args),
        Command::Traced(args) => Ok(esatto_daemon::traced_as("esatto traced", args.args)),
        Command::Probes(args) => Ok(esatto_probes::traced_probes_as("esatto probes", args.args)),
        Command::Relay(args) => Ok(esatto_daemon::traced_relay_as("esatto relay", args.args)),
        Command::Perfetto(args) => Ok(perfetto::perfetto(args.args)),
        Command::Trigger(args) => trigger::run(&args),
        Command::List(args) => list::run(&args),
        Command::Sessions(args) => sessions::run(&args),
        Command::Snapshot(args) => snapshot::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Report(args) => report::run(&args),
        Command::View(args) => view::run(&args),
        Command::UiBridge(args) => ui_bridge::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Dump(args) => dump::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Export(args) => query::run_export(&args),
        Command::Lake(args) => query::run_lake(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Cut(args) => cut::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Redact(args) => redact::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => completions::run(args.shell),
        Command::Man(args) => man::run(&args),
    };
    result.unwrap_or_else(|failure| {
        say!("esatto: {failure}");
        ExitCode::FAILURE
    })
}
