//! [`Scope`]: the declarations of all files by name, and how names are looked up.

use std::collections::BTreeMap;

use esatto_rust_text::identifiers::snake_case;

use super::versions;
use crate::error::{Error, Result};
use crate::syntax::{Declaration, File, Ident, Path, Syntax};

/// Declarations of all libraries.
pub(super) struct Scope<'a> {
    libraries: BTreeMap<String, BTreeMap<&'a str, Item<'a>>>,
}

/// Declaration and the file that it is in.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) file: &'a File,
    pub(super) declaration: &'a Declaration,
}

/// Declaration that a path leads to, with the names after it: those of a member.
pub(super) struct Found<'a> {
    pub(super) item: Item<'a>,
    pub(super) rest: Vec<String>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(files: &'a [File]) -> Result<Self> {
        let mut libraries: BTreeMap<String, BTreeMap<&str, Item<'_>>> = BTreeMap::new();
        let mut forms: BTreeMap<(String, String), &Ident> = BTreeMap::new();
        for file in files {
            let library = file.library.dotted();
            let names = libraries.entry(library.clone()).or_default();
            for declaration in &file.declarations {
                if !versions::exists(&declaration.attributes)? {
                    continue;
                }
                let Ident { text, span } = &declaration.name;
                if names.insert(text, Item { file, declaration }).is_some() {
                    let message = format!("`{text}` is declared twice in library `{}`", file.library.dotted());
                    return Err(span.error(message));
                }
                // The rule is younger than the old syntax, whose names of `zx` this compiler adds.
                if file.syntax == Syntax::Old || file.is_built_in {
                    continue;
                }
                let form = snake_case(text);
                if let Some(other) = forms.insert((library.clone(), form.clone()), &declaration.name) {
                    return Err(same_name(&declaration.name, other, &format!("library `{library}`"), &form));
                }
            }
        }
        Ok(Self { libraries })
    }

    /// Returns the libraries and their declarations.
    pub(super) fn libraries(&self) -> impl Iterator<Item = (&String, impl Iterator<Item = Item<'a>> + '_)> {
        self.libraries.iter().map(|(name, items)| (name, items.values().copied()))
    }

    /// Fails if a file uses a library that does not exist, or that it uses already.
    pub(super) fn check_uses(&self, file: &File) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        for used in &file.uses {
            let library = used.library.dotted();
            if !self.libraries.contains_key(&library) {
                let known = self.libraries.keys().map(|name| format!("`{name}`")).collect();
                return Err(used.library.span.unknown_library(&library, known));
            }
            let name = used.alias.as_ref().map_or(library, |alias| alias.text.clone());
            if names.contains(&name) {
                return Err(used.library.span.error(format!("`{name}` is used twice")));
            }
            names.push(name);
        }
        Ok(())
    }

    /// Returns the declaration of a library.
    pub(super) fn item(&self, library: &str, name: &str) -> Option<Item<'a>> {
        self.libraries.get(library)?.get(name).copied()
    }

    /// Looks up `Name`, `Name.Member`, `library.Name` or `library.Name.Member`, as `file` sees it.
    pub(super) fn find(&self, file: &File, path: &Path) -> Option<Found<'a>> {
        let own = file.library.dotted();
        if let Some(item) = self.item(&own, &path.parts[0]) {
            return Some(Found { item, rest: path.parts[1..].to_vec() });
        }
        // The longest name of a library wins.
        (1..path.parts.len()).rev().find_map(|length| {
            let library = self.used_library(file, &path.parts[..length])?;
            let item = self.item(&library, &path.parts[length])?;
            Some(Found { item, rest: path.parts[length + 1..].to_vec() })
        })
    }

    /// Returns the library of this name or alias among those that the file uses.
    fn used_library(&self, file: &File, name: &[String]) -> Option<String> {
        if file.library.parts == name {
            return Some(file.library.dotted());
        }
        file.uses.iter().find_map(|used| {
            let matches = match &used.alias {
                Some(alias) => *name == [alias.text.as_str()] || used.library.parts == name,
                None => used.library.parts == name,
            };
            matches.then(|| used.library.dotted())
        })
    }

    /// Makes the error that nothing has this name, with similar names.
    pub(super) fn unknown(&self, file: &File, path: &Path, what: &str) -> Error {
        let text = path.dotted();
        let own = file.library.dotted();
        let candidates = self.libraries.get(&own).into_iter().flat_map(|items| items.keys());
        let lower = text.to_lowercase();
        let similar = candidates.into_iter().find(|candidate| candidate.to_lowercase() == lower);
        let hint = match similar {
            Some(similar) => format!("; did you mean `{similar}`?"),
            None => self.missing_use(file, path),
        };
        path.span.error(format!("unknown {what} `{text}`{hint}"))
    }

    /// Returns the advice to use a library that exists.
    fn missing_use(&self, file: &File, path: &Path) -> String {
        let library = (1..path.parts.len())
            .rev()
            .map(|length| path.parts[..length].join("."))
            .find(|library| self.libraries.contains_key(library) && self.used_library(file, &split(library)).is_none());
        library.map_or_else(String::new, |library| format!("; the file lacks `using {library};`"))
    }
}

fn split(library: &str) -> Vec<String> {
    library.split('.').map(str::to_owned).collect()
}

impl Path {
    pub(super) fn dotted(&self) -> String {
        self.parts.join(".")
    }
}

/// Fails if two of the names are equal, or would be one name in Rust or in another language.
pub(super) fn check_distinct<'n>(
    names: impl Iterator<Item = &'n Ident>,
    of: &str,
    rust: impl Fn(&str) -> String,
) -> Result<()> {
    let (mut by_form, mut by_rust) = (BTreeMap::new(), BTreeMap::new());
    for name in names {
        let (form, rust) = (snake_case(&name.text), rust(&name.text));
        let others = [by_form.insert(form.clone(), name), by_rust.insert(rust.clone(), name)];
        if let [Some(other), _] | [None, Some(other)] = others {
            let both = if others[0].is_some() { form } else { rust };
            return Err(same_name(name, other, of, &both));
        }
    }
    Ok(())
}

/// Makes the error that `name` is like `other`, because both become `both`.
pub(super) fn same_name(name: &Ident, other: &Ident, of: &str, both: &str) -> Error {
    if name.text == other.text {
        return name.span.error(format!("`{}` is there twice in {of}", name.text));
    }
    let message = format!(
        "`{}` and `{}` ({}) of {of} would both be `{both}` in generated code: rename one",
        name.text,
        other.text,
        other.span.place()
    );
    name.span.error(message)
}
