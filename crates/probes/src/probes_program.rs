//! The program `traced_probes` (`docs/spec/cli.md` §18): its command line, its start and its end.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use esatto_daemon_program::command_line::{self, Known};
use esatto_daemon_program::process::{ignore_signals, notify_readiness, print, raise_descriptor_limit, stop_signal};
use esatto_daemon_program::{ServiceManager, Verbosity, background};

use crate::control::Observer;
use crate::ftrace_reset::{MOUNT_POINTS, reset_ftrace};
use crate::probes::{Options, Probes};

const HELP: &str = "\
Records what the machine does: scheduling and other events of the kernel, processes, memory, counters, the journal. It
connects to the tracing service as a producer; the sessions of the service say what to record.

Usage: traced_probes [OPTIONS]

      --background   Return at once, and print the pid of the process that serves
      --reset-ftrace Reset ftrace before the start: no events, small buffers. Use it if another program has left ftrace
                     on; programs that use ftrace now are disturbed
      --cleanup-after-crash
                     Reset ftrace and exit
      --log-level LEVEL
                     error, warn, info (the default) or debug
  -v, --verbose      As --log-level debug
      --version      Print the version
  -h, --help         Print this help

Environment:
  PERFETTO_PRODUCER_SOCK_NAME  Address of the service's socket for producers; by default traced-producer.sock in
                               /run/perfetto if that folder exists, else perfetto-producer in /tmp

Exit status: 0 ended by SIGTERM or SIGINT, 1 failed.
";

/// Runs `traced_probes` with these arguments, without the program name, until SIGTERM or SIGINT.
/// The first of them flushes and tears down all data sources, for at most 5 s; a second one ends at
/// once. SIGHUP is ignored.
///
/// When the service knows the data sources, it writes one byte `1` to the descriptor that
/// `TRACED_PROBES_NOTIFY_FD` names, and closes it. An error is one line on stderr. This is meant to
/// be all that `main` does: it sets up the logger, the signal handlers and the limits of the
/// process.
pub fn traced_probes(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    traced_probes_as("traced_probes", args)
}

/// As [`traced_probes`], for a program that users start by another command, such as
/// `esatto probes`. The help and the errors name this command.
#[expect(clippy::print_stderr, reason = "all that `main` does")]
pub fn traced_probes_as(command: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    run(command, args).unwrap_or_else(|line| {
        eprintln!("{command}: {line}");
        ExitCode::FAILURE
    })
}

