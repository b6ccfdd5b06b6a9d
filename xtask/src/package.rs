//! The crates as crates.io gets them: their metadata, and the files in each package.

use crate::shell;
use serde_json::Value;

/// Largest package, in bytes of its files. The registry refuses archives of more than 10 MiB.
const MAX_PACKAGE_BYTES: u64 = 8 << 20;
/// Files that each package has.
const FILES: &[&str] = &["Cargo.toml", "LICENSE", "README.md"];
/// Fields that each manifest has, beside those that Cargo asks for.
const FIELDS: &[&str] = &["description", "license", "readme", "documentation", "rust_version"];

/// Packs all crates that can be published, and builds each from its package if `verify`.
///
/// # Errors
///
/// The faults, one per line, or Cargo's message.
pub(crate) fn run(verify: bool) -> Result<(), String> {
    let text = shell::output(shell::cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    // `publish = false` is an empty list of registries.
    let published: Vec<&Value> = packages.iter().filter(|package| package["publish"].is_null()).collect();
    let mut faults = Vec::new();
    for package in &published {
        let name = package["name"].as_str().unwrap_or_default();
        faults.extend(manifest_faults(package).into_iter().map(|fault| format!("{name}: {fault}")));
        let list = shell::output(shell::cargo().args(["package", "--list", "--allow-dirty", "-p", name]))?;
        let folder = package["manifest_path"].as_str().unwrap_or_default().trim_end_matches("Cargo.toml").to_owned();
        let size = |file: &str| std::fs::metadata(format!("{folder}{file}")).map_or(0, |data| data.len());
        let files: Vec<(&str, u64)> = list.lines().map(|file| (file, size(file))).collect();
        faults.extend(file_faults(&files).into_iter().map(|fault| format!("{name}: {fault}")));
    }
    if !faults.is_empty() {
        return Err(faults.join("\nxtask: "));
    }
    let mut pack = shell::cargo();
    pack.args(["package", "--quiet", "--allow-dirty"]);
    pack.args(published.iter().flat_map(|package| ["-p", package["name"].as_str().unwrap_or_default()]));
    if !verify {
        pack.arg("--no-verify");
    }
    shell::run(&mut pack)?;
    println!("packages: {} crates", published.len());
    Ok(())
}

fn manifest_faults(package: &Value) -> Vec<String> {
    let mut faults: Vec<String> = FIELDS
        .iter()
        .filter(|field| package[**field].is_null())
        .map(|field| format!("no {field} in Cargo.toml"))
        .collect();
    for list in ["keywords", "categories"] {
        if package[list].as_array().is_none_or(Vec::is_empty) {
            faults.push(format!("no {list} in Cargo.toml"));
        }
    }
    // A path without a version is dropped from dev-dependencies; elsewhere it cannot be published.
    let dependencies = package["dependencies"].as_array().map_or(&[][..], Vec::as_slice);
    for dependency in dependencies.iter().filter(|dependency| dependency["kind"] != "dev") {
        if !dependency["path"].is_null() && dependency["req"] == "*" {
            faults.push(format!("the dependency {} has no version", dependency["name"]));
        }
    }
    faults
}

fn file_faults(files: &[(&str, u64)]) -> Vec<String> {
    let missing = FILES.iter().filter(|name| !files.iter().any(|(file, _)| file == *name));
    let mut faults: Vec<String> = missing.map(|name| format!("the package has no {name}")).collect();
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    if total > MAX_PACKAGE_BYTES {
        faults.push(format!("the package has {total} bytes, more than {MAX_PACKAGE_BYTES}"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_has_all_that_a_registry_shows() {
        let mut package = json!({
            "description": "x", "license": "x", "readme": "x", "documentation": "x", "rust_version": "x",
            "keywords": ["x"], "categories": ["x"],
            "dependencies": [{"name": "a", "kind": null, "path": "/a", "req": "^0.1"}, {"kind": "dev", "path": "/b", "req": "*"}],
        });
        assert_eq!(manifest_faults(&package), [""; 0]);
        package["keywords"] = json!([]);
        package["readme"] = Value::Null;
        package["dependencies"][0]["req"] = json!("*");
        assert_eq!(manifest_faults(&package).len(), 3);
    }

    #[test]
    fn a_package_has_its_licence_and_is_small() {
        let files = [("Cargo.toml", 1), ("LICENSE", 1), ("README.md", 1)];
        assert_eq!(file_faults(&files), [""; 0]);
        assert_eq!(file_faults(&files[..2]), ["the package has no README.md"]);
        assert_eq!(file_faults(&[&files[..], &[("big", 9 << 20)]].concat()).len(), 1);
    }
}
