//! The command `esatto list`: shows the programs that are connected to the running service.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::process::ExitCode;

use esatto_trace::escape::{Line, is_unsafe};
use serde_json::json;

use crate::args;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::service_connection::{address, connect};
use crate::service_state::{Category, Lockdown, Program, Programs, sorted};

/// Longest cell of a table in characters. Longer ones are cut, because all cells of a column are as
/// wide as the longest one.
const MAX_CELL_CHARS: usize = 120;

pub(crate) fn run(args: &args::List) -> Result<ExitCode, Failure> {
    let mut client = connect(&address()?)?;
    let programs = Programs::query(&mut client)?;
    let text = if args.json { json(&programs) } else { text(&programs) };
    console::print(&text).attempt(|| "cannot show the list".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

/// Formats tables for people.
fn text(all: &Programs) -> String {
    let programs = &all.programs[..];
    let mut text = all.lockdown.map_or_else(String::new, |mode| mode.in_words(all) + "\n\n");
    if programs.is_empty() {
        return text + "No program is connected.\n";
    }
    let rows = programs.iter().map(|program| {
        let Program { pid, uid, name, machine, sdk, .. } = program;
        [pid.to_string(), uid.to_string(), cell(name), cell(machine), cell(sdk)]
    });
    text += "Programs\n";
    text += &table(&["pid", "uid", "name", "machine", "SDK"], rows.collect());

    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for program in programs {
        for source in &program.sources {
            sources.entry(&source.name).or_default().push(&program.name);
        }
    }
    let rows = sources.into_iter().map(|(source, names)| [cell(source), joined(names)]);
    text += "\nData sources\n";
    text += &table(&["name", "programs"], rows.collect());

    let rows: Vec<[String; 4]> = categories(programs)
        .into_iter()
        .map(|(name, (category, names))| {
            let tags = category.tags.iter().map(String::as_str).collect();
            [cell(name), list(tags), joined(names), cell(&category.description)]
        })
        .collect();
    if !rows.is_empty() {
        text += "\nCategories\n";
        text += &table(&["name", "tags", "programs", "description"], rows);
    }
    if all.omitted > 0 {
        let _ = writeln!(text, "\n… and {} more programs, data sources and categories", all.omitted);
    }
    text
}

/// Returns the categories by name, with the names of their programs.
fn categories(programs: &[Program]) -> BTreeMap<&str, (&Category, Vec<&str>)> {
    let mut categories = BTreeMap::new();
    for program in programs {
        for category in program.sources.iter().flat_map(|source| &source.categories) {
            let entry = categories.entry(category.name.as_str()).or_insert((category, Vec::new()));
            entry.1.push(program.name.as_str());
        }
    }
    categories
}

/// Formats different names in order as one cell.
fn joined(names: Vec<&str>) -> String {
    list(sorted(names.into_iter()))
}

fn list(names: Vec<&str>) -> String {
    let mut text = String::new();
    for name in names {
        if !text.is_empty() {
            text += ", ";
        }
        text.extend(name.chars().take(MAX_CELL_CHARS + 1));
        if text.len() > MAX_CELL_CHARS * char::MAX.len_utf8() {
            break;
        }
    }
    cell(&text)
}

/// Formats a text for one line, cut and escaped.
fn cell(text: &str) -> String {
    // Cut first: each character can take up to ten columns.
    let start: String = text.chars().take(MAX_CELL_CHARS + 1).collect();
    let safe = Line(start).to_string();
    if safe.chars().count() <= MAX_CELL_CHARS {
        return safe;
    }
    safe.chars().take(MAX_CELL_CHARS - 1).chain(['…']).collect()
}

/// Formats a table of cells. A column without any content is left out.
fn table<const COLUMNS: usize>(head: &[&str; COLUMNS], rows: Vec<[String; COLUMNS]>) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let columns: Vec<(usize, usize)> = (0..COLUMNS)
        .map(|column| (column, width(column)))
        .filter(|(_, width)| *width > 0)
        .map(|(column, width)| (column, width.max(head[column].len())))
        .collect();
    let mut text = String::new();
    let head = head.map(str::to_owned);
    for row in core::iter::once(&head).chain(&rows) {
        let mut line = String::new();
        for &(column, width) in &columns {
            // Writing to a string never fails.
            let _ = write!(line, "  {:<width$}", row[column]);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Formats the list for programs.
fn json(all: &Programs) -> String {
    let category = |category: &Category| {
        let Category { name, description, tags } = category;
        json!({ "name": name, "description": description, "tags": tags })
    };
    let programs = all.programs.iter().map(|program| {
        let sources = program.sources.iter().map(|source| {
            let categories: Vec<_> = source.categories.iter().map(category).collect();
            json!({ "name": source.name, "categories": categories })
        });
        let sources: Vec<_> = sources.collect();
        let Program { name, pid, uid, sdk, machine, .. } = program;
        json!({ "name": name, "pid": pid, "uid": uid, "sdk": sdk, "machine": machine, "data_sources": sources })
    });
    let programs: Vec<_> = programs.collect();
    let lockdown = all.lockdown.map(|mode| {
        let Lockdown { uid, set_by_uid, refused } = mode;
        json!({ "uid": uid, "set_by_uid": set_by_uid, "refused": refused })
    });
    let encoded = format!("{:#}\n", json!({ "programs": programs, "omitted": all.omitted, "lockdown": lockdown }));
    let mut safe = String::with_capacity(encoded.len());
    for c in encoded.chars() {
        // Outside of strings, JSON contains no unsafe characters but newlines.
        if is_unsafe(c) && c != '\n' {
            // Writing to a string never fails.
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let row = |cells: [&str; 3]| cells.map(cell);
        let rows = vec![row(["1", "", "a\u{1b}"]), row(["20", "", "b"])];
        assert_eq!(table(&["pid", "tags", "name"], rows), "  pid  name\n  1    a\\u{1b}\n  20   b\n");
    }

    #[test]
    fn one_long_name_makes_no_wide_table() {
        for long in ["x".repeat(100_000), "\u{202e}".repeat(100_000)] {
            assert_eq!(cell(&long).chars().count(), MAX_CELL_CHARS);
            assert_eq!(list(vec![&long[..]; 1000]).chars().count(), MAX_CELL_CHARS);
        }
        assert_eq!(joined(vec!["b", "a", "b"]), "a, b");
    }
}
