//! The order of the crates: each may depend only on those above it in the table.

use crate::imports::Imports;
use crate::shell;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Folders under `crates/`, bottom to top (ARCHITECTURE.md).
const ORDER: &[&str] = &[
    "map",
    "protozero",
    "rust-text",
    "protozero-codegen",
    "fidl-codegen",
    "ipc",
    "daemon-program",
    "fidl",
    "schema",
    "shm",
    "ports",
    "trace",
    "filter",
    "service",
    "trace-files",
    "macros",
    "instances",
    "esatto",
    "daemon",
    "console-interceptor",
    "tracing-layer",
    "rpc-trace",
    "tower-layer",
    "log",
    "capi",
    "capi-v59",
    "probes",
    "text-format",
    "convert",
    "inputs",
    "edit",
    "report",
    "ui-server",
    "cli",
];

/// Depends on none of ours.
const ALONE: &[&str] = &["map", "protozero", "rust-text", "macros", "instances", "ui-server"];

/// May hold unsafe code; every other crate root forbids it.
const MAY_BE_UNSAFE: &[&str] = &["protozero", "shm", "ipc", "instances", "esatto", "capi", "capi-v59", "probes"];

/// Crates whose inside is checked: folder, and its top-level modules from top to bottom. Each
/// module imports only from later ones. An empty list asks for no order, but still for no circle.
const INSIDE: &[(&str, &[&str])] = &[
    (
        "esatto",
        &[
            "guide",
            "macros",
            "process",
            "producer",
            "raw",
            "session",
            "lifecycle",
            "connection",
            "data_source",
            "backend",
            "record",
            "sequence",
            "slice_stack",
            "destination",
            "event",
            "category",
            "interceptor",
            "start_times",
            "clock",
            "name",
            "os",
            "diagnostics",
            "callbacks",
            "control_thread",
            "error",
            "trace_point_gate",
            "track_uuid",
            "hash",
            "random",
        ],
    ),
    (
        "service",
        &[
            "holdings",
            "config_refusal",
            "service",
            "consumer",
            "random",
            "session",
            "machines",
            "observer",
            "priority_boost",
            "producer",
            "frame_limits",
            "read",
            "buffer",
            "encode",
            "fair_share",
            "name_pattern",
            "client_text",
            "timers",
            "context",
            "api",
            "ids",
            "shared_buffer",
        ],
    ),
    (
        "shm",
        &[
            "writer",
            "arbiter",
            "commit",
            "scrape",
            "service_region",
            "chunk_states",
            "fragments",
            "memory",
            "orderings",
            "prefetch",
            "size",
            "abi",
            "error",
            "sync",
        ],
    ),
    (
        "capi",
        &[
            "decoder",
            "high_level",
            "low_level",
            "category",
            "data_symbols",
            "producer",
            "session",
            "thread_id",
            "timestamps",
            "v58",
            "v59",
            "data_source",
            "initialised",
            "diagnostics",
            "tracer",
            "program_state",
            "stream",
            "on_flushed",
            "abi",
            "panic_guard",
            "ffi",
        ],
    ),
    (
        "protozero",
        &[
            "service",
            "framing",
            "owned",
            "scattered_buffer",
            "packed",
            "view",
            "index",
            "lookup",
            "repeated",
            "decode",
            "cursor",
            "wire",
        ],
    ),
    ("ipc", &[]),
    ("instances", &[]),
    ("trace-files", &[]),
    ("daemon", &[]),
    ("daemon-program", &[]),
    ("probes", &[]),
    ("cli", &[]),
    ("trace", &[]),
    ("text-format", &[]),
    ("console-interceptor", &[]),
    ("tracing-layer", &[]),
    ("log", &[]),
    ("macros", &[]),
    ("map", &[]),
    ("protozero-codegen", &[]),
];

/// Checks the workspace against the table, and the inside of these crates (`INSIDE` if there are
/// none).
///
/// # Errors
///
/// Every breach, one per line.
pub(crate) fn run(inside: &[String]) -> Result<(), String> {
    if let [flag, name] = inside {
        if flag == "--order" {
            println!("{}", Imports::read(&sources(name))?.order().join("\n"));
            return Ok(());
        }
    }
    let text = shell::output(shell::cargo().args(["metadata", "--format-version=1", "--no-deps", "--offline"]))
        .or_else(|_| shell::output(shell::cargo().args(["metadata", "--format-version=1", "--no-deps"])))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut breaches = breaches(&metadata);
    let named: Vec<(&str, &[&str])> = inside.iter().map(|name| (name.as_str(), rooms(name))).collect();
    for (name, rooms) in if named.is_empty() { INSIDE } else { &named } {
        let found = Imports::read(&sources(name))?.breaches(rooms);
        breaches.extend(found.into_iter().map(|breach| format!("layers: crates/{name}: {breach}")));
    }
    if breaches.is_empty() {
        println!("layers: {} crates in order", crates(&metadata).count());
        Ok(())
    } else {
        Err(breaches.into_iter().collect::<Vec<_>>().join("\nxtask: "))
    }
}

