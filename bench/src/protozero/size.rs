//! Machine code: of call sites, of what they share, and of what is not used.

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

use crate::cargo;
use crate::protozero::GROUP;
use crate::row::{Of, Row};

const PACKAGE: &str = "bench-protozero-size";
const PEER: &str = "prost";

/// The functions of `bench-protozero-size`, what they do, and how many fields they set.
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
        // Whatever the number of call sites. The runtime is shared by all message types; what prost makes of a type is needed for each.
        let ours = ours.shared(&["esatto_protozero::", "::EveryFieldWriter>"]);
        let theirs = theirs.shared(&["prost::encoding::", "EveryField as prost::message::Message>", "::EveryField>"]);
        row("what the call sites share", ours, theirs);
    }
    let row = Row::new(GROUP, "code: messages that are not used", "bytes", unused.text - used.text);
    rows.push(row.reach(Of::Value, 0.0));
    Ok(rows)
}

/// What is looked at of a program.
#[derive(Debug)]
struct Program {
    /// Functions and their sizes in bytes.
    functions: Vec<(String, f64)>,
    /// Size of all code.
    text: f64,
}

impl Program {
    fn read(file: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let object = object::File::parse(&*bytes).map_err(|error| format!("{}: {error}", file.display()))?;
        let functions = object
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| {
                Some((format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?)), symbol.size() as f64))
            })
            .collect();
        let text = object.sections().filter(|section| section.kind() == SectionKind::Text);
        Ok(Self { functions, text: text.map(|section| section.size() as f64).sum() })
    }

    /// The mean size of the functions of a kind.
    fn site(&self, name: &str) -> Result<f64, String> {
        let in_module = format!("::{name}");
        let found: Vec<f64> = self
            .functions
            .iter()
            .filter(|(function, _)| {
                function.split('<').next().is_some_and(|path| path.trim_end_matches("::").ends_with(&in_module))
            })
            .map(|&(_, size)| size)
            .collect();
        if found.is_empty() {
            return Err(format!("{PACKAGE} has no {name}"));
        }
        Ok(found.iter().sum::<f64>() / found.len() as f64)
    }

    /// The size of all functions with one of `parts` in their names, but call sites.
    fn shared(&self, parts: &[&str]) -> f64 {
        let counts = |name: &str| parts.iter().any(|part| name.contains(part)) && !name.contains("::site_");
        self.functions.iter().filter(|(name, _)| counts(name)).map(|(_, size)| size).sum()
    }
}
