//! The imports inside a crate: which module names which other one.
//!
//! A source is read as tokens, so that comments and texts do not count and macros do. A path counts
//! if it begins with `crate`, `self` or `super`. A name that `lib.rs` re-exports stands for the
//! module that defines it.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module, as the names on its way from the root of the crate. The root itself has none.
pub(crate) type Module = Vec<String>;

/// The modules of a crate, and the modules that each of them names.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    of: BTreeMap<Module, BTreeSet<Module>>,
}

impl Imports {
    /// Reads the sources below `folder`, which holds `lib.rs`. Test modules are left out.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is no Rust.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let mut files = Vec::new();
        collect(folder, &[], &mut files)?;
        let mut sources = Vec::new();
        for (module, text) in files {
            let tokens: TokenStream =
                text.parse().map_err(|error| format!("{}: {}: {error}", folder.display(), module.join("::")))?;
            sources.push((module, tokens));
        }
        Ok(Self::of(sources))
    }

    fn of(sources: Vec<(Module, TokenStream)>) -> Self {
        let modules: BTreeSet<Module> = sources.iter().map(|(module, _)| module.clone()).collect();
        let mut of = BTreeMap::new();
        let mut reexports = BTreeMap::new();
        for (module, tokens) in sources {
            let mut paths = Paths::default();
            paths.collect(tokens, &module);
            if module.is_empty() {
                reexports = paths.uses.iter().filter_map(|path| Some((path.last()?.clone(), path.clone()))).collect();
            }
            of.insert(module, paths.found);
        }
        let defined = |path: &Module| {
            let origin = path.first().and_then(|name| reexports.get(name));
            let path = origin.filter(|_| !modules.contains(&path[..1])).unwrap_or(path);
            (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|module| modules.contains(module))
        };
        let of = of.into_iter().map(|(module, paths)| (module, paths.iter().filter_map(defined).collect())).collect();
        Self { of }
    }

    /// Every import that the rules forbid, one per line.
    ///
    /// Nothing imports from `lib.rs`. If `rooms` is not empty, it lists the top-level modules from
    /// top to bottom, and each imports only from later ones. Modules in one folder form no circle.
    pub(crate) fn breaches(&self, rooms: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        let height =
            |module: &Module| rooms.iter().position(|room| Some(room) == module.first().map(|n| n.as_str()).as_ref());
        let is_upwards = |module, target| match (height(module), height(target)) {
            (Some(own), Some(other)) => other < own,
            _ => false,
        };
        for (module, targets) in self.of.iter().filter(|(module, _)| !module.is_empty()) {
            for target in targets {
                if target.is_empty() {
                    found.push(format!("{} imports from lib.rs: name the module instead", module.join("::")));
                } else if is_upwards(module, target) {
                    found.push(format!("{} imports upwards from {}", module.join("::"), target.join("::")));
                }
            }
            if !rooms.is_empty() && height(module).is_none() {
                found.push(format!("{} lies in no room of the table", module.join("::")));
            }
        }
        let folders: BTreeSet<&[String]> =
            self.of.keys().filter(|m| !m.is_empty()).map(|m| &m[..m.len() - 1]).collect();
        for folder in folders {
            found.extend(self.circle(folder));
        }
        found.sort();
        found.dedup();
        found
    }

    /// The top-level modules from top to bottom: each imports only from later ones, if that is
    /// possible.
    pub(crate) fn order(&self) -> Vec<String> {
        let mut edges: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for (module, targets) in self.of.iter().filter(|(module, _)| !module.is_empty()) {
            let own = edges.entry(&module[0]).or_default();
            own.extend(targets.iter().filter_map(|target| target.first()).filter(|name| **name != module[0]));
        }
        let mut order = Vec::new();
        while let Some(name) = edges.keys().find(|name| !edges.values().any(|to| to.contains(*name))).copied() {
            edges.remove(name);
            order.push(name.clone());
        }
        order
    }

    /// A circle among the modules of one folder, if there is one.
    fn circle(&self, folder: &[String]) -> Option<String> {
        let depth = folder.len();
        let mut edges: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for (module, targets) in self.of.iter().filter(|(module, _)| module.len() > depth && module.starts_with(folder))
        {
            let own = edges.entry(&module[depth]).or_default();
            let inside = targets.iter().filter(|target| target.len() > depth && target.starts_with(folder));
            own.extend(inside.map(|target| &target[depth]).filter(|name| **name != module[depth]));
        }
        // Modules that import nothing of the rest go first; a circle remains.
        while let Some(name) = edges.iter().find(|(_, to)| to.is_empty()).map(|(name, _)| *name) {
            edges.remove(name);
            edges.values_mut().for_each(|to| {
                to.remove(name);
            });
        }
        // Modules that the rest does not import go next.
        loop {
            let used: BTreeSet<&String> = edges.values().flatten().copied().collect();
            let Some(name) = edges.keys().find(|name| !used.contains(*name)).copied() else { break };
            edges.remove(name);
        }
        let shown = |(name, to): (&&String, &BTreeSet<&String>)| {
            format!("{name} → {}", to.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "))
        };
        (!edges.is_empty()).then(|| {
            let place = if folder.is_empty() { "the root".to_owned() } else { folder.join("::") };
            format!("a circle in {place}: {}", edges.iter().map(shown).collect::<Vec<_>>().join("; "))
        })
    }
}