fn run(command: &str, args: impl IntoIterator<Item = OsString>) -> Result<ExitCode, String> {
    let invocation = Invocation::parse(args).map_err(|line| format!("{line} (see {command} --help)"))?;
    match invocation {
        Invocation::Help => print(&HELP.replace("Usage: traced_probes ", &format!("Usage: {command} "))),
        Invocation::Version => print(concat!("Esatto v", env!("CARGO_PKG_VERSION"), "\n")),
        Invocation::Serve(settings) if settings.cleans_up_only => {
            settings.verbosity.start_log();
            reset_ftrace(&MOUNT_POINTS).map(|()| ExitCode::SUCCESS)
        }
        Invocation::Serve(settings) if settings.background && !background::is_child() => {
            background::start().map_err(|e| format!("cannot start in the background: {e}"))
        }
        Invocation::Serve(settings) => {
            serve(&settings)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn serve(settings: &Settings) -> Result<(), String> {
    settings.verbosity.start_log();
    let failed = |action: &'static str| move |why| format!("cannot {action}: {why}");
    raise_descriptor_limit();
    ignore_signals().map_err(failed("handle signals"))?;
    let stop = stop_signal().map_err(failed("handle signals"))?;
    let announcements = Announcements { manager: ServiceManager::from_environment(), state: State::Unknown };
    announcements.manager.ready("Connecting to the tracing service");
    if settings.reset_ftrace {
        reset_ftrace(&MOUNT_POINTS).unwrap_or_else(|why| log::warn!("{why}"));
    }
    crate::privileges::drop_unneeded();
    for missing in crate::privileges::missing() {
        match missing.is_everything {
            true => log::warn!("{missing}"),
            false => log::info!("{missing}"),
        }
    }
    for hidden in crate::privileges::hidden_by_container() {
        log::info!("this container hides {hidden}");
    }
    background::detach();
    Probes::new(Options::default()).run(&stop, announcements).map_err(failed("go on"))?;
    log::info!("Stopped");
    Ok(())
}

/// Tells the log, the service manager and the program that started this one.
struct Announcements {
    manager: ServiceManager,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Unknown,
    Registered,
    Disconnected,
}

impl Observer for Announcements {
    fn registered(&mut self) {
        log::info!("Connected to the tracing service");
        self.manager.status("Connected to the tracing service");
        if self.state == State::Unknown {
            notify_readiness("TRACED_PROBES_NOTIFY_FD");
        }
        self.state = State::Registered;
    }

    fn disconnected(&mut self, why: &str) {
        // Once for many attempts.
        if self.state != State::Disconnected {
            log::warn!("{why}; trying again");
            self.manager.status("Waiting for the tracing service");
        }
        self.state = State::Disconnected;
    }

    fn stopping(&mut self) {
        self.manager.stopping("Tearing down data sources");
    }

    fn alive(&mut self) {
        self.manager.alive();
    }

    fn alive_every(&self) -> Option<Duration> {
        self.manager.alive_every()
    }
}

/// Command that the arguments stand for.
#[derive(Debug, PartialEq, Eq)]
enum Invocation {
    Serve(Settings),
    Version,
    Help,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    verbosity: Verbosity,
    background: bool,
    reset_ftrace: bool,
    cleans_up_only: bool,
}

#[derive(Clone, Copy)]
enum Meaning {
    Background,
    CleanupAfterCrash,
    Help,
    LogLevel,
    ResetFtrace,
    Verbose,
    Version,
}

const KNOWN: &[Known<Meaning>] = &[
    Known { long: "background", short: None, takes_value: false, meaning: Meaning::Background },
    Known { long: "cleanup-after-crash", short: None, takes_value: false, meaning: Meaning::CleanupAfterCrash },
    Known { long: "help", short: Some('h'), takes_value: false, meaning: Meaning::Help },
    Known { long: "log-level", short: None, takes_value: true, meaning: Meaning::LogLevel },
    Known { long: "reset-ftrace", short: None, takes_value: false, meaning: Meaning::ResetFtrace },
    Known { long: "verbose", short: Some('v'), takes_value: false, meaning: Meaning::Verbose },
    Known { long: "version", short: None, takes_value: false, meaning: Meaning::Version },
];

impl Invocation {
    fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut settings = Settings::default();
        for (meaning, value) in command_line::parse(args, KNOWN)? {
            match meaning {
                Meaning::Help => return Ok(Self::Help),
                Meaning::Version => return Ok(Self::Version),
                Meaning::Background => settings.background = true,
                Meaning::ResetFtrace => settings.reset_ftrace = true,
                Meaning::CleanupAfterCrash => settings.cleans_up_only = true,
                Meaning::Verbose => settings.verbosity.raise(),
                Meaning::LogLevel => settings.verbosity = Verbosity::parse(&value.unwrap_or_default())?,
            }
        }
        Ok(Self::Serve(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_of_perfettos_traced_probes() {
        let parse = |args: &[&str]| Invocation::parse(args.iter().map(OsString::from));
        assert_eq!(parse(&[]), Ok(Invocation::Serve(Settings::default())));
        assert_eq!(parse(&["--version"]), Ok(Invocation::Version));
        let want = Settings { background: true, reset_ftrace: true, ..Settings::default() };
        assert_eq!(parse(&["--background", "--reset-ftrace"]), Ok(Invocation::Serve(want)));
        let want = Settings { cleans_up_only: true, ..Settings::default() };
        assert_eq!(parse(&["--cleanup-after-crash"]), Ok(Invocation::Serve(want)));
        assert!(parse(&["--reset"]).is_ok());
        assert!(parse(&["file"]).is_err());
    }
}
