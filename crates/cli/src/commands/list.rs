//! The command `esatto list`: shows the programs that are connected to the running service.

use core::fmt::Write as _;
use std::collections::BTreeMap;
use std::process::ExitCode;

use esatto_trace::escape;
use serde_json::json;

use crate::args;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::service_connection::{address, connect};
use crate::service_state::{Category, Lockdown, Program, Programs, sorted};
use crate::table::{MAX_CELL_CHARS, cell, table};

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
        let _ = writeln!(text, "\n... and {} more programs, data sources and categories", all.omitted);
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
    escape::json(&format!("{:#}\n", json!({ "programs": programs, "omitted": all.omitted, "lockdown": lockdown })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_name_makes_no_wide_table() {
        for long in ["x".repeat(100_000), "\u{202e}".repeat(100_000)] {
            assert_eq!(cell(&long).chars().count(), MAX_CELL_CHARS);
            assert_eq!(list(vec![&long[..]; 1000]).chars().count(), MAX_CELL_CHARS);
        }
        assert_eq!(joined(vec!["b", "a", "b"]), "a, b");
    }
}