/// Module and text of each source in a folder.
fn collect(folder: &Path, module: &[String], files: &mut Vec<(Module, String)>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut own = module.to_vec();
        if path.is_dir() {
            if name != "tests" && name != "bin" && name != "gen" {
                own.push(name);
                collect(&path, &own, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") && !name.ends_with("tests") {
            if !["mod", "lib", "main"].contains(&name.as_str()) {
                own.push(name);
            }
            files.push((own, fs::read_to_string(&path).map_err(failed)?));
        }
    }
    Ok(())
}

/// The paths in one source.
#[derive(Default)]
struct Paths {
    found: BTreeSet<Module>,
    /// Those of `use` items alone, each with the name that it brings at the end.
    uses: Vec<Module>,
}

impl Paths {
    fn collect(&mut self, tokens: TokenStream, module: &[String]) {
        let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
        tokens.reverse();
        let mut test_only = false;
        while let Some(token) = tokens.pop() {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket => {
                    let attribute = group.stream().to_string().replace([' ', '\n'], "");
                    test_only |= attribute.starts_with("cfg(test") || attribute.starts_with("cfg(all(test");
                    self.collect(group.stream(), module);
                }
                TokenTree::Group(group) => {
                    if !test_only {
                        self.collect(group.stream(), module);
                    }
                    // The parentheses of `pub(crate)` and of arguments do not end the item.
                    test_only &= group.delimiter() != Delimiter::Brace;
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => test_only = false,
                // A macro expands in the user's crate.
                TokenTree::Punct(punct) if punct.as_char() == '$' => drop(tokens.pop()),
                TokenTree::Ident(word) if word == "mod" => self.inner(&mut tokens, module, test_only),
                TokenTree::Ident(word) if word == "use" && !test_only => {
                    let mut tree = Vec::new();
                    while let Some(token) = tokens.pop() {
                        if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ';') {
                            break;
                        }
                        tree.push(token);
                    }
                    self.tree(tree, &[], module, true);
                }
                TokenTree::Ident(word) if !test_only && (word == "crate" || word == "super" || word == "self") => {
                    let mut path = vec![TokenTree::Ident(word)];
                    while matches!(tokens.last(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':') {
                        path.extend([tokens.pop(), tokens.pop()].into_iter().flatten());
                        match tokens.last() {
                            Some(TokenTree::Ident(_)) => path.extend(tokens.pop()),
                            _ => break,
                        }
                    }
                    self.tree(path, &[], module, false);
                }
                _ => {}
            }
        }
    }

    /// A module in the source itself: it counts as its file.
    fn inner(&mut self, tokens: &mut Vec<TokenTree>, module: &[String], test_only: bool) {
        let Some(TokenTree::Ident(name)) = tokens.pop() else { return };
        if let Some(TokenTree::Group(group)) = tokens.last() {
            let body = group.stream();
            tokens.pop();
            if !test_only {
                let mut own = module.to_vec();
                own.push(name.to_string());
                self.collect(body, &own);
            }
        }
    }

    /// A path, or a tree of a `use` with braces.
    fn tree(&mut self, tokens: Vec<TokenTree>, prefix: &[String], module: &[String], is_use: bool) {
        let mut path = prefix.to_vec();
        let mut branches: Vec<Vec<TokenTree>> = vec![Vec::new()];
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ',' => branches.push(Vec::new()),
                token => branches.last_mut().expect("one at least").push(token),
            }
        }
        if branches.len() > 1 {
            branches.into_iter().for_each(|branch| self.tree(branch, prefix, module, is_use));
            return;
        }
        let mut tokens = branches.remove(0).into_iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    if let Some(TokenTree::Ident(alias)) = tokens.next() {
                        self.add(path.clone(), module, is_use);
                        // The root re-exports it by this name.
                        if let Some(full) = absolute(&path, module).filter(|_| is_use) {
                            self.uses.push([full, vec![alias.to_string()]].concat());
                        }
                    }
                    return;
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    return self.tree(group.stream().into_iter().collect(), &path, module, is_use);
                }
                _ => {}
            }
        }
        self.add(path, module, is_use);
    }

    fn add(&mut self, path: Module, module: &[String], is_use: bool) {
        if let Some(full) = absolute(&path, module) {
            if is_use {
                self.uses.push(full.clone());
            }
            // `self::x` and `super::x` inside of one file name the file itself.
            if full.as_slice() != module {
                self.found.insert(full);
            }
        } else if is_use && module.is_empty() {
            self.uses.push(path);
        }
    }
}

