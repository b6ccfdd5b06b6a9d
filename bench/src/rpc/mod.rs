//! Group `rpc`: the RPC library beside its peers, its hooks, its build time, and layers of `tower`.

mod build_time;
mod calls;
mod hooks;
mod tower;

use crate::options::Options;
use crate::row::Row;

/// Rounds, unless the command line says otherwise: each one takes half a minute.
const ROUNDS: usize = 3;

const GROUP: &str = "rpc";

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    if options.wants("calls") {
        rows.extend(calls::run(options)?);
    }
    if options.wants("hooks") {
        rows.extend(hooks::run(options)?);
    }
    // Clean builds of all peers take longer than all other parts together.
    if options.names("build") {
        rows.extend(build_time::run()?);
    }
    if options.wants("tower") {
        rows.extend(tower::run(options)?);
    }
    Ok(rows)
}
