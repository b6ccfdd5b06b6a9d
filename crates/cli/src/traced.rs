//! `esatto traced`: the tracing service on the standard sockets.

use std::process::ExitCode;

use crate::args;
use crate::failure::{Attempt as _, Failure};

pub(crate) fn run(args: &args::Traced) -> Result<ExitCode, Failure> {
    let permissions = match &args.set_socket_permissions {
        Some(text) => Some(text.parse().attempt(|| "cannot use --set-socket-permissions".to_owned())?),
        None => None,
    };
    esatto_daemon::foreground(args.verbose, permissions)
        .map_err(|why| Failure::new("cannot run the tracing service", why))?;
    Ok(ExitCode::SUCCESS)
}
