//! Checks that the program uses each public item of the crate's source.

use std::collections::BTreeSet;
use std::path::Path;

use esatto_tests::Skip;

use crate::project::Project;

/// Public items of private types, and of the crate's macros.
const UNREACHABLE: [&str; 2] = ["patch", "patch_stack"];

pub(crate) fn all_are_used(project: &Project) -> Result<(), Skip> {
    let source = project.source("perfetto-sdk").join("src");
    let mut items = BTreeSet::new();
    // Without the folder of generated messages: the code that `messages` generates calls each of
    // their setters.
    for file in files(&source) {
        items.extend(public_items(&file));
    }
    assert!(items.len() > 200, "only {}: the source has another format now: {items:?}", items.len());
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/program/src");
    let program = files(&program).concat();
    let words: BTreeSet<&str> = program.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let unused: Vec<_> =
        items.iter().filter(|item| !words.contains(&item[..]) && !UNREACHABLE.contains(&&item[..])).collect();
    assert!(unused.is_empty(), "the program does not use: {unused:?}");
    Ok(())
}

/// Returns the texts of the files of a folder, without the tests at their ends.
fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let text = |path| std::fs::read_to_string(path).expect("text");
    files.map(text).map(|text| text.split("#[cfg(test)]").next().unwrap_or_default().to_owned()).collect()
}

/// Returns the names of public items, of the variants of public enums, and of macros that are not
/// hidden.
fn public_items(text: &str) -> Vec<String> {
    let mut items = Vec::new();
    let (mut in_enum, mut exported, mut hidden) = (false, false, false);
    for line in text.lines() {
        let code = line.trim_start();
        let indented = line.len() - code.len();
        let name = |text: &str| {
            let name: String = text.chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
            Some(name).filter(|name| !name.is_empty() && !name.starts_with("__"))
        };
        match code {
            "#[macro_export]" => exported = true,
            "#[doc(hidden)]" => hidden = true,
            _ if code.starts_with("macro_rules! ") => {
                items.extend(name(&code["macro_rules! ".len()..]).filter(|_| exported && !hidden));
                (exported, hidden) = (false, false);
            }
            _ if code.starts_with("pub ") => {
                let words: Vec<_> =
                    code.split(' ').skip(1).skip_while(|word| ["const", "unsafe"].contains(word)).collect();
                let declared = if ["fn", "struct", "enum", "trait", "mod", "type"].contains(&words[0]) {
                    words.get(1)
                } else {
                    words.first()
                };
                items.extend(declared.and_then(|word| name(word)));
                in_enum = words[0] == "enum";
                hidden = false;
            }
            _ if indented == 0 && code.starts_with('}') => in_enum = false,
            // A variant. The names in it are those of its fields.
            _ if in_enum && indented == 4 && code.starts_with(char::is_uppercase) => items.extend(name(code)),
            _ => {}
        }
    }
    items
}
