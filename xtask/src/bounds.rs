//! `docs/bounds.md` against the constants in the sources.

use crate::shell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PAGE: &str = "docs/bounds.md";
/// Folders under `crates/` whose constants are on the page.
const CRATES: &[&str] = &[
    "service",
    "daemon",
    "daemon-program",
    "probes",
    "trace-files",
    "ipc",
    "fidl",
    "shm",
    "filter",
    "instances",
    "esatto",
    "console-interceptor",
    "tower-layer",
    "trace",
    "convert",
    "inputs",
    "edit",
    "report",
    "ui-server",
    "cli",
];

/// The workspace of queries. Files of it have this before their path on the page.
const QUERY: &str = "query";

/// File under `crates/`, or of the workspace of queries, and name of a constant.
type Key = (String, String);

/// Checks that the page has every bound, with its value.
///
/// # Errors
///
/// Every difference, one per line.
pub(crate) fn run() -> Result<(), String> {
    let page = shell::root().join(PAGE);
    let page = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
    let crates = shell::root().join("crates");
    let mut constants = BTreeMap::new();
    for name in CRATES {
        collect(&crates, &crates.join(name).join("src"), &mut constants)?;
    }
    let query = shell::root().join(QUERY);
    for folder in fs::read_dir(&query).map_err(|error| format!("{}: {error}", query.display()))? {
        let sources = folder.map_err(|error| format!("{}: {error}", query.display()))?.path().join("src");
        if sources.is_dir() {
            collect(&shell::root(), &sources, &mut constants)?;
        }
    }
    let differences = differences(&page, &constants);
    if differences.is_empty() {
        println!("bounds: {} constants agree with {PAGE}", constants.keys().filter(|(_, name)| is_bound(name)).count());
        Ok(())
    } else {
        Err(differences.join("\nxtask: "))
    }
}

/// True if a constant with this name must be on the page.
fn is_bound(name: &str) -> bool {
    name.starts_with("MAX_") || name.contains("_BUDGET") || name.contains("_PER_")
}

/// All constants in a folder, with their values. Their paths begin at `root`.
fn collect(root: &Path, folder: &Path, constants: &mut BTreeMap<Key, String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            // Tests have bounds of their own.
            if !path.ends_with("tests") {
                collect(root, &path, constants)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let file = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
            for (name, expression) in constants_of(&text) {
                constants.entry((file.clone(), name)).or_insert(expression);
            }
        }
    }
    Ok(())
}

/// The constants of a source, with their expressions on one line.
fn constants_of(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("const ") {
        let before = rest[..at].rsplit('\n').next().unwrap_or_default().trim();
        rest = &rest[at + "const ".len()..];
        let name_end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(0);
        let is_item = before.is_empty() || before.starts_with("pub");
        let Some((head, tail)) = rest.split_once('=') else { break };
        if is_item && name_end > 0 && head[name_end..].starts_with(':') && !head.contains(['\n', ';']) {
            let expression = tail.split(';').next().unwrap_or_default();
            found.push((rest[..name_end].to_owned(), expression.split_whitespace().collect::<Vec<_>>().join(" ")));
        }
    }
    found
}

fn differences(page: &str, constants: &BTreeMap<Key, String>) -> Vec<String> {
    let mut differences = Vec::new();
    let mut listed: BTreeSet<Key> = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, value, constant, ..] = cells[..] else { continue };
        let Some((name, file)) = constant.strip_suffix(')').and_then(|text| text.split_once(" (")) else { continue };
        let key = (file.trim_matches('`').to_owned(), name.trim_matches('`').to_owned());
        if !key.0.ends_with(".rs") {
            continue;
        }
        if cells.len() != 6 || cells.iter().any(|cell| cell.is_empty()) {
            differences.push(format!("{PAGE}: the row of {} has not 6 cells with content", key.1));
        }
        if let Some(expression) = constants.get(&key) {
            let is_same = match value.strip_prefix('`') {
                Some(text) => text.trim_end_matches('`') == expression,
                None => number(value).is_some_and(|value| evaluate(expression, &key.0, constants) == Some(value)),
            };
            if !is_same {
                differences.push(format!("{PAGE}: {} is {value}, in {} it is {expression}", key.1, key.0));
            }
        }
        listed.insert(key);
    }
    listed.extend(exceptions(page));
    for (file, name) in &listed {
        if !constants.contains_key(&(file.clone(), name.clone())) {
            differences.push(format!("{PAGE}: there is no constant {name} in {file}"));
        }
    }
    for (file, name) in constants.keys().filter(|(_, name)| is_bound(name)) {
        if !listed.contains(&(file.clone(), name.clone())) {
            differences.push(format!("{PAGE}: {name} of {file} is missing: add a row"));
        }
    }
    differences
}

/// The constants that bound no stranger: in the list at the end of the page, names before their
/// file.
fn exceptions(page: &str) -> Vec<Key> {
    let list = page.rsplit_once("\n## ").map_or("", |(_, list)| list);
    let mut found = Vec::new();
    let mut names = Vec::new();
    for code in list.split('`').skip(1).step_by(2) {
        if code.ends_with(".rs") {
            found.extend(names.drain(..).map(|name: &str| (code.to_owned(), name.to_owned())));
        } else {
            names.push(code);
        }
    }
    found
}

