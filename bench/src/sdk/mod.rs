//! Group `sdk`: the cost of trace points, beside other libraries and the least possible cost; their
//! bytes in a trace; losses.

mod code;
mod contender;
mod losses;
mod points;
mod spans;
mod system;

use crate::options::Options;
use crate::row::{Of, Row};

const GROUP: &str = "sdk";

/// Measures something, and has rows of it.
type Part = fn(&Options) -> Result<Vec<Row>, String>;

/// The parts, in the order of the tables.
const PARTS: [(&str, Part); 5] = [
    ("points", points::rows),
    ("tracing", spans::rows),
    ("system", system::rows),
    ("losses", losses::rows),
    ("code", code::rows),
];

pub(crate) fn run(options: &Options) -> Result<Vec<Row>, String> {
    if let Some(unknown) = options.parts.iter().find(|part| !PARTS.iter().any(|(name, _)| name == part)) {
        return Err(format!("sdk has no part '{unknown}'"));
    }
    let mut rows = Vec::new();
    let mut failed = Vec::new();
    for (name, part) in PARTS {
        if options.wants(name) {
            match part(options) {
                Ok(found) => rows.extend(found),
                // The other parts also take minutes, and do not need it.
                Err(error) => failed.push(format!("part {name}: {error}")),
            }
        }
    }
    if rows.is_empty() {
        return Err(failed.join("\n"));
    }
    for error in failed {
        eprintln!("bench: sdk, {error}");
    }
    Ok(rows)
}

/// A row that is a ratio, for what an issue asks for as one. None if one of the two could not be
/// measured.
fn ratio(case: impl Into<String>, ours: Option<f64>, theirs: Option<f64>, reach: Option<f64>) -> Option<Row> {
    let theirs = theirs.filter(|&theirs| theirs > 0.0)?;
    let row = Row::new(GROUP, case, "ratio", ours? / theirs);
    Some(match reach {
        Some(reach) => row.reach(Of::Value, reach),
        None => row,
    })
}
