//! Filters of a config's entry: the machines and the names of the producers that it wants
//! (`docs/spec/service.md §6`).

use esatto_schema::trace_config::DataSource;

use crate::api::SystemFacts;
use crate::context::Context;
use crate::ids::SessionId;
use crate::name_pattern::NamePattern;
use crate::producer::Producer;

/// The name of the service's machine in a `machine_name_filter`. It does not depend on the
/// machine's real name.
const HOST: &[u8] = b"host";

/// Tells whether an entry wants producers of this producer's machine.
pub(super) fn is_on_wanted_machine(
    source: &DataSource,
    all_machines: bool,
    producer: &Producer,
    host: &SystemFacts,
) -> bool {
    let wanted = &source.machine_name_filter;
    let is_host = producer.peer.machine_id == 0;
    if wanted.is_empty() {
        return is_host || all_machines;
    }
    let names = |name: &[u8]| wanted.iter().any(|wanted| wanted.as_bytes() == name);
    let name = &producer.machine_name;
    match is_host {
        true => names(HOST) || names(host.machine_name().as_bytes()),
        // A guest may claim any name, but the name `host` does not make it the host.
        false => name != HOST && names(name),
    }
}

/// Tells whether an entry wants producers of this producer's name.
pub(super) fn passes_name_filters(
    source: &DataSource,
    (session, patterns): (SessionId, &[NamePattern]),
    producer: &Producer,
    cx: &mut Context<'_>,
) -> bool {
    let names = &source.producer_name_filter;
    let is_unfiltered = names.is_empty() && patterns.is_empty();
    let is_named = || names.iter().any(|name| *name.as_bytes() == *producer.name);
    is_unfiltered || is_named() || patterns.iter().any(|pattern| pattern.matches(session, &producer.name, cx))
}
