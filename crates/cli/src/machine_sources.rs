//! Data sources of the machine: this command offers them itself where no program does.

use core::time::Duration;
use std::io;

use esatto_ipc::{Address, BlockingClient};
use esatto_probes::{Options, Probes, ProbesHandle, privileges};
use esatto_protozero::Owned as _;
use esatto_schema::TraceConfig;
use esatto_trace::escape::Line;

use crate::console::say;
use crate::failure::{Attempt as _, Failure};
use crate::service_connection::connect;
use crate::service_state::Programs;

/// Time in which the service has to take the data sources, so that the recording has them from its
/// begin.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns whether a config has data sources of the machine.
pub(crate) fn are_in(config: &TraceConfig) -> bool {
    let ours = Probes::data_sources();
    names(config).any(|name| ours.contains(&name))
}

/// Returns whether a program offers data sources of the machine to this service. False if the
/// service does not tell.
pub(crate) fn are_offered(service: &Address) -> bool {
    connect(service).is_ok_and(|mut client| are_offered_to(&mut client))
}

fn are_offered_to(client: &mut BlockingClient) -> bool {
    let ours = Probes::data_sources();
    let is_ours = |name: &&str| ours.iter().any(|ours| ours == name);
    Programs::query(client).is_ok_and(|programs| programs.source_names().iter().any(is_ours))
}

/// Offers the data sources of the machine that the config has, if no program does. Says what this
/// user may not record. They end when the result is dropped.
pub(crate) fn offer(
    config: &TraceConfig,
    consumer: &Address,
    producer: Option<&Address>,
) -> Result<Option<ProbesHandle>, Failure> {
    // A service that cannot be reached takes nothing.
    if !are_in(config) || are_offered_to(&mut connect(consumer)?) {
        return Ok(None);
    }
    let configs: Vec<_> =
        config.data_sources.iter().filter_map(|source| source.config.as_ref()).map(|config| config.encode()).collect();
    for missing in privileges::missing() {
        if configs.iter().any(|config| missing.concerns(config)) {
            say!("{}.", Line(missing));
        }
    }
    for hidden in privileges::hidden_by_container() {
        say!("This container hides {hidden}.");
    }
    start(producer).map(Some)
}

/// Offers the data sources of the machine to a service until the result is dropped.
pub(crate) fn start(producer: Option<&Address>) -> Result<ProbesHandle, Failure> {
    let mut options = Options::default();
    options.socket = producer.map(|address| address.to_os_string().to_string_lossy().into_owned());
    let probes: io::Result<ProbesHandle> = Probes::new(options).spawn_thread();
    let probes = probes.attempt(|| "cannot record the machine".to_owned())?;
    if !probes.wait_registered(PATIENCE) {
        say!("The service does not take the data sources of the machine. They may be missing in the trace.");
    }
    Ok(probes)
}

fn names(config: &TraceConfig) -> impl Iterator<Item = String> {
    let names = config.data_sources.iter().filter_map(|source| source.config.as_ref()?.name.as_ref());
    names.map(|name| String::from_utf8_lossy(name.as_bytes()).into_owned())
}