/// `64 MiB`, `100 ms`, `5` as a number.
fn number(text: &str) -> Option<u128> {
    let (digits, unit) = text.split_once(' ').unwrap_or((text, ""));
    let factor = match unit {
        "" | "ms" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    Some(digits.parse::<u128>().ok()? * factor)
}

/// The value of a constant expression of whole numbers; `None` if it has anything else.
fn evaluate(expression: &str, file: &str, constants: &BTreeMap<Key, String>) -> Option<u128> {
    let inner = |prefix| expression.strip_prefix(prefix).and_then(|rest: &str| rest.strip_suffix(')'));
    let expression = inner("Duration::from_millis(").unwrap_or(expression);
    let expression = expression.strip_suffix(".0").unwrap_or(expression);
    let tokens = tokens(expression)?;
    let mut parser = Evaluation { tokens: &tokens, file, constants };
    let value = parser.operation(0)?;
    parser.tokens.is_empty().then_some(value)
}

/// Numbers, names, operators and brackets.
fn tokens(expression: &str) -> Option<Vec<String>> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("<<") || rest.starts_with(">>") {
            2
        } else if "+-*/()".contains(first) {
            1
        } else {
            return None;
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    Some(tokens)
}

struct Evaluation<'t> {
    tokens: &'t [String],
    file: &'t str,
    constants: &'t BTreeMap<Key, String>,
}

impl Evaluation<'_> {
    fn next(&mut self) -> Option<&str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    /// Parses operands joined by operators that bind at least so strongly.
    fn operation(&mut self, least: u32) -> Option<u128> {
        let mut left = self.operand()?;
        while let Some(operator) = self.tokens.first().cloned() {
            let strength = match operator.as_str() {
                "*" | "/" => 3,
                "+" | "-" => 2,
                "<<" | ">>" => 1,
                _ => break,
            };
            if strength < least {
                break;
            }
            self.next();
            let right = self.operation(strength + 1)?;
            left = match operator.as_str() {
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "<<" => left.checked_shl(u32::try_from(right).ok()?)?,
                _ => left.checked_shr(u32::try_from(right).ok()?)?,
            };
        }
        Some(left)
    }

    fn operand(&mut self) -> Option<u128> {
        let token = self.next()?.to_owned();
        if token == "(" {
            let value = self.operation(0)?;
            return (self.next()? == ")").then_some(value);
        }
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = token.replace('_', "");
            return match digits.strip_prefix("0x") {
                Some(digits) => u128::from_str_radix(digits, 16).ok(),
                None => digits.parse().ok(),
            };
        }
        let expression = self.constants.get(&(self.file.to_owned(), token.clone()))?;
        // A constant cannot refer to itself, so this ends.
        (*expression != token).then(|| evaluate(expression, self.file, self.constants)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> BTreeMap<Key, String> {
        let source = "
/// A doc.
pub(crate) const MAX_A: usize = 4 * 1024; // const MAX_X: u8 = 1;
    pub const B_PER_C: u64 =
        1 << (2 + 3);
const fn f() {}
const OTHER: usize = MAX_A - 1;
const MAX_D: u8 = if x { 1 } else { 2 };
";
        constants_of(source).into_iter().map(|(name, text)| (("a/src/x.rs".to_owned(), name), text)).collect()
    }

    #[test]
    fn constants_are_found_with_their_expressions() {
        let names: Vec<String> = sources().into_iter().map(|((_, name), text)| format!("{name} {text}")).collect();
        assert_eq!(names, ["B_PER_C 1 << (2 + 3)", "MAX_A 4 * 1024", "MAX_D if x { 1 } else { 2 }", "OTHER MAX_A - 1"]);
    }

    #[test]
    fn expressions_have_the_value_that_the_language_gives_them() {
        let value = |text: &str| evaluate(text, "a/src/x.rs", &sources());
        assert_eq!(value("2 * MAX_A + 1"), Some(8193));
        assert_eq!(value("1 << 2 + 3"), Some(32));
        assert_eq!(value("0x3ff - (7 - 3) * 2"), Some(1015));
        assert_eq!(value("131_072"), Some(131_072));
        assert_eq!(value("Duration::from_millis(100)"), Some(100));
        assert_eq!(value("MAX_D"), None);
        assert_eq!(value("UNKNOWN"), None);
    }

    #[test]
    fn wrong_missing_and_strange_rows_are_named() {
        let row =
            |value: &str, name: &str| format!("| what | {value} | `{name}` (`a/src/x.rs`) | all | it ends | log |\n");
        let end = "\n## Others\n\n- `MAX_D` (`a/src/x.rs`): none.\n";
        let check = |rows: &[String]| differences(&(rows.concat() + end), &sources());
        assert_eq!(check(&[row("4 KiB", "MAX_A"), row("`1 << (2 + 3)`", "B_PER_C")]), Vec::<String>::new());
        assert!(check(&[row("4 KiB", "MAX_A")])[0].contains("B_PER_C of a/src/x.rs is missing"));
        let wrong = check(&[row("5 KiB", "MAX_A"), row("32", "B_PER_C"), row("1", "MAX_Z")]);
        assert!(wrong[0].contains("MAX_A is 5 KiB") && wrong[0].contains("it is 4 * 1024"), "{wrong:?}");
        assert!(wrong[1].contains("no constant MAX_Z"), "{wrong:?}");
        let empty =
            check(&["| what | 4096 | `MAX_A` (`a/src/x.rs`) | all | it ends |  |\n".to_owned(), row("32", "B_PER_C")]);
        assert!(empty[0].contains("6 cells"), "{empty:?}");
    }
}
