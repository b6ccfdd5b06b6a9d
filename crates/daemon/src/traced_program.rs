//! The program `traced` (`docs/spec/cli.md` §17): its command line, its start and its end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use esatto_daemon_program::command_line::Known;
use esatto_daemon_program::process::{notify_readiness, raise_descriptor_limit, stop_signal};
use esatto_daemon_program::{Program, ServiceManager, Start, background, program};
use esatto_ipc::{Address, address};

use crate::daemon::Daemon;
use crate::error::Error;
use crate::metrics_file::MetricsFile;
use crate::options::{Options, RelayEndpoints};
use crate::secret_option::read_secret;
use crate::socket_activation::{self, Inherited};
use crate::socket_permissions::{PermissionsError, SocketPermissions};

/// Help of the program `traced`, for its man page.
pub const TRACED_HELP: &str = "\
The tracing service. Programs that record events (producers) and tools that record traces (consumers) connect to it.

Usage: traced [OPTIONS]

      --background   Return as soon as clients can connect, and print the pid of the process that serves them
      --set-socket-permissions PGROUP:PMODE:CGROUP:CMODE
                     Set group and mode of the producer sockets and of the consumer socket, as in
                     perfetto:0666:perfetto:0660
      --enable-relay-endpoint
                     Let relays of other machines connect to all producer sockets
      --enable-relay-endpoint-on ADDRESS
                     Let relays of other machines connect to this producer socket; may be given several times
      --secret-file FILE
                     Admit only clients that prove the secret in this file to TCP and vsock sockets: relays with the
                     same option. The secret is not sent. This does not encrypt anything
      --log-level LEVEL
                     error, warn, info (the default: also the start and the end of sessions) or debug (also
                     connections)
  -v, --verbose      As --log-level debug; given twice, log every call
      --metrics-file PATH
                     Write counts into this file every 10 s, in the text format of Prometheus; the folder must exist
      --version      Print the version
  -h, --help         Print this help

Environment:
  PERFETTO_PRODUCER_SOCK_NAME  Addresses of the producer sockets, separated by commas
  PERFETTO_CONSUMER_SOCK_NAME  Address of the consumer socket

An address is the path of a unix socket, an abstract unix socket (@NAME), HOST:PORT, [IPV6]:PORT or vsock://CID:PORT.
The default sockets are traced-producer.sock and traced-consumer.sock in /run/perfetto if that folder exists, else
perfetto-producer and perfetto-consumer in /tmp.

A service manager can pass sockets (LISTEN_FDS, with LISTEN_PID). Their names in LISTEN_FDNAMES decide what they are for:
producer or consumer, also as traced-producer.socket or traced-consumer.socket. Without such a name, their addresses
must be those that this program would use. A passed socket replaces the default one of its kind. Sockets in
PERFETTO_PRODUCER_SOCK_NAME are made in addition; PERFETTO_CONSUMER_SOCK_NAME must not name another one.
";

/// Runs `traced` with these arguments, without the program name, until SIGTERM or SIGINT. The first
/// of them flushes and stops all sessions, for at most 3 s, or 7 s while consumers read; a second
/// one ends them at once. SIGHUP is ignored.
///
/// It serves on the standard sockets, those of the environment, or those that a service manager has
/// created, and logs to stderr. When clients can connect, it notifies the service manager
/// (`NOTIFY_SOCKET`). It also writes one byte `1` to the descriptor that `TRACED_NOTIFY_FD` names,
/// and closes it.
///
/// An error is one line on stderr. This is meant to be all that `main` does: it sets up the logger,
/// the signal handlers and the limits of the process.
pub fn traced(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    traced_as("traced", args)
}

