//! Part `build`: a clean build of a client and a server of one method.

use super::GROUP;
use crate::build::{AS_SHIPPED, Cost, measure};
use crate::row::{Of, Row};

/// Programs of `users/` and their libraries. Only ours runs its generator.
const PEERS: [(&str, &str); 4] = [
    ("bench-user-rpc-ttrpc", "ttrpc"),
    ("bench-user-rpc-tarpc", "tarpc"),
    ("bench-user-rpc-capnp", "capnp-rpc"),
    ("bench-user-rpc-tonic", "tonic"),
];

pub(super) fn run() -> Result<Vec<Row>, String> {
    let ours = measure("bench-user-rpc-esatto", "esatto-ipc", AS_SHIPPED)?;
    let theirs = PEERS.map(|(package, library)| {
        let cost = measure(package, library, AS_SHIPPED)
            .inspect_err(|error| eprintln!("bench: without {library}: {error}"))
            .ok();
        (library, cost)
    });
    let row = |case: &str, unit, value: &dyn Fn(Cost) -> f64| {
        let row = Row::new(GROUP, case, unit, value(ours));
        theirs.iter().fold(row, |row, (peer, cost)| row.beside(peer, cost.map(value))).reach(Of::Peer, 1.0)
    };
    Ok(vec![
        row("clean release build, CPU time", "s", &|cost| cost.cpu_s),
        row("crates in the dependency tree", "crates", &|cost| cost.crates),
    ])
}
