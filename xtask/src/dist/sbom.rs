//! The list of the parts of the programs, in CycloneDX's JSON.

use crate::system_files::dependencies::Dependency;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Version of the format.
const SPEC_VERSION: &str = "1.5";

/// The programs and their surroundings.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) version: &'a str,
    /// Time of the sources, as in `2026-01-31T12:00:00Z`.
    pub(super) time: &'a str,
    /// Version of the compiler, whose standard library is in the programs.
    pub(super) rustc: &'a str,
    /// Packages with programs.
    pub(super) packages: &'a [&'a str],
}

/// Returns the list.
pub(super) fn bom(subject: &Subject<'_>, dependencies: &[Dependency]) -> Value {
    let root = format!("pkg:generic/esatto@{}", subject.version);
    let std = format!("pkg:generic/rust-std@{}", subject.rustc);
    let musl = "pkg:generic/musl";
    let mut components: Vec<Value> = dependencies.iter().map(component).collect();
    // Static programs also contain these. The compiler brings them.
    components.push(json!({
        "type": "library", "bom-ref": std, "name": "rust-std", "version": subject.rustc, "purl": std, "scope": "required",
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }));
    components.push(json!({
        "type": "library", "bom-ref": musl, "name": "musl", "purl": musl, "scope": "required",
        "description": format!("C library, as Rust {} brings it", subject.rustc),
        "licenses": [{"expression": "MIT"}],
    }));
    let is_program = |one: &&Dependency| subject.packages.contains(&one.name.as_str());
    let mut uses: Vec<String> =
        dependencies.iter().filter(is_program).map(|one| purl(&one.name, &one.version)).collect();
    uses.extend([std.clone(), musl.to_owned()]);
    let mut edges = vec![json!({"ref": root, "dependsOn": uses})];
    edges.extend(dependencies.iter().map(|one| {
        let uses: Vec<String> = one.uses.iter().map(|(name, version)| purl(name, version)).collect();
        json!({"ref": purl(&one.name, &one.version), "dependsOn": uses})
    }));
    edges.extend([json!({"ref": std, "dependsOn": [musl]}), json!({"ref": musl, "dependsOn": []})]);
    json!({
        "$schema": format!("http://cyclonedx.org/schema/bom-{SPEC_VERSION}.schema.json"),
        "bomFormat": "CycloneDX",
        "specVersion": SPEC_VERSION,
        "version": 1,
        "metadata": {
            "timestamp": subject.time,
            "tools": {"components": [{"type": "application", "name": "cargo xtask dist", "version": subject.version}]},
            "component": {
                "type": "application", "bom-ref": root, "name": "esatto", "version": subject.version, "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": components,
        "dependencies": edges,
    })
}

fn component(one: &Dependency) -> Value {
    let purl = purl(&one.name, &one.version);
    let scope = if one.is_tool { "excluded" } else { "required" };
    let mut component = Map::new();
    let mut set = |name: &str, value: Value| component.insert(name.to_owned(), value);
    set("type", json!("library"));
    set("bom-ref", json!(purl));
    set("name", json!(one.name));
    set("version", json!(one.version));
    set("scope", json!(scope));
    set("purl", json!(purl));
    if !one.licence.is_empty() {
        set("licenses", json!([{"expression": one.licence}]));
    }
    if let Some(checksum) = &one.checksum {
        set("hashes", json!([{"alg": "SHA-256", "content": checksum}]));
    }
    if let Some(repository) = &one.repository {
        set("externalReferences", json!([{"type": "vcs", "url": repository}]));
    }
    Value::Object(component)
}

fn purl(name: &str, version: &str) -> String {
    // `+` separates build metadata, and stands for a space in such an address.
    format!("pkg:cargo/{name}@{}", version.replace('+', "%2B"))
}

/// Returns the faults of a list: fields that the format requires, names that occur twice, and edges
/// to nothing.
pub(super) fn faults(bom: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (field, wanted) in
        [("bomFormat", json!("CycloneDX")), ("specVersion", json!(SPEC_VERSION)), ("version", json!(1))]
    {
        if bom[field] != wanted {
            faults.push(format!("{field} is {} instead of {wanted}", bom[field]));
        }
    }
    let none = Vec::new();
    let components = bom["components"].as_array().unwrap_or(&none);
    let mut refs = BTreeSet::new();
    for component in components.iter().chain([&bom["metadata"]["component"]]) {
        let name = component["name"].as_str().unwrap_or_default();
        let missing =
            ["type", "name", "bom-ref", "purl"].into_iter().filter(|field| component[*field].as_str().is_none());
        faults.extend(missing.map(|field| format!("the component '{name}' has no {field}")));
        if component["licenses"][0]["expression"].as_str().is_none() {
            faults.push(format!("the component '{name}' has no licence"));
        }
        for hash in component["hashes"].as_array().unwrap_or(&none) {
            let is_sha256 = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !hash["content"].as_str().is_some_and(is_sha256) {
                faults.push(format!("the component '{name}' has the hash {}", hash["content"]));
            }
        }
        if !refs.insert(component["bom-ref"].as_str().unwrap_or_default()) {
            faults.push(format!("two components have the bom-ref {}", component["bom-ref"]));
        }
    }
    for edge in bom["dependencies"].as_array().unwrap_or(&none) {
        let ends = edge["dependsOn"].as_array().unwrap_or(&none).iter().chain([&edge["ref"]]);
        let unknown = ends.filter(|end| !end.as_str().is_some_and(|end| refs.contains(end)));
        faults.extend(unknown.map(|end| format!("{end} depends or is depended on, and is no component")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Value {
        let one = |name: &str, checksum: Option<String>, uses: &[&str]| Dependency {
            name: name.to_owned(),
            version: "1.0.0+x".to_owned(),
            licence: "MIT".to_owned(),
            folder: "/x".into(),
            checksum,
            repository: None,
            is_tool: false,
            uses: uses.iter().map(|name| ((*name).to_owned(), "1.0.0+x".to_owned())).collect(),
        };
        let subject = Subject { version: "0.1.0", time: "2026-01-31T12:00:00Z", rustc: "1.95.0", packages: &["cli"] };
        bom(&subject, &[one("cli", None, &["log"]), one("log", Some("0f".repeat(32)), &[])])
    }

    #[test]
    fn a_list_has_no_faults() {
        let bom = example();
        assert_eq!(faults(&bom), [""; 0]);
        assert_eq!(bom["components"][1]["purl"], "pkg:cargo/log@1.0.0%2Bx");
        let programs = bom["dependencies"][0]["dependsOn"].as_array().unwrap();
        assert_eq!(programs.len(), 3, "the program, the standard library and the C library: {programs:?}");
    }

    #[test]
    fn faults_are_found() {
        let broken = |change: fn(&mut Value)| {
            let mut bom = example();
            change(&mut bom);
            faults(&bom).len()
        };
        assert_eq!(broken(|bom| bom["specVersion"] = json!("2")), 1);
        assert_eq!(broken(|bom| bom["components"][0]["name"] = Value::Null), 1);
        assert_eq!(broken(|bom| bom["components"][1]["hashes"][0]["content"] = json!("xx")), 1);
        assert_eq!(broken(|bom| bom["components"][0]["licenses"] = Value::Null), 1);
        assert_eq!(broken(|bom| bom["dependencies"][1]["dependsOn"][0] = json!("pkg:cargo/none@1")), 1);
        assert!(broken(|bom| bom["components"][0] = bom["components"][1].clone()) >= 1);
    }
}