/// The path from the root of the crate; none for paths of other crates, and for items without a
/// name.
fn absolute(path: &[String], module: &[String]) -> Option<Module> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" if !rest.is_empty() => Some(rest.to_vec()),
        "self" if !rest.is_empty() => Some([module, rest].concat()),
        "super" => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            let rest = &path[ups..];
            let base = &module[..module.len().checked_sub(ups)?];
            (!rest.is_empty()).then(|| [base, rest].concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaches(sources: &[(&str, &str)], rooms: &[&str]) -> Vec<String> {
        let parts = |module: &str| module.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Imports::of(sources.iter().map(|(module, text)| (parts(module), text.parse().unwrap())).collect())
            .breaches(rooms)
    }

    #[test]
    fn an_import_from_a_room_above_is_found() {
        let sources = [("", "mod high; mod low;"), ("high", "use crate::low::X;"), ("low", "")];
        assert!(breaches(&sources, &["high", "low"]).is_empty());
        assert_eq!(breaches(&sources, &["low", "high"]), ["high imports upwards from low"]);
        assert_eq!(breaches(&sources, &["low"]), ["high lies in no room of the table"]);
    }

    #[test]
    fn braces_paths_in_code_and_macros_count() {
        for text in
            ["use crate::{a, b::{c, D}};", "fn f() { crate::b::g(); }", "m!(crate::b::X);", "use super::b as z;"]
        {
            let sources = [("", ""), ("a", text), ("b", "")];
            assert_eq!(breaches(&sources, &["b", "a"]), ["a imports upwards from b"], "{text}");
        }
    }

    #[test]
    fn comments_texts_tests_and_expansions_do_not_count() {
        let text = "macro_rules! m { () => { $crate::b::X } } // crate::b\n fn f() { \"crate::b\"; } #[cfg(test)] pub(crate) mod tests { use crate::b::X; } #[cfg(test)] use crate::b;";
        assert!(breaches(&[("", ""), ("a", text), ("b", "")], &["b", "a"]).is_empty());
    }

    #[test]
    fn a_circle_in_a_folder_is_found() {
        let sources = [
            ("", ""),
            ("a::x", "use super::y::Y;"),
            ("a::y", "use crate::a::x::X;"),
            ("a", ""),
            ("b", "use crate::a;"),
        ];
        assert_eq!(breaches(&sources, &[]), ["a circle in a: x → y; y → x"]);
    }

    #[test]
    fn a_name_that_the_root_reexports_is_its_module() {
        let root = "mod error; pub use error::Error; pub use crate::a::B as C;";
        assert!(breaches(&[("", root), ("a", "use crate::Error;"), ("error", "")], &["a", "error"]).is_empty());
        let own = [("", "pub struct Mine;"), ("a", "use crate::Mine;")];
        assert_eq!(breaches(&own, &[]), ["a imports from lib.rs: name the module instead"]);
    }
}
