//! Part `build`: a clean build of a client and a server of one method.

use super::GROUP;
use crate::build::{AS_SHIPPED, Cost, measure};
use crate::row::{Of, Row};

/// Our programs of `users/`: with generated code that is checked in, as the peers have it, and with
/// the generator in the build script.
const OURS: [(&str, &str); 2] =
    [("code checked in", "bench-user-rpc-esatto-by-hand"), ("with the generator", "bench-user-rpc-esatto")];

/// Programs of `users/` and their libraries, without their generators.
const PEERS: [(&str, &str); 4] = [
    ("bench-user-rpc-ttrpc", "ttrpc"),
    ("bench-user-rpc-tarpc", "tarpc"),
    ("bench-user-rpc-capnp", "capnp-rpc"),
    ("bench-user-rpc-tonic", "tonic"),
];

pub(super) fn run() -> Result<Vec<Row>, String> {
    let theirs = PEERS.map(|(package, library)| {
        let cost = measure(package, library, AS_SHIPPED)
            .inspect_err(|error| eprintln!("bench: without {library}: {error}"))
            .ok();
        (library, cost)
    });
    let mut rows = Vec::new();
    for (what, package) in OURS {
        let ours = measure(package, "esatto-ipc", AS_SHIPPED)?;
        let row = |case: &str, unit, value: &dyn Fn(Cost) -> f64| {
            let row = Row::new(GROUP, format!("{case}, {what}"), unit, value(ours));
            theirs.iter().fold(row, |row, (peer, cost)| row.beside(peer, cost.map(value))).reach(Of::Peer, 1.0)
        };
        rows.push(row("clean release build, CPU time", "s", &|cost| cost.cpu_s));
        rows.push(row("crates in the dependency tree", "crates", &|cost| cost.crates));
    }
    Ok(rows)
}
