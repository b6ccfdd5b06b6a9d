//! The command `esatto list`: shows the programs that are connected to the running service.

use core::fmt::Write as _;
use core::time::Duration;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::process::ExitCode;

use esatto_trace::escape::{Line, is_unsafe};
use serde_json::json;

use crate::args;
use crate::failure::{Attempt as _, Failure};
use crate::service_connection::{address, connect, lost};
use crate::service_state::{Category, Program, Programs, sorted};

/// Longest time until the service answers.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &args::List) -> Result<ExitCode, Failure> {
    let mut client = connect(&address()?)?;
    let mut programs = Programs::default();
    let request = client.send("QueryServiceState", &[], None).map_err(lost)?;
    loop {
        let reply = client.wait_reply(request, Some(ANSWER_TIMEOUT)).map_err(lost)?;
        programs.add_part(&reply.body, !reply.has_more);
        if !reply.has_more {
            break;
        }
    }
    let programs = programs.programs;
    let text = if args.json { json(&programs) } else { text(&programs) };
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe, as in `esatto list … | head`, is no error.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
        result => result.attempt(|| "cannot show the list".to_owned())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats tables for people.
fn text(programs: &[Program]) -> String {
    if programs.is_empty() {
        return "No program is connected.\n".to_owned();
    }
    let rows = programs.iter().map(|program| {
        let Program { pid, uid, name, machine, sdk, .. } = program;
        vec![pid.to_string(), uid.to_string(), name.clone(), machine.clone(), sdk.clone()]
    });
    let mut text = String::from("Programs\n");
    text += &table(&["pid", "uid", "name", "machine", "SDK"], rows.collect());

    let mut sources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for program in programs {
        for source in &program.sources {
            sources.entry(&source.name).or_default().push(&program.name);
        }
    }
    let rows = sources.into_iter().map(|(source, names)| vec![source.to_owned(), joined(names)]);
    text += "\nData sources\n";
    text += &table(&["name", "programs"], rows.collect());

    let rows: Vec<Vec<String>> = categories(programs)
        .into_iter()
        .map(|(name, (category, names))| {
            vec![name.to_owned(), category.tags.join(", "), joined(names), category.description.clone()]
        })
        .collect();
    if !rows.is_empty() {
        text += "\nCategories\n";
        text += &table(&["name", "tags", "programs", "description"], rows);
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

fn joined(names: Vec<&str>) -> String {
    sorted(names.into_iter()).join(", ")
}

/// Formats a table. A column without any content is left out.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.iter().map(|cell| Line(cell).to_string()).collect()).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let columns: Vec<(usize, usize)> = (0..head.len())
        .map(|column| (column, width(column)))
        .filter(|(_, width)| *width > 0)
        .map(|(column, width)| (column, width.max(head[column].len())))
        .collect();
    let mut text = String::new();
    let head: Vec<String> = head.iter().map(|&name| name.to_owned()).collect();
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
fn json(programs: &[Program]) -> String {
    let category = |category: &Category| {
        let Category { name, description, tags } = category;
        json!({ "name": name, "description": description, "tags": tags })
    };
    let programs = programs.iter().map(|program| {
        let sources = program.sources.iter().map(|source| {
            let categories: Vec<_> = source.categories.iter().map(category).collect();
            json!({ "name": source.name, "categories": categories })
        });
        let sources: Vec<_> = sources.collect();
        let Program { name, pid, uid, sdk, machine, .. } = program;
        json!({ "name": name, "pid": pid, "uid": uid, "sdk": sdk, "machine": machine, "data_sources": sources })
    });
    let programs: Vec<_> = programs.collect();
    let encoded = format!("{:#}\n", json!({ "programs": programs }));
    // Outside of strings, JSON contains no unsafe characters but newlines.
    let escape = |c: char| match c {
        c if c != '\n' && is_unsafe(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    encoded.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_ones_left_out() {
        let rows =
            vec![vec!["1".to_owned(), String::new(), "a\u{1b}".to_owned()], vec!["20".into(), "".into(), "b".into()]];
        assert_eq!(table(&["pid", "tags", "name"], rows), "  pid  name\n  1    a\\u{1b}\n  20   b\n");
    }
}
