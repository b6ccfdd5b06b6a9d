//! Group `service`: the cost of the tracing service, Esatto's daemon beside Perfetto's `traced`.
//!
//! Every part is a file of rows; it measures both services in turn, in processes of their own, with
//! the same clients.

mod idle;
mod latency;
pub(crate) mod participants;
mod plain_copy;
pub(crate) mod process;
mod read;
mod write;

use crate::cargo;
use crate::options::Options;
use crate::row::Row;

use participants::Kind;

const GROUP: &str = "service";
const PEER: &str = "traced v56";

/// A file of rows. It gets ours first, then the peer if it is there.
type Part = fn(&Options, &[Kind]) -> Result<Vec<Row>, String>;

const PARTS: &[(&str, Part)] =
    &[("write", write::rows), ("read", read::rows), ("latency", latency::rows), ("idle", idle::rows)];

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    if let Some(unknown) = options.parts.iter().find(|part| !PARTS.iter().any(|(name, _)| name == part)) {
        return Err(format!("group service has no part '{unknown}'"));
    }
    eprintln!("bench: building the daemon");
    let mut kinds = vec![Kind { name: "esatto", program: cargo::build_daemon()? }];
    match crate::traced::official("traced") {
        Ok(program) => kinds.push(Kind { name: PEER, program }),
        Err(error) => eprintln!("bench: without {PEER}: {error}"),
    }
    let mut rows = Vec::new();
    for (name, part) in PARTS {
        if options.parts.is_empty() || options.parts.iter().any(|wanted| wanted == name) {
            rows.extend(part(options, &kinds)?);
        }
    }
    Ok(rows)
}