/// As [`traced`], for a program that users start by another command, such as `esatto traced`. The
/// help and the errors name this command.
pub fn traced_as(command: &str, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    program::run::<Settings>(command, args)
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Settings {
    permissions: Option<SocketPermissions>,
    relay_endpoints: RelayEndpoints,
    secret_file: Option<PathBuf>,
    metrics_file: Option<PathBuf>,
}

#[derive(Clone, Copy)]
enum Meaning {
    MetricsFile,
    Permissions,
    RelayEndpoint,
    RelayEndpointOn,
    SecretFile,
}

impl Program for Settings {
    const NAME: &'static str = "traced";
    const HELP: &'static str = TRACED_HELP;
    type Meaning = Meaning;
    const OPTIONS: &'static [Known<Meaning>] = &[
        Known { long: "enable-relay-endpoint", short: None, takes_value: false, meaning: Meaning::RelayEndpoint },
        Known { long: "enable-relay-endpoint-on", short: None, takes_value: true, meaning: Meaning::RelayEndpointOn },
        Known { long: "metrics-file", short: None, takes_value: true, meaning: Meaning::MetricsFile },
        Known { long: "secret-file", short: None, takes_value: true, meaning: Meaning::SecretFile },
        Known { long: "set-socket-permissions", short: None, takes_value: true, meaning: Meaning::Permissions },
    ];

    fn set(&mut self, option: Meaning, value: String) -> Result<(), String> {
        match option {
            Meaning::MetricsFile => self.metrics_file = Some(value.into()),
            Meaning::RelayEndpoint => self.relay_endpoints = RelayEndpoints::All,
            Meaning::RelayEndpointOn => {
                let why = |e| format!("cannot use --enable-relay-endpoint-on: {e}");
                self.relay_endpoints.add(Address::parse(value).map_err(why)?);
            }
            Meaning::SecretFile => self.secret_file = Some(value.into()),
            Meaning::Permissions => {
                let why = |e: PermissionsError| format!("cannot use --set-socket-permissions: {e}");
                self.permissions = Some(value.parse().map_err(why)?);
            }
        }
        Ok(())
    }

    fn run(self, start: &Start<'_>) -> Result<ExitCode, String> {
        if start.background && !background::is_child() && socket_activation::is_announced() {
            return Err(
                "cannot start in the background: the sockets of the service manager (LISTEN_FDS) are for this \
                        process only; leave out --background"
                    .to_owned(),
            );
        }
        if start.background && !background::is_child() {
            self.refuse_relative_paths()?;
        }
        if let Some(code) = start.in_background()? {
            return Ok(code);
        }
        start.verbosity.start_log();
        serve(&self).map_err(|e| e.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Settings {
    /// Refuses paths that the process in the background would not find, because it works in `/`.
    fn refuse_relative_paths(&self) -> Result<(), String> {
        let options = Options::from_environment().map_err(|e| e.to_string())?;
        let sockets = [(address::CONSUMER_SOCK_NAME, &options.consumer)].into_iter();
        let sockets = sockets.chain(options.producers.iter().map(|address| (address::PRODUCER_SOCK_NAME, address)));
        let sockets = sockets.filter_map(|(name, address)| Some((name, address.as_path()?)));
        let files = [("--metrics-file", &self.metrics_file), ("--secret-file", &self.secret_file)];
        let files = files.iter().filter_map(|(name, path)| Some((*name, path.as_deref()?)));
        match sockets.chain(files).find(|(_, path)| path.is_relative()) {
            None => Ok(()),
            Some((name, path)) => Err(format!(
                "cannot start in the background: {name} names {}, a path relative to the working directory, which the \
                 daemon leaves for /; use an absolute path",
                path.display()
            )),
        }
    }
}

fn serve(settings: &Settings) -> Result<(), Error> {
    let manager = ServiceManager::from_environment();
    raise_descriptor_limit();
    let mut options = Options::from_environment()?;
    options.permissions = settings.permissions;
    options.relay_endpoints = settings.relay_endpoints.clone();
    options.secret = read_secret(settings.secret_file.as_deref())?;
    let uses_default = [address::PRODUCER_SOCK_NAME, address::CONSUMER_SOCK_NAME].map(std::env::var_os).contains(&None);
    if let (true, Some((folder, why))) = (uses_default, address::unusable_run_dir()) {
        log::warn!("cannot enter {folder}: {why}; programs that can enter it expect the sockets there");
    }
    let inherited = Inherited::from_environment(&mut options)?;
    // Signals are handled before the sockets are there: a program that can be reached can be
    // stopped.
    let stop = stop_signal().map_err(Error::system("handle signals"))?;
    let mut daemon = Daemon::open(options, inherited)?;
    // A daemon that cannot start, because another one has the sockets, must not replace its file.
    if let Some(path) = settings.metrics_file.clone() {
        daemon.write_metrics(MetricsFile::create(path)?);
    }
    daemon.stop_when_readable(stop)?;
    let addresses = daemon.addresses().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    log::info!("Started traced, listening on {addresses}");
    manager.ready(&format!("Listening on {addresses}"));
    daemon.report_to(manager);
    notify_readiness("TRACED_NOTIFY_FD");
    background::detach();
    daemon.run()?;
    log::info!("Stopped");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use esatto_daemon_program::Verbosity;
    use log::LevelFilter;

    fn parse(args: &[&str]) -> Result<(Settings, Start<'static>), String> {
        program::parse(args.iter().map(OsString::from))
    }

    #[test]
    fn the_options_are_those_of_perfettos_traced() {
        assert_eq!(parse(&[]).unwrap().0, Settings::default());
        let (settings, start) = parse(&["-vv", "--background", "--set-socket-permissions=root:0666:0:0660"]).unwrap();
        let permissions = "root:0666:0:0660".parse().ok();
        assert_eq!(settings, Settings { permissions, ..Settings::default() });
        assert_eq!((start.verbosity, start.background), (Verbosity(LevelFilter::Trace), true));
    }

    #[test]
    fn relay_endpoints_are_all_or_some_sockets() {
        let endpoints = |args: &[&str]| parse(args).unwrap().0.relay_endpoints;
        let on = |addresses: &[&str]| RelayEndpoints::On(addresses.iter().map(|text| text.parse().unwrap()).collect());
        assert_eq!(endpoints(&[]), RelayEndpoints::Off);
        assert_eq!(endpoints(&["--enable-relay-endpoint"]), RelayEndpoints::All);
        let two = ["--enable-relay-endpoint-on", "@a", "--enable-relay-endpoint-on=@b"];
        assert_eq!(endpoints(&two), on(&["@a", "@b"]));
        assert_eq!(endpoints(&[two[0], two[1], "--enable-relay-endpoint"]), RelayEndpoints::All);
        assert_eq!(endpoints(&["--enable-relay-endpoint", two[0], two[1]]), RelayEndpoints::All);
    }

    #[test]
    fn mistakes_are_named() {
        let error = parse(&["--set-socket-permissions", "root:0666"]).unwrap_err();
        assert!(error.contains("--set-socket-permissions") && error.contains("PGROUP:PMODE"), "{error}");
        assert!(parse(&["--enable"]).is_err());
    }
}
