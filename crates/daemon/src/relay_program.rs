//! The program `traced_relay` (`docs/spec/cli.md` §20): its command line, its start and its end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use esatto_daemon_program::command_line::Known;
use esatto_daemon_program::process::{notify_readiness, raise_descriptor_limit, stop_signal};
use esatto_daemon_program::{Program, ServiceManager, Start, background, program};
use esatto_ipc::Family;

use crate::error::Error;
use crate::relay::{MACHINE_ID_HINT, Relay, RelayOptions};
use crate::secret_option::read_secret;
use crate::socket_activation;
use crate::socket_permissions::{Access, PermissionsError};

/// Help of the program `traced_relay`, for its man page.
pub const TRACED_RELAY_HELP: &str = "\
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
pub fn traced_relay_as(command: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    program::run::<Settings>(command, args)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    permissions: Option<Access>,
    secret_file: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Meaning {
    Permissions,
    SecretFile,
}

impl Program for Settings {
    const NAME: &'static str = "traced_relay";
    const HELP: &'static str = TRACED_RELAY_HELP;
    type Meaning = Meaning;
    const OPTIONS: &'static [Known<Meaning>] = &[
        Known { long: "secret-file", short: None, takes_value: true, meaning: Meaning::SecretFile },
        Known { long: "set-socket-permissions", short: None, takes_value: true, meaning: Meaning::Permissions },
    ];

    fn set(&mut self, option: Meaning, value: String) -> Result<(), String> {
        match option {
            Meaning::SecretFile => self.secret_file = Some(value.into()),
            Meaning::Permissions => {
                let why = |e: PermissionsError| format!("cannot use --set-socket-permissions: {e}");
                self.permissions = Some(value.parse().map_err(why)?);
            }
        }
        Ok(())
    }

    #[expect(clippy::print_stderr, reason = "all that `main` does")]
    fn run(self, start: &Start<'_>) -> Result<ExitCode, String> {
        let Some(mut options) = RelayOptions::from_environment().map_err(|e| e.to_string())? else {
            let (command, help) = (start.command, program::help::<Self>(start.command));
            eprint!("{command}: PERFETTO_RELAY_SOCK_NAME must name the address of the service\n\n{help}");
            return Ok(ExitCode::FAILURE);
        };
        if let Some(code) = start.in_background()? {
            return Ok(code);
        }
        options.permissions = self.permissions;
        options.secret = read_secret(self.secret_file.as_deref()).map_err(|e| e.to_string())?;
        start.verbosity.start_log();
        serve(options).map_err(|e| e.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn serve(options: RelayOptions) -> Result<(), Error> {
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
    let inherited = socket_activation::relay_listener()?;
    // Signals are handled before the socket is there: a program that can be reached can be stopped.
    let stop = stop_signal().map_err(Error::system("handle signals"))?;
    let mut relay = Relay::open(options, inherited)?;
    let addresses = format!("listening on {}, forwarding to {service}", relay.address());
    relay.stop_when_readable(stop)?;
    log::info!("Started traced_relay, {addresses}");
    manager.ready(&format!("Relay, {addresses}"));
    notify_readiness("TRACED_RELAY_NOTIFY_FD");
    background::detach();
    relay.run()?;
    log::info!("Stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_daemon_program::Verbosity;
    use log::LevelFilter;

    #[test]
    fn the_options_are_those_of_perfettos_traced_relay() {
        let parse = |args: &[&str]| program::parse::<Settings>(args.iter().map(OsString::from));
        assert_eq!(parse(&[]).unwrap().0, Settings::default());
        let (settings, start) = parse(&["--background", "-v", "--set-socket-permissions", "root:0666"]).unwrap();
        assert_eq!(settings, Settings { permissions: Some(Access { gid: 0, mode: 0o666 }), secret_file: None });
        assert_eq!((start.verbosity, start.background), (Verbosity(LevelFilter::Debug), true));
        let error = parse(&["--set-socket-permissions=root:0666:root:0666"]).unwrap_err();
        assert!(error.contains("GROUP:MODE"), "{error}");
    }
}
