//! FIDL's wire format and calls. With the feature `peers` it encodes and decodes values; otherwise
//! it makes calls. Without the feature `trace` there are no hooks; otherwise the category is off.

#[cfg(not(feature = "peers"))]
mod calls;
#[cfg(feature = "peers")]
mod flat;
#[cfg(feature = "peers")]
mod plain;
#[cfg(feature = "peers")]
mod values;

use bench_harness::{Finished, Program};

/// Code that `build.rs` generated.
#[allow(missing_docs, dead_code, unreachable_pub, clippy::all, reason = "generated")]
mod fidl {
    include!(concat!(env!("OUT_DIR"), "/fidl.rs"));
}

/// Code that `build.rs` generated.
#[allow(missing_docs, dead_code, reason = "generated")]
mod protos {
    include!(concat!(env!("OUT_DIR"), "/protos.rs"));
}

fn main() {
    #[cfg(feature = "peers")]
    let cases = values::CASES;
    #[cfg(not(feature = "peers"))]
    let cases = calls::CASES;
    bench_harness::run(&Program { cases, start: |_| start(), finish: Finished::default });
}

#[cfg(feature = "trace")]
fn start() {
    use std::sync::OnceLock;

    static TRACING: OnceLock<esatto::Tracing> = OnceLock::new();

    assert!(esatto_rpc_trace::install(), "the first adapter");
    let tracing = esatto::Tracing::builder().in_process().start().expect("tracing starts");
    TRACING.set(tracing).expect("only once");
}

#[cfg(not(feature = "trace"))]
fn start() {}
