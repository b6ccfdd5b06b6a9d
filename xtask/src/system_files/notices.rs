//! The licences of the crates in the programs, which ask that their texts come along.

use super::dependencies::Dependency;
use super::{names, read};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Beginnings of the names of files with licences.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Returns one text with the licence of each crate that is not ours. Equal texts are there once.
///
/// # Errors
///
/// The sources of a crate cannot be read.
pub(crate) fn third_party(dependencies: &[Dependency]) -> Result<String, String> {
    let mut list = String::from(
        "Programs of Esatto contain the crates below, in Rust and C, each with its licence. The texts of the licences\n\
         follow, each with the crates to which it belongs.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in dependencies.iter().filter(|one| !one.is_tool && !one.is_ours()) {
        let name = format!("{} {}", one.name, one.version);
        let _ = writeln!(list, "{name}: {}", one.licence);
        for path in licence_files(&one.folder)? {
            let text = String::from_utf8_lossy(&read(&path)?).replace("\r\n", "\n").trim_end().to_owned();
            let users = texts.entry(text).or_default();
            if users.last() != Some(&name) {
                users.push(name.clone());
            }
        }
    }
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| a.0.cmp(&b.0)));
    for (text, users) in texts {
        let _ = write!(list, "\n{}\n{}\n\n{text}\n", "-".repeat(80), users.join(", "));
    }
    Ok(list)
}

/// Returns the files with licences in a folder, and in the folders of sources in C inside it.
fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        let is_licence = NAMES.iter().any(|start| name.to_ascii_uppercase().starts_with(start));
        if is_licence && path.is_file() {
            found.push(path);
        } else if path.is_dir() && !matches!(name.as_str(), "src" | "tests" | "benches" | "examples") {
            let inside = names(&path)?.into_iter().filter(|name| NAMES.contains(&name.as_str()));
            found.extend(inside.map(|name| path.join(name)).filter(|path| path.is_file()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system_files::{File, empty_folder};

    #[test]
    fn equal_texts_are_there_once() {
        let folder =
            empty_folder(&std::env::temp_dir().join(format!("esatto-notices-{}", std::process::id()))).unwrap();
        let crate_of = |name: &str, licence: &str, path: &str| {
            let folder = folder.join(name);
            File::new(folder.join(path), licence, 0o644).install().unwrap();
            Dependency {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                licence: "MIT".to_owned(),
                folder,
                checksum: Some("ff".to_owned()),
                repository: None,
                is_tool: false,
                uses: Vec::new(),
            }
        };
        let ours = Dependency { checksum: None, ..crate_of("ours", "Mine", "LICENSE") };
        let tool = Dependency { is_tool: true, ..crate_of("tool", "Hammer", "LICENSE") };
        let text = third_party(&[
            crate_of("a", "Permission", "LICENSE-MIT"),
            crate_of("b", "Permission\n", "LICENSE"),
            crate_of("c", "Redistribution", "zstd/LICENSE"),
            ours,
            tool,
        ]);
        std::fs::remove_dir_all(&folder).unwrap();
        let text = text.unwrap();
        assert_eq!(text.matches("Permission").count(), 1, "{text}");
        assert!(text.contains("\na 1.0.0, b 1.0.0\n\nPermission\n") && text.contains("\nc 1.0.0\n\nRedist"), "{text}");
        assert!(!text.contains("Mine") && !text.contains("Hammer"), "{text}");
    }
}
