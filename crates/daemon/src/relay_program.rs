//! The program `traced_relay` (`docs/spec/cli.md` §20): its command line, its start and its end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use esatto_daemon_program::command_line::{self, Known};
use esatto_daemon_program::process::{ignore_signals, notify_readiness, print, raise_descriptor_limit, stop_signal};
use esatto_daemon_program::{ServiceManager, Verbosity, background};
use esatto_ipc::Family;

use crate::error::Error;
use crate::relay::{MACHINE_ID_HINT, Relay, RelayOptions};
use crate::secret_option::read_secret;
use crate::socket_activation;
use crate::socket_permissions::{Access, PermissionsError};

const HELP: &str = "\
Connects the producers of this machine to the tracing service of another machine, where traces are recorded.

Usage: PERFETTO_RELAY_SOCK_NAME=ADDRESS traced_relay [OPTIONS]

      --background   Return as soon as producers can connect, and print the pid of the process that serves them
      --set-socket-permissions GROUP:MODE
                     Set group and mode of the producer socket, as in perfetto:0666
      --secret-file FILE
                     Forward only to a service with the same secret (traced --secret-file). Both sides prove that they
                     know it; see traced --help
      --log-level LEVEL
                     error, warn, info (the default: also the start and the end of the relay) or debug (also
                     connections)
  -v, --verbose      As --log-level debug
      --version      Print the version
  -h, --help         Print this help

Environment:
  PERFETTO_RELAY_SOCK_NAME     Address of the service, which must be a relay endpoint (see traced --help): HOST:PORT,
                               [IPV6]:PORT or vsock://CID:PORT
  PERFETTO_PRODUCER_SOCK_NAME  Address of the producer socket on this machine; by default traced-producer.sock in
                               /run/perfetto if that folder exists, else perfetto-producer in /tmp. A socket that a
                               service manager passes (LISTEN_FDS) replaces it
  PERFETTO_MACHINE_NAME        Name of this machine in configs (machine_name_filter); by default the kernel's name
  ESATTO_MACHINE_ID_HINT       Text that identifies this machine instead of the boot id, for containers that share one
";

/// Runs `traced_relay` with these arguments, without the program name, until SIGTERM or SIGINT.
///
/// When producers can connect, it writes one byte `1` to the descriptor that
/// `TRACED_RELAY_NOTIFY_FD` names, and closes it. It notifies the service manager as
/// [`traced`](crate::traced) does. An error is one line on stderr.
pub fn traced_relay(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    traced_relay_as("traced_relay", args)
}

/// As [`traced_relay`], for a program that users start by another command, such as `esatto relay`.
/// The help and the errors name this command.
#[expect(clippy::print_stderr, reason = "all that `main` does")]
pub fn traced_relay_as(command: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    run(command, args).unwrap_or_else(|line| {
        eprintln!("{command}: {line}");
        ExitCode::FAILURE
    })
}

#[expect(clippy::print_stderr, reason = "all that `main` does")]
fn run(command: &str, args: impl IntoIterator<Item = OsString>) -> Result<ExitCode, String> {
    let invocation = Invocation::parse(args).map_err(|line| format!("{line} (see {command} --help)"))?;
    let help = HELP.replace("ADDRESS traced_relay ", &format!("ADDRESS {command} "));
    let settings = match invocation {
        Invocation::Help => return print(&help),
        Invocation::Version => return print(concat!("Esatto v", env!("CARGO_PKG_VERSION"), "\n")),
        Invocation::Relay(settings) => settings,
    };
    let Some(mut options) = RelayOptions::from_environment().map_err(|e| e.to_string())? else {
        eprint!("{command}: PERFETTO_RELAY_SOCK_NAME must name the address of the service\n\n{help}");
        return Ok(ExitCode::FAILURE);
    };
    if settings.background && !background::is_child() {
        return background::start().map_err(|e| format!("cannot start in the background: {e}"));
    }
    options.permissions = settings.permissions;
    options.secret = read_secret(settings.secret_file.as_deref()).map_err(|e| e.to_string())?;
    serve(options, settings.verbosity).map_err(|e| e.to_string())?;
    Ok(ExitCode::SUCCESS)
}

fn serve(options: RelayOptions, verbosity: Verbosity) -> Result<(), Error> {
    verbosity.start_log();
    let manager = ServiceManager::from_environment();
    raise_descriptor_limit();
    if options.machine_id_hint.is_empty() {
        log::warn!("this machine has no id: set {MACHINE_ID_HINT} to a text that no other machine has");
    }
    if options.service.family() == Family::Unix {
        log::warn!(
            "{} is on this machine: the service must be on another one, because shared memory cannot be forwarded",
            options.service
        );
    }
    let service = options.service.clone();
    let mut relay = Relay::open(options, socket_activation::relay_listener()?)?;
    let addresses = format!("listening on {}, forwarding to {service}", relay.address());
    ignore_signals().map_err(Error::system("handle signals"))?;
    relay.stop_when_readable(stop_signal().map_err(Error::system("handle signals"))?)?;
    log::info!("Started traced_relay, {addresses}");
    manager.ready(&format!("Relay, {addresses}"));
    notify_readiness("TRACED_RELAY_NOTIFY_FD");
    background::detach();
    relay.run()?;
    log::info!("Stopped");
    Ok(())
}

/// Command that the arguments stand for.
#[derive(Debug, PartialEq, Eq)]
enum Invocation {
    Relay(Settings),
    Version,
    Help,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    verbosity: Verbosity,
    background: bool,
    permissions: Option<Access>,
    secret_file: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Meaning {
    Background,
    Help,
    LogLevel,
    Permissions,
    SecretFile,
    Verbose,
    Version,
}

const KNOWN: &[Known<Meaning>] = &[
    Known { long: "background", short: None, takes_value: false, meaning: Meaning::Background },
    Known { long: "help", short: Some('h'), takes_value: false, meaning: Meaning::Help },
    Known { long: "secret-file", short: None, takes_value: true, meaning: Meaning::SecretFile },
    Known { long: "log-level", short: None, takes_value: true, meaning: Meaning::LogLevel },
    Known { long: "set-socket-permissions", short: None, takes_value: true, meaning: Meaning::Permissions },
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
                Meaning::SecretFile => settings.secret_file = value.map(PathBuf::from),
                Meaning::Verbose => settings.verbosity.raise(),
                Meaning::LogLevel => settings.verbosity = Verbosity::parse(&value.unwrap_or_default())?,
                Meaning::Permissions => {
                    let parsed = value.unwrap_or_default().parse();
                    let why = |e: PermissionsError| format!("cannot use --set-socket-permissions: {e}");
                    settings.permissions = Some(parsed.map_err(why)?);
                }
            }
        }
        Ok(Self::Relay(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use log::LevelFilter;

    #[test]
    fn the_options_are_those_of_perfettos_traced_relay() {
        let parse = |args: &[&str]| Invocation::parse(args.iter().map(OsString::from));
        assert_eq!(parse(&[]), Ok(Invocation::Relay(Settings::default())));
        assert_eq!(parse(&["--version"]), Ok(Invocation::Version));
        let permissions = Some(Access { gid: 0, mode: 0o666 });
        let verbosity = Verbosity(LevelFilter::Debug);
        let want = Settings { verbosity, background: true, permissions, secret_file: None };
        assert_eq!(
            parse(&["--background", "-v", "--set-socket-permissions", "root:0666"]),
            Ok(Invocation::Relay(want))
        );
        let error = parse(&["--set-socket-permissions=root:0666:root:0666"]).unwrap_err();
        assert!(error.contains("GROUP:MODE"), "{error}");
    }
}
