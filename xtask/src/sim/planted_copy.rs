//! A copy of the workspace that contains the planted bugs (`tests/sim/planted`).

use esatto_planted::Bug;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folders that the copy does not need, wherever they are.
const LEFT_OUT: &[&str] = &[".git", "target"];

/// The manifest line that gives a crate the switch of the bugs.
const DEPENDENCY: &str = "esatto-planted.workspace = true";

/// Makes `copy` a copy of the workspace at `root` that contains the planted bugs. Files that are up
/// to date are not written, so that Cargo compiles only changed crates.
///
/// # Errors
///
/// A bug does not apply, or a file cannot be read or written.
pub(crate) fn write(root: &Path, copy: &Path) -> Result<(), String> {
    let changed = planted_files(root)?;
    let mut wanted = BTreeSet::new();
    files(root, &mut wanted, Path::new(""))?;
    for path in &wanted {
        let content = match changed.get(path) {
            Some(text) => text.clone().into_bytes(),
            None => std::fs::read(root.join(path)).map_err(|error| cannot("read", &root.join(path), &error))?,
        };
        let to = copy.join(path);
        if std::fs::read(&to).is_ok_and(|present| present == content) {
            continue;
        }
        let folder = to.parent().unwrap_or(copy);
        std::fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
        std::fs::write(&to, content).map_err(|error| cannot("write", &to, &error))?;
    }
    remove_others(copy, &wanted)
}

/// The files that differ from those of the workspace: sources with bugs in them, and the manifests
/// of their crates.
fn planted_files(root: &Path) -> Result<BTreeMap<PathBuf, String>, String> {
    let bugs = Bug::all(&root.join("tests/sim/planted/bugs"))?;
    let mut by_file = BTreeMap::<&str, Vec<&Bug>>::new();
    bugs.iter().for_each(|bug| by_file.entry(&bug.file).or_default().push(bug));
    let mut changed = BTreeMap::new();
    let mut errors = Vec::new();
    for (file, bugs) in by_file {
        let planted = read(&root.join(file)).and_then(|source| esatto_planted::plant(&source, bugs.iter().copied()));
        match planted {
            Ok(planted) => drop(changed.insert(PathBuf::from(file), planted)),
            Err(error) => {
                errors.push(error);
                errors.extend(bugs.into_iter().filter_map(|bug| moved(root, bug)));
            }
        }
    }
    if !errors.is_empty() {
        return Err(format!("planted bugs do not apply; mend tests/sim/planted/bugs\n{}", errors.join("\n")));
    }
    let sources: Vec<PathBuf> = changed.keys().cloned().collect();
    for source in sources {
        let manifest = source.ancestors().map(|folder| folder.join("Cargo.toml")).find(|path| root.join(path).exists());
        let manifest = manifest.ok_or_else(|| format!("no crate contains {}", source.display()))?;
        let text = read(&root.join(&manifest))?;
        let (before, after) = text
            .split_once("[dependencies]\n")
            .ok_or_else(|| format!("{} has no [dependencies]", manifest.display()))?;
        changed.insert(manifest, format!("{before}[dependencies]\n{DEPENDENCY}\n{after}"));
    }
    Ok(changed)
}

/// Names the file that contains a bug's piece of source now, if it is another one than before.
fn moved(root: &Path, bug: &Bug) -> Option<String> {
    let mut sources = BTreeSet::new();
    files(root, &mut sources, Path::new("crates")).ok()?;
    let found = sources.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut found = found.filter(|path| read(&root.join(path)).is_ok_and(|source| bug.is_in(&source)));
    let path = found.next().filter(|path| **path != Path::new(&bug.file))?;
    Some(format!("{}.bug: its source is in {} now", bug.name, path.display()))
}

/// Adds the files below a folder of the workspace, relative to its root.
fn files(root: &Path, into: &mut BTreeSet<PathBuf>, folder: &Path) -> Result<(), String> {
    let full = root.join(folder);
    for entry in std::fs::read_dir(&full).map_err(|error| cannot("read", &full, &error))? {
        let entry = entry.map_err(|error| cannot("read", &full, &error))?;
        let name = entry.file_name();
        if LEFT_OUT.iter().any(|left_out| name == *left_out) {
            continue;
        }
        let path = folder.join(name);
        if root.join(&path).is_dir() {
            files(root, into, &path)?;
        } else {
            into.insert(path);
        }
    }
    Ok(())
}

/// Removes the files of the copy that the workspace does not have: Cargo would take a folder of
/// `crates/` without a manifest for a broken crate.
fn remove_others(copy: &Path, wanted: &BTreeSet<PathBuf>) -> Result<(), String> {
    let mut present = BTreeSet::new();
    files(copy, &mut present, Path::new(""))?;
    for path in present.difference(wanted) {
        let path = copy.join(path);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot("remove", &path, &error)),
            _ => {}
        }
        // Fails for the first folder that is not empty.
        let _ = path.ancestors().skip(1).try_for_each(std::fs::remove_dir);
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| cannot("read", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}
