//! Machine code: of call sites, of the functions that they share, and of unused messages.

use crate::cargo;
use crate::protozero::GROUP;
use crate::row::{Of, Row};
use crate::symbols::Program;

const PACKAGE: &str = "bench-protozero-size";
const PEER: &str = "prost";

/// The functions of `bench-protozero-size`, their descriptions, and the numbers of fields that they
/// set.
const SITES: [(&str, &str, f64); 4] = [
    ("site_integer", "sets an integer", 1.0),
    ("site_string", "sets a string", 1.0),
    ("site_five", "sets four integers and a string", 5.0),
    ("site_nested", "sets the same in a nested message", 5.0),
];

pub(crate) fn rows() -> Result<Vec<Row>, String> {
    eprintln!("bench: building {PACKAGE}");
    let compact = Program::read(&cargo::build_bin(PACKAGE, "size-ours", &["compact"])?)?;
    let ours = Program::read(&cargo::build_bin(PACKAGE, "size-ours", &[])?)?;
    let theirs = Program::read(&cargo::build_bin(PACKAGE, "size-prost", &[])?)?;
    let used = Program::read(&cargo::build_bin(PACKAGE, "size-used", &[])?)?;
    let unused = Program::read(&cargo::build_bin(PACKAGE, "size-unused", &[])?)?;
    let mut rows = Vec::new();
    for (label, ours) in [("code", &ours), ("code, feature compact", &compact)] {
        let mut row = |what: &str, ours: f64, theirs: f64| {
            rows.push(Row::new(GROUP, format!("{label}: {what}"), "bytes", ours).beside(PEER, Some(theirs)));
        };
        for (site, what, fields) in SITES {
            let (ours, theirs) = (ours.site(site)?, theirs.site(site)?);
            row(&format!("a function that {what}"), ours, theirs);
            if fields > 1.0 {
                row("the same, per field", ours / fields, theirs / fields);
            }
        }
        // Cost that does not depend on the number of call sites. All message types share the
        // runtime; prost generates code for each type.
        let ours = ours.shared(&["esatto_protozero::", "::EveryFieldWriter>"]);
        let theirs = theirs.shared(&["prost::encoding::", "EveryField as prost::message::Message>", "::EveryField>"]);
        row("what the call sites share", ours, theirs);
    }
    let row = Row::new(GROUP, "code: messages that are not used", "bytes", unused.text - used.text);
    rows.push(row.reach(Of::Value, 0.0));
    Ok(rows)
}
