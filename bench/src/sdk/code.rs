//! Part `code`: machine code of call sites.
//!
//! Sizes of functions that are not inlined and do nothing else, without what an empty function
//! takes. It does not include functions that call sites share, and constants.

use super::GROUP;
use crate::cargo;
use crate::options::Options;
use crate::row::{Of, Row};
use crate::symbols::Program;

const PERFETTO: &str = "perfetto-sdk";

/// The functions, their descriptions, and the targets in bytes.
const SITES: [(&str, &str, Option<f64>); 5] = [
    ("pair", "begin and end of a slice", Some(100.0)),
    ("pair_with_number", "the same with a u64", None),
    ("pair_with_arguments", "the same with a u64 and a string", Some(160.0)),
    ("scope", "slice of a scope", None),
    ("instant", "instant", None),
];

pub(super) fn rows(_: &Options) -> Result<Vec<Row>, String> {
    let read = |package, bin| Program::read(&cargo::build_bin(package, bin, &[])?);
    let ours = read("bench-sdk-esatto", "sdk-sites-esatto")?;
    let theirs = read("bench-sdk-perfetto", "sdk-sites-perfetto")
        .inspect_err(|error| eprintln!("bench: without {PERFETTO}: {error}"))
        .ok();
    let mut rows = Vec::new();
    for (site, what, reach) in SITES {
        let theirs = theirs.as_ref().map(|theirs| own_bytes(theirs, site)).transpose()?;
        let row = Row::new(GROUP, format!("code: {what}"), "bytes", own_bytes(&ours, site)?).beside(PERFETTO, theirs);
        rows.push(match reach {
            Some(reach) => row.reach(Of::Value, reach),
            None => row,
        });
    }
    Ok(rows)
}

fn own_bytes(program: &Program, site: &str) -> Result<f64, String> {
    Ok(program.site_in_modules(site)? - program.site_in_modules("nothing")?)
}
