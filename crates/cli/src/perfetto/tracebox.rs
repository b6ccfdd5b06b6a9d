//! The program `tracebox` (`docs/spec/cli.md` §22): all programs in one, and `perfetto` with
//! daemons of its own.
//!
//! Perfetto's `tracebox` starts private daemons even if the machine's run, and then records none of
//! the programs that are connected to those. This one uses what runs, and starts what is missing
//! inside its own process.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use esatto_daemon::DaemonHandle;
use esatto_probes::ProbesHandle;

use super::log_line::log_line;
use super::outcome::{Outcome, failed};
use super::perfetto_with;
use super::sockets::Sockets;
use crate::console::print;
use crate::private_service::PrivateService;
use crate::{machine_service, machine_sources};

/// A program, which takes the arguments after its name.
pub(crate) type Program = fn(Vec<OsString>) -> ExitCode;

const SYSTEM_SOCKETS: &str = "--system-sockets";

pub(crate) const USAGE: &str = "\
Usage: tracebox [--system-sockets] [OPTION OF perfetto]...
       tracebox traced|traced_probes|traced_relay|perfetto|trigger_perfetto|websocket_bridge [OPTION]...

Records like `perfetto`. It uses the tracing service and the probes that run on this machine. What does not run, it is
itself until it ends: by default on private sockets, with --system-sockets on those where all programs of the machine
connect.
`tracebox perfetto --help` lists the options.
";

/// Parts of this process that serve while it records.
struct Daemons {
    _probes: Option<ProbesHandle>,
    // Dropped after the probes, which flush.
    _service: Option<Service>,
}

enum Service {
    Private { _service: PrivateService },
    OfMachine { _daemon: DaemonHandle },
}

/// The program `tracebox`, with the arguments after its name. `program_named` knows the other
/// programs.
pub(crate) fn tracebox(mut args: Vec<OsString>, program_named: impl FnOnce(&OsStr) -> Option<Program>) -> ExitCode {
    let Some(first) = args.first() else {
        // Where there is no stdout, nobody reads it.
        let _ = print(USAGE);
        return ExitCode::FAILURE;
    };
    if let Some(program) = program_named(first) {
        args.remove(0);
        return program(args);
    }
    let wants_system = args.iter().filter(|arg| *arg == SYSTEM_SOCKETS).count();
    if wants_system > 1 {
        log_line!("{SYSTEM_SOCKETS} can be given once");
        return ExitCode::FAILURE;
    }
    args.retain(|arg| arg != SYSTEM_SOCKETS);
    perfetto_with(args, || find_daemons(wants_system > 0))
}

/// Finds the daemons of the machine, and starts those that do not run.
fn find_daemons(wants_system: bool) -> Result<(Sockets, Daemons), Outcome> {
    let mut sockets = Sockets::of_environment()?;
    let service = if !machine_service::is_missing(&sockets.consumer) {
        None
    } else if wants_system || machine_service::is_named() {
        Some(Service::OfMachine { _daemon: machine_service::start_quietly().map_err(failed)? })
    } else {
        let service = PrivateService::start().map_err(failed)?;
        sockets = Sockets { consumer: service.consumer().clone(), producer: service.producer().clone() };
        Some(Service::Private { _service: service })
    };
    let probes = if service.is_none() && machine_sources::are_offered(&sockets.consumer) {
        None
    } else {
        Some(machine_sources::start(Some(&sockets.producer)).map_err(failed)?)
    };
    Ok((sockets, Daemons { _probes: probes, _service: service }))
}
