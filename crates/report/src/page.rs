//! The page itself: one file from the parts in `page/`.
//!
//! The parts are plain modules that browsers and Node.js can load one by one. Here each becomes a
//! function that is called once, because a file that is opened from a disk cannot load modules.

use std::fmt::Write as _;
use std::io::{self, Write};

use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const PAGE: &str = include_str!("../page/page.html");
const STYLE: &str = include_str!("../page/style.css");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../page/", $name, ".js")))),*]
    };
}

/// All modules. Each imports only from earlier ones.
const MODULES: &[(&str, &str)] = modules![
    "decode",
    "lane",
    "stacks",
    "model",
    "time",
    "viewport",
    "colors",
    "layout",
    "paint",
    "aggregate",
    "search",
    "link",
    "dom",
    "flame",
    "profiles",
    "details",
    "tables",
    "input",
    "labels",
    "app",
    "boot",
];

/// Writes the page.
pub(crate) fn write(out: &mut impl Write, description: &Value, blocks: &[String]) -> io::Result<()> {
    let script = script();
    for part in parts(PAGE) {
        match part {
            Part::Text(text) => out.write_all(text.as_bytes())?,
            Part::Name("style") => out.write_all(STYLE.as_bytes())?,
            Part::Name("style-hash") => out.write_all(hash(STYLE).as_bytes())?,
            Part::Name("script") => out.write_all(script.as_bytes())?,
            Part::Name("script-hash") => out.write_all(hash(&script).as_bytes())?,
            Part::Name("data") => write_data(out, description, blocks)?,
            Part::Name(name) => unreachable!("page.html has no part {name}"),
        }
    }
    Ok(())
}

/// Writes the description and the blocks as elements that browsers do not run.
fn write_data(out: &mut impl Write, description: &Value, blocks: &[String]) -> io::Result<()> {
    // Nothing in a text of the trace may end the element.
    let description = description.to_string().replace('<', "\\u003c");
    writeln!(out, "<script type=\"application/json\" id=\"description\">{description}</script>")?;
    for (number, block) in blocks.iter().enumerate() {
        writeln!(out, "<script type=\"text/plain\" id=\"block-{number}\">{block}</script>")?;
    }
    Ok(())
}

/// Returns the hash of a script or a style as Content-Security-Policy wants it.
fn hash(text: &str) -> String {
    format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
}

enum Part<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Splits a template at its `{{name}}`.
fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut pieces = template.split("{{");
    parts.extend(pieces.next().map(Part::Text));
    for piece in pieces {
        let (name, text) = piece.split_once("}}").expect("page.html closes all its parts");
        parts.extend([Part::Name(name), Part::Text(text)]);
    }
    parts
}

/// Returns all modules as one script.
fn script() -> String {
    let mut script = String::new();
    for (name, source) in MODULES {
        let mut exports = Vec::new();
        writeln!(script, "const module_{name} = (() => {{").expect("memory takes all bytes");
        for line in source.lines() {
            // Only comments of whole lines are left out: nothing else can be told apart so easily.
            if line.trim_start().starts_with("//") {
                continue;
            }
            let line = module_line(line, &mut exports);
            script.push_str(&line);
            script.push('\n');
        }
        writeln!(script, "return {{ {} }};\n}})();", exports.join(", ")).expect("memory takes all bytes");
    }
    script
}

/// Turns a line of a module into a line of a function, and notes the exported names.
fn module_line(line: &str, exports: &mut Vec<String>) -> String {
    if let Some((names, module)) = line.strip_prefix("import ").and_then(|line| line.split_once(" from \"./")) {
        let module = module.trim_end_matches(".js\";");
        let names = names.strip_prefix("* as ").map_or_else(|| names.replace(" as ", ": "), str::to_owned);
        return format!("const {names} = module_{module};");
    }
    let Some(exported) = line.strip_prefix("export ") else { return line.to_owned() };
    if let Some(names) = exported.strip_prefix("{ ") {
        exports.extend(names.trim_end_matches(" };").split(", ").map(str::to_owned));
        return String::new();
    }
    let declared = exported.strip_prefix("async ").unwrap_or(exported);
    let name = declared.split([' ', '(']).nth(1).expect("an export declares a name");
    exports.push(name.to_owned());
    exported.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_and_exports_become_plain_code() {
        let mut exports = Vec::new();
        let mut line = |line| module_line(line, &mut exports);
        assert_eq!(line("import { a, b as c } from \"./lane.js\";"), "const { a, b: c } = module_lane;");
        assert_eq!(line("import * as time from \"./time.js\";"), "const time = module_time;");
        assert_eq!(line("export async function one(a) {"), "async function one(a) {");
        assert_eq!(line("export class Two {"), "class Two {");
        assert_eq!(line("export const THREE = 3;"), "const THREE = 3;");
        assert_eq!(line("export { FOUR, FIVE };"), "");
        assert_eq!(exports, ["one", "Two", "THREE", "FOUR", "FIVE"]);
    }

    #[test]
    fn modules_import_only_from_earlier_ones() {
        let mut earlier: Vec<&str> = Vec::new();
        for (name, source) in MODULES {
            for line in source.lines().filter(|line| line.starts_with("import ")) {
                let module = line.split("\"./").nth(1).and_then(|rest| rest.strip_suffix(".js\";"));
                let module = module.unwrap_or_else(|| panic!("{name}.js: cannot read {line}"));
                assert!(earlier.contains(&module), "{name}.js imports from {module}.js, which comes later");
            }
            earlier.push(name);
        }
    }

    #[test]
    fn all_modules_are_in_the_page() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(module) = name.strip_suffix(".js").filter(|name| !name.contains('.')) {
                assert!(MODULES.iter().any(|(known, _)| *known == module), "{name} is not in the page");
            }
        }
    }

    #[test]
    fn texts_cannot_end_their_element() {
        let mut out = Vec::new();
        let description = serde_json::json!({ "title": "</script><script>alert(1)</script>" });
        write_data(&mut out, &description, &[]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("</script>").count(), 1);
    }
}