fn sources(name: &str) -> PathBuf {
    shell::root().join("crates").join(name).join("src")
}

fn rooms(name: &str) -> &'static [&'static str] {
    INSIDE.iter().find(|(known, _)| *known == name).map_or(&[], |(_, rooms)| rooms)
}

/// Folder name and package of every crate of ours.
fn crates(metadata: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    packages.iter().filter_map(|package| {
        let manifest = package["manifest_path"].as_str()?;
        Some((folder(manifest.strip_suffix("/Cargo.toml")?)?, package))
    })
}

/// `protozero` of `…/crates/protozero`; none for what lies elsewhere.
fn folder(path: &str) -> Option<&str> {
    let (parent, name) = path.rsplit_once('/')?;
    parent.ends_with("/crates").then_some(name)
}

fn breaches(metadata: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let height = |name: &str| ORDER.iter().position(|row| *row == name);
    for (name, package) in crates(metadata) {
        let Some(own) = height(name) else {
            found.insert(format!("layers: crates/{name} has no row in xtask/src/layers.rs"));
            continue;
        };
        for dependency in package["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            if dependency["kind"] == "dev" {
                continue;
            }
            let Some(path) = dependency["path"].as_str() else { continue };
            match folder(path).and_then(height) {
                None => {
                    found.insert(format!("layers: crates/{name} depends on {path}, which is no crate of the table"));
                }
                Some(other) if other >= own => {
                    found.insert(format!("layers: crates/{name} may not depend on crates/{}", ORDER[other]));
                }
                Some(other) if ALONE.contains(&name) => {
                    let other = ORDER[other];
                    found.insert(format!("layers: crates/{name} may depend on none of ours, so not on crates/{other}"));
                }
                Some(_) => {}
            }
        }
        if !MAY_BE_UNSAFE.contains(&name) {
            found.extend(roots_without(package, &["lib", "bin"], "#![forbid(unsafe_code)]"));
        }
        // `[workspace.lints]` would also ask this of programs, examples and tests.
        found.extend(roots_without(package, &["lib", "proc-macro", "cdylib"], "clippy::print_stdout"));
    }
    found
}

/// The roots of targets of some kinds that lack a text.
fn roots_without(package: &Value, kinds: &[&str], text: &str) -> Vec<String> {
    let targets = package["targets"].as_array().map_or(&[][..], Vec::as_slice);
    targets
        .iter()
        .filter(|target| {
            let of = target["kind"].as_array().map_or(&[][..], Vec::as_slice);
            of.iter().any(|kind| kinds.iter().any(|wanted| kind == wanted))
        })
        .filter_map(|target| target["src_path"].as_str())
        .filter(|path| !std::fs::read_to_string(path).is_ok_and(|root| root.contains(text)))
        .map(|path| format!("layers: {path} lacks {text}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Value {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|(other, kind)| json!({"path": format!("/x/crates/{other}"), "kind": kind}))
            .collect();
        json!({"manifest_path": format!("/x/crates/{name}/Cargo.toml"), "dependencies": dependencies, "targets": []})
    }

    fn count(packages: Vec<Value>) -> usize {
        breaches(&json!({ "packages": packages })).len()
    }

    #[test]
    fn a_crate_may_depend_on_those_above_it_only() {
        assert_eq!(count(vec![package("ports", &[("protozero", None), ("schema", None)])]), 0);
        assert_eq!(count(vec![package("ipc", &[("service", None)])]), 1);
        assert_eq!(count(vec![package("ipc", &[("service", Some("build"))])]), 1);
    }

    #[test]
    fn dev_dependencies_are_exempt() {
        assert_eq!(count(vec![package("ipc", &[("service", Some("dev"))])]), 0);
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        assert_eq!(count(vec![package("surprise", &[])]), 1);
        assert_eq!(count(vec![json!({"manifest_path": "/x/xtask/Cargo.toml", "dependencies": []})]), 0);
    }

    #[test]
    fn macros_depend_on_none_of_ours() {
        assert_eq!(count(vec![package("macros", &[("protozero", None)])]), 1);
    }
}
