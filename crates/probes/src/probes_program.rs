//! The program `traced_probes` (`docs/spec/cli.md` §18): its command line, its start and its end.

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use esatto_daemon_program::command_line::Known;
use esatto_daemon_program::process::{notify_readiness, raise_descriptor_limit, stop_signal};
use esatto_daemon_program::{Program, ServiceManager, Start, background, program};

use crate::control::Observer;
use crate::ftrace_reset::{MOUNT_POINTS, reset_ftrace};
use crate::probes::{Options, Probes};

/// Help of the program `traced_probes`, for its man page.
pub const TRACED_PROBES_HELP: &str = "\
Records what the machine does: scheduling and other events of the kernel, processes, memory, counters, the journal. It
connects to the tracing service as a producer; the sessions of the service say what to record.

Usage: traced_probes [OPTIONS]

      --background   Return at once, and print the pid of the process that serves
      --reset-ftrace
                     Reset ftrace before the start: no events, small buffers. Use it if another program has left ftrace
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
pub fn traced_probes_as(command: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    program::run::<Settings>(command, args)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    reset_ftrace: bool,
    cleans_up_only: bool,
}

#[derive(Clone, Copy)]
enum Meaning {
    CleanupAfterCrash,
    ResetFtrace,
}

impl Program for Settings {
    const NAME: &'static str = "traced_probes";
    const HELP: &'static str = TRACED_PROBES_HELP;
    type Meaning = Meaning;
    const OPTIONS: &'static [Known<Meaning>] = &[
        Known { long: "cleanup-after-crash", short: None, takes_value: false, meaning: Meaning::CleanupAfterCrash },
        Known { long: "reset-ftrace", short: None, takes_value: false, meaning: Meaning::ResetFtrace },
    ];

    fn set(&mut self, option: Meaning, _: String) -> Result<(), String> {
        match option {
            Meaning::CleanupAfterCrash => self.cleans_up_only = true,
            Meaning::ResetFtrace => self.reset_ftrace = true,
        }
        Ok(())
    }

    fn run(self, start: &Start<'_>) -> Result<ExitCode, String> {
        if self.cleans_up_only {
            start.verbosity.start_log();
            reset_ftrace(&MOUNT_POINTS)?;
        } else if let Some(code) = start.in_background()? {
            return Ok(code);
        } else {
            start.verbosity.start_log();
            self.serve()?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Settings {
    fn serve(&self) -> Result<(), String> {
        let failed = |action: &'static str| move |why| format!("cannot {action}: {why}");
        raise_descriptor_limit();
        let stop = stop_signal().map_err(failed("handle signals"))?;
        let announcements = Announcements { manager: ServiceManager::from_environment(), state: State::Unknown };
        announcements.manager.ready("Connecting to the tracing service");
        if self.reset_ftrace {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_those_of_perfettos_traced_probes() {
        let parse = |args: &[&str]| program::parse::<Settings>(args.iter().map(OsString::from));
        let settings = |args: &[&str]| parse(args).map(|(settings, _)| settings);
        assert_eq!(settings(&[]), Ok(Settings::default()));
        let (reset, start) = parse(&["--background", "--reset-ftrace"]).unwrap();
        assert!(start.background);
        assert_eq!(reset, Settings { reset_ftrace: true, ..Settings::default() });
        let want = Settings { cleans_up_only: true, ..Settings::default() };
        assert_eq!(settings(&["--cleanup-after-crash"]), Ok(want));
        assert_eq!(settings(&["--reset"]), Ok(reset));
        assert!(parse(&["file"]).is_err());
    }
}
