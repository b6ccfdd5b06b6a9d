//! Sizes of functions, from the symbol table of a program.

use std::collections::BTreeSet;
use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};

/// Symbols and sections of a program.
#[derive(Debug)]
pub(crate) struct Program {
    /// Functions and their sizes in bytes.
    functions: Vec<(String, f64)>,
    /// Size of all code.
    pub(crate) text: f64,
}

impl Program {
    pub(crate) fn read(file: &Path) -> Result<Self, String> {
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
    pub(crate) fn site(&self, name: &str) -> Result<f64, String> {
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
            return Err(format!("there is no function {name}"));
        }
        Ok(found.iter().sum::<f64>() / found.len() as f64)
    }

    /// The size of all functions in modules named `site_…` that are called so, and of the closures
    /// in them, by the number of modules.
    pub(crate) fn site_in_modules(&self, name: &str) -> Result<f64, String> {
        let parts = |function: &str| {
            let (before, after) = function.split_once("::site_")?;
            let (module, after) = after.split_once("::")?;
            let is_it = after == name || after.starts_with(&format!("{name}::"));
            (!before.contains('<') && is_it).then(|| module.to_owned())
        };
        let found: Vec<_> = self.functions.iter().filter_map(|(n, size)| Some((parts(n)?, *size))).collect();
        let modules: BTreeSet<_> = found.iter().map(|(module, _)| module).collect();
        if modules.is_empty() {
            return Err(format!("there is no function {name}"));
        }
        Ok(found.iter().map(|(_, size)| size).sum::<f64>() / modules.len() as f64)
    }

    /// The size of all functions with one of `parts` in their names, but call sites.
    pub(crate) fn shared(&self, parts: &[&str]) -> f64 {
        let counts = |name: &str| parts.iter().any(|part| name.contains(part)) && !name.contains("::site_");
        self.functions.iter().filter(|(name, _)| counts(name)).map(|(_, size)| size).sum()
    }
}
