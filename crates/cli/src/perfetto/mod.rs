//! The command `perfetto` (`docs/spec/cli.md` §3 to §16), with `trigger_perfetto` and `tracebox`.
//!
//! ```text
//! options ─ option rules ─┬─ query
//!                         ├─ attach, is detached
//!                         ├─ cloning
//!                         └─ recording ─ config input (light mode), output file, background, triggers
//! consumer   connection to the service, signals, reading of buffers
//! outcome    exit codes
//! ```

mod attach;
mod background;
mod cloning;
mod config_input;
mod consumer;
mod light_mode;
mod log_line;
mod option_rules;
mod options;
mod outcome;
mod output_file;
mod query;
mod readiness;
mod recording;
mod sockets;
mod tracebox;
mod triggers;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;

use self::background::Parent;
use self::log_line::log_line;
use self::options::{Options, Request};
use self::outcome::{Outcome, oddities_are_wanted};
use self::sockets::Sockets;
pub(crate) use self::tracebox::{Program, USAGE as TRACEBOX_USAGE, tracebox};
pub(crate) use self::triggers::{USAGE as TRIGGER_USAGE, send as send_triggers, trigger_names, trigger_perfetto};
pub(crate) use self::usage::USAGE;
use crate::console::{print, say};

/// The program `perfetto`, with the arguments after its name.
pub(crate) fn perfetto(args: Vec<OsString>) -> ExitCode {
    perfetto_with(args, || Ok((Sockets::of_environment()?, ())))
}

/// Like [`perfetto`], with the service that `find` finds or starts. What it returns beside the
/// sockets lives as long as the run.
fn perfetto_with<S>(args: Vec<OsString>, find: impl FnOnce() -> Result<(Sockets, S), Outcome>) -> ExitCode {
    // The mode of new files does not depend on the caller's mask.
    rustix::process::umask(rustix::fs::Mode::empty());
    let is_bare = args.is_empty();
    let options = match Options::parse(args) {
        Ok(Request::Run(options)) if !is_bare => options,
        Ok(Request::Run(_)) => {
            say!("{}", USAGE.trim_end());
            return ExitCode::FAILURE;
        }
        Ok(Request::Help) => return help(),
        Ok(Request::Version) => return printed(&format!("Esatto v{}\n", env!("CARGO_PKG_VERSION"))),
        Ok(Request::Notice(text)) => {
            log_line!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(mistake) => {
            log_line!("{}", mistake.text);
            if mistake.wants_usage {
                say!("`perfetto --help` lists the options.");
            }
            return ExitCode::FAILURE;
        }
    };
    if let Err(text) = option_rules::check_options(&options) {
        log_line!("{text}");
        return ExitCode::FAILURE;
    }
    let parent = Parent::of_this_process();
    match (options.background, &parent) {
        (Some(mode), None) => background::start(mode),
        _ => match find() {
            Ok((sockets, _service)) => run(&sockets, &options, parent).exit_code(),
            Err(outcome) => outcome.exit_code(),
        },
    }
}

fn run(sockets: &Sockets, options: &Options, parent: Option<Parent>) -> Outcome {
    if let Some(kind) = options.query {
        query::query(sockets, kind, options.is_long)
    } else if let Some(key) = &options.is_detached {
        attach::is_detached(sockets, key)
    } else if let Some(key) = &options.attach {
        attach::attach(sockets, key, options.stop)
    } else if options.save_all_for_bugreport {
        cloning::save_all_for_bugreport(sockets)
    } else if options.save_for_bugreport {
        cloning::save_best_for_bugreport(sockets, options.out.as_ref())
    } else if options.clones() {
        cloning::clone(sockets, options, parent)
    } else {
        recording::record(sockets, options, parent)
    }
}

/// Prints the usage. Perfetto's own command calls this a failure.
fn help() -> ExitCode {
    if oddities_are_wanted() {
        say!("{}", USAGE.trim_end());
        return ExitCode::FAILURE;
    }
    printed(USAGE)
}

fn printed(text: &str) -> ExitCode {
    match print(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log_line!("Cannot write to stdout: {error}");
            ExitCode::FAILURE
        }
    }
}
