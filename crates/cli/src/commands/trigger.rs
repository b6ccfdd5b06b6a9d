//! The command `esatto trigger`: activates triggers that sessions wait for.

use std::process::ExitCode;

use esatto_ipc::Address;

use crate::args;
use crate::failure::{Attempt as _, Failure};
use crate::perfetto::{send_triggers, trigger_names};

pub(crate) fn run(args: &args::Trigger) -> Result<ExitCode, Failure> {
    let service =
        Address::producer_default().attempt(|| "cannot find the address of the tracing service".to_owned())?;
    let what = || match &args.names[..] {
        [name] => format!("cannot activate the trigger {name:?}"),
        names => format!("cannot activate {} triggers", names.len()),
    };
    send_triggers(&service, &trigger_names(&args.names)).attempt(what)?;
    Ok(ExitCode::SUCCESS)
}
