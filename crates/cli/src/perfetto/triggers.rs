//! Triggers, which only a producer can activate (`docs/spec/cli.md` §14 and §21).

use core::time::Duration;
use std::ffi::OsString;
use std::process::ExitCode;

use esatto_ipc::{Address, BlockingClient, Error as IpcError};
use esatto_ports::producer_port;
use esatto_ports::producer_port::method;
use esatto_protozero::ProtoString;
use esatto_schema::{ActivateTriggersRequest, InitializeConnectionRequest};

use super::log_line::log_line;
use super::outcome::Outcome;

/// Name of the producer.
const PRODUCER: &str = "perfetto_cmd_producer";
/// Longest time until the service has the triggers.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) const USAGE: &str = "\
Usage: trigger_perfetto TRIGGER [TRIGGER]...

Activates the triggers that sessions wait for. All go in one request.
";

/// Activates triggers. Says why, if that fails.
pub(crate) fn activate(service: &Address, names: &[ProtoString]) -> Outcome {
    match send(service, names) {
        Ok(()) => Outcome::Done,
        Err(why) => {
            log_line!("Failed to send the triggers: {why}");
            Outcome::Failed
        }
    }
}

/// Activates triggers. Returns when the service has them.
///
/// # Errors
///
/// The text says why, and names the address.
pub(crate) fn send(address: &Address, names: &[ProtoString]) -> Result<(), String> {
    let at = |error: IpcError| {
        let hint = match error {
            IpcError::Timeout => ": it is suspended or hangs; its process may have to be restarted",
            _ => "",
        };
        format!("{error} (the service is expected at {address}{hint})")
    };
    let mut client = BlockingClient::connect(address, producer_port::SERVICE.name, TIMEOUT).map_err(at)?;
    let hello =
        InitializeConnectionRequest { producer_name: Some(PRODUCER.into()), ..InitializeConnectionRequest::default() };
    client.call_message::<method::InitializeConnection>(&hello, Some(TIMEOUT)).map_err(at)?;
    let request = ActivateTriggersRequest { trigger_names: names.to_vec(), ..ActivateTriggersRequest::default() };
    // The reply says that the service has taken them, so this process may end.
    client.call_message::<method::ActivateTriggers>(&request, Some(TIMEOUT)).map_err(at)?;
    Ok(())
}

/// Returns the names as the service gets them.
pub(crate) fn trigger_names(names: &[OsString]) -> Vec<ProtoString> {
    names.iter().map(|name| name.as_encoded_bytes().to_vec().into()).collect()
}

/// The program `trigger_perfetto`.
pub(crate) fn trigger_perfetto(args: Vec<OsString>) -> ExitCode {
    let (options, names): (Vec<OsString>, Vec<OsString>) = args.into_iter().partition(is_option);
    for option in &options {
        if option == "-h" || option == "--help" {
            crate::console::say!("{}", USAGE.trim_end());
            return ExitCode::FAILURE;
        }
        if option != "--" {
            // Scripts may pass options of later versions.
            log_line!("Ignored the unknown option {}", option.to_string_lossy());
        }
    }
    if names.is_empty() {
        crate::console::say!("{}", USAGE.trim_end());
        return ExitCode::FAILURE;
    }
    let names = trigger_names(&names);
    match Address::producer_default() {
        Ok(service) => activate(&service, &names).exit_code(),
        Err(error) => {
            log_line!("Cannot find the address of the tracing service: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_option(arg: &OsString) -> bool {
    arg.len() > 1 && arg.as_encoded_bytes().starts_with(b"-")
}
