//! The crates that programs consist of.

use crate::shell;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A crate of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) version: String,
    /// An expression of SPDX.
    pub(crate) licence: String,
    /// Folder of its sources.
    pub(crate) folder: PathBuf,
    /// SHA-256 of its package; ours have none.
    pub(crate) checksum: Option<String>,
    pub(crate) repository: Option<String>,
    /// It runs during the build, and nothing of it is in the programs.
    pub(crate) is_tool: bool,
    /// Name and version of those that it uses itself.
    pub(crate) uses: Vec<(String, String)>,
}

impl Dependency {
    /// True for a crate of this repository.
    pub(crate) fn is_ours(&self) -> bool {
        self.checksum.is_none()
    }
}

/// Returns the crates of these packages, and those that build them, in the order of their names.
///
/// # Errors
///
/// Cargo's message.
pub(crate) fn of(packages: &[&str], target: &str) -> Result<Vec<Dependency>, String> {
    let linked = tree(packages, target, "normal,no-proc-macro")?;
    let all = tree(packages, target, "normal,build")?;
    let metadata = ["metadata", "--format-version=1", "--locked", "--filter-platform", target];
    let text = shell::output(shell::cargo().args(metadata))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let checksums = checksums(&super::read_text(&shell::root().join("Cargo.lock"))?);
    Ok(select(&metadata, &linked, &all, &checksums))
}

type Versions = BTreeSet<(String, String)>;

/// Asks Cargo for the crates that it would compile. Other than the metadata, this knows features.
fn tree(packages: &[&str], target: &str, edges: &str) -> Result<Versions, String> {
    let mut cargo = shell::cargo();
    cargo.args(["tree", "--locked", "--prefix", "none", "--target", target, "--edges", edges, "--format", "{p}"]);
    cargo.args(packages.iter().flat_map(|package| ["-p", package]));
    Ok(shell::output(&mut cargo)?.lines().filter_map(name_and_version).collect())
}

/// Takes apart a line such as `log v0.4.29 (*)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    Some((name.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
}

fn select(
    metadata: &Value,
    linked: &Versions,
    all: &Versions,
    checksums: &BTreeMap<(String, String), String>,
) -> Vec<Dependency> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = |package: &Value| (text(&package["name"]), text(&package["version"]));
    let packages = list(&metadata["packages"]);
    let by_id: BTreeMap<String, (String, String)> =
        packages.iter().map(|package| (text(&package["id"]), key(package))).collect();
    let mut uses: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let Some(user) = by_id.get(&text(&node["id"])) else { continue };
        let ids = list(&node["dependencies"]);
        let mut used: Vec<_> = ids.iter().filter_map(|id| by_id.get(&text(id)).cloned()).collect();
        used.retain(|used| all.contains(used) && used != user);
        used.sort();
        uses.insert(user.clone(), used);
    }
    let mut found: Vec<Dependency> = packages
        .iter()
        .filter(|package| all.contains(&key(package)))
        .map(|package| {
            let key = key(package);
            Dependency {
                // Old manifests separate alternatives by a slash.
                licence: text(&package["license"]).replace(" / ", "/").replace('/', " OR "),
                folder: Path::new(&text(&package["manifest_path"])).parent().map(Path::to_path_buf).unwrap_or_default(),
                checksum: checksums.get(&key).cloned(),
                repository: package["repository"].as_str().map(str::to_owned),
                is_tool: !linked.contains(&key),
                uses: uses.remove(&key).unwrap_or_default(),
                name: key.0,
                version: key.1,
            }
        })
        .collect();
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    found
}

/// Returns the checksums in a `Cargo.lock`, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let blocks = lock.split("[[package]]").skip(1);
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let entry = |block: &str| Some(((field(block, "name")?, field(block, "version")?), field(block, "checksum")?));
    blocks.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_of_a_tree_are_read() {
        let key = |name: &str, version: &str| Some((name.to_owned(), version.to_owned()));
        assert_eq!(name_and_version("log v0.4.29 (*)"), key("log", "0.4.29"));
        assert_eq!(name_and_version("esatto v0.1.0 (/x/y)"), key("esatto", "0.1.0"));
        assert_eq!(name_and_version(""), None);
        assert_eq!(name_and_version("[build-dependencies]"), None);
    }

    #[test]
    fn a_lock_file_names_checksums() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nchecksum = \"ff\"\n\n\
                    [[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n";
        let found: Vec<_> = checksums(lock).into_iter().collect();
        assert_eq!(found, [(("a".to_owned(), "1.0.0".to_owned()), "ff".to_owned())]);
    }

    #[test]
    fn tools_are_told_from_what_is_linked() {
        let package = |name: &str, license: &str| json!({"name": name, "version": "1.0.0", "id": name, "license": license, "manifest_path": "/x/Cargo.toml"});
        let metadata = json!({
            "packages": [package("b", "MIT/Apache-2.0"), package("a", "MIT"), package("unused", "MIT")],
            "resolve": {"nodes": [{"id": "a", "dependencies": ["b", "unused"]}, {"id": "b", "dependencies": []}]},
        });
        let set =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), "1.0.0".to_owned())).collect::<Versions>();
        let found = select(&metadata, &set(&["a"]), &set(&["a", "b"]), &BTreeMap::new());
        let names: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.is_tool)).collect();
        assert_eq!(names, [("a", false), ("b", true)]);
        assert_eq!(found[0].uses, [("b".to_owned(), "1.0.0".to_owned())]);
        assert_eq!(found[1].licence, "MIT OR Apache-2.0");
    }
}
