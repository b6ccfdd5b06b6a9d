//! Real libraries, from a folder that the variable `ESATTO_FIDL_LIBRARIES` names: for example the
//! `fidl` folder of a Fuchsia SDK.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_fidl_codegen::Config;

use crate::skip::{Skip, skip};

#[allow(dead_code, unreachable_pub, reason = "shared with other tests")]
#[path = "../../src/skip.rs"]
mod skip;

/// Files of a library, and the libraries that it uses.
#[derive(Default)]
struct Library {
    files: Vec<PathBuf>,
    uses: BTreeSet<String>,
}

#[test]
fn the_libraries_of_a_folder_compile() {
    skip(|| {
        let Some(folder) = env::var_os("ESATTO_FIDL_LIBRARIES") else {
            return Err(Skip("no FIDL libraries: ESATTO_FIDL_LIBRARIES names no folder of .fidl files".to_owned()));
        };
        let libraries = libraries(Path::new(&folder));
        let (mut complete, mut failed) = (BTreeSet::new(), Vec::new());
        for name in libraries.keys() {
            let Some(used) = closure(&libraries, name) else {
                eprintln!("{name}: a library that it uses is not in the folder");
                continue;
            };
            match config(&libraries, &used).library(name).generate() {
                Ok(_) => complete.extend(used),
                Err(error) => failed.push(format!("{name}: {error}")),
            }
        }
        let code = config(&libraries, &complete).generate().unwrap();
        eprintln!("{} libraries, {} lines of code", complete.len(), code.lines().count());
        for line in &failed {
            eprintln!("{line}");
        }
        check(&code);
        assert!(complete.len() >= 30, "the folder has too few libraries");
        assert!(failed.is_empty(), "{} libraries are outside of the supported language", failed.len());
        Ok(())
    });
}

fn config<'n>(libraries: &BTreeMap<String, Library>, names: impl IntoIterator<Item = &'n String>) -> Config {
    let files = names.into_iter().flat_map(|name| &libraries[name].files);
    files.fold(Config::new(), |config, file| config.file(file))
}

/// Returns the library and all that it uses; `None` if one is missing.
fn closure(libraries: &BTreeMap<String, Library>, name: &str) -> Option<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        match libraries.get(&name) {
            Some(library) => {
                if found.insert(name) {
                    open.extend(library.uses.iter().cloned());
                }
            }
            None if name == "zx" => {}
            None => return None,
        }
    }
    Some(found)
}

fn libraries(folder: &Path) -> BTreeMap<String, Library> {
    let mut libraries: BTreeMap<String, Library> = BTreeMap::new();
    for file in files(folder) {
        let text = fs::read_to_string(&file).unwrap();
        let statement = |keyword: &'static str| {
            let words = text.lines().filter_map(move |line| line.strip_prefix(keyword));
            words.filter(|words| !words.contains('=')).filter_map(|words| words.split([' ', ';']).next())
        };
        let Some(name) = statement("library ").next() else { continue };
        let library = libraries.entry(name.to_owned()).or_default();
        library.uses.extend(statement("using ").map(str::to_owned));
        library.files.push(file);
    }
    libraries
}

/// Returns all `.fidl` files of a folder, in the order of their paths.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let nested = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => Vec::from_iter(path.extension().is_some_and(|name| name == "fidl").then_some(path)),
    };
    paths.into_iter().flat_map(nested).collect()
}

/// Compiles the code in a package of its own.
fn check(code: &str) {
    let package = env::temp_dir().join(format!("esatto-fidl-libraries-{}", std::process::id()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = format!(
        "[package]\nname = \"libraries\"\nversion = \"0.0.0\"\nedition = \"2024\"\n
        [dependencies]\nesatto-fidl = {{ path = {:?} }}\n[workspace]\n",
        root.join("crates/fidl")
    );
    fs::create_dir_all(package.join("src")).unwrap();
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    fs::write(package.join("src/lib.rs"), code).unwrap();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["check", "--offline", "--quiet"]).current_dir(&package).env("CARGO_TARGET_DIR", package.join("target"));
    let output = cargo.output().unwrap();
    fs::remove_dir_all(&package).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
