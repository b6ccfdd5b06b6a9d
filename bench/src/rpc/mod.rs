//! Group `rpc`: the RPC library beside its peers, its hooks, its build time, and layers of `tower`.

mod build_time;
mod calls;
mod hooks;
mod tower;

use crate::options::Options;
use crate::row::Row;

const GROUP: &str = "rpc";

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    if options.wants("calls") {
        rows.extend(calls::run(options)?);
    }
    if options.wants("hooks") {
        rows.extend(hooks::run(options)?);
    }
    if options.wants("build") {
        rows.extend(build_time::run()?);
    }
    if options.wants("tower") {
        rows.extend(tower::run(options)?);
    }
    Ok(rows)
}
