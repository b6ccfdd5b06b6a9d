//! Errors of SQL, with their place and a name that was perhaps meant.

use core::fmt;

use datafusion::common::{DataFusionError, SchemaError};
use datafusion::sql::sqlparser::parser::ParserError;

/// A place in SQL: line and column, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Place {
    pub(crate) fn new(line: u64, column: u64) -> Option<Self> {
        (line > 0).then_some(Self { line, column: column.max(1) })
    }
}

/// An error of SQL.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqlError {
    /// The reason.
    pub message: String,
    /// The place, if it is known.
    pub place: Option<Place>,
    /// A remedy, if there is one.
    pub help: Option<String>,
}

impl SqlError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), place: None, help: None }
    }

    pub(crate) fn at(mut self, place: Option<Place>) -> Self {
        self.place = place;
        self
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn of_parser(error: &ParserError, end: Option<Place>) -> Self {
        let text = match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.clone(),
            ParserError::RecursionLimitExceeded => "it is nested too deeply".to_owned(),
        };
        let (message, place) = split_place(&text);
        let message = message.replace("found: EOF", "found the end");
        Self::new(format!("syntax error: {message}")).at(place.or(end))
    }

    /// Makes it of an error of DataFusion. `tables` and `functions` are the names that there are.
    pub(crate) fn of_datafusion(error: &DataFusionError, tables: &[String], functions: &[String]) -> Self {
        let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
        let place = span.and_then(|span| Place::new(span.start.line, span.start.column));
        let root = error.find_root();
        if let DataFusionError::SchemaError(schema, _) = root {
            return of_schema(schema).at(place);
        }
        let message = root.strip_backtrace();
        if let Some(name) = between(&message, "table '", "' not found") {
            let name = name.rsplit('.').next().unwrap_or(name);
            return Self::new(format!("there is no table '{name}'")).at(place).suggest(name, tables);
        }
        if let Some(name) = between(&message, "table function '", "' not found") {
            return Self::new(format!("there is no table function '{name}'")).at(place).suggest(name, functions);
        }
        if let Some(name) = between(&message, "Invalid function '", "'") {
            return Self::new(format!("there is no function '{name}'")).at(place).suggest(name, functions);
        }
        if matches!(root, DataFusionError::ResourcesExhausted(_)) {
            let message = message.trim_start_matches("Resources exhausted: ").to_owned();
            return Self::new(format!("the query does not fit in memory: {message}"))
                .help("raise --memory-limit, or ask for fewer rows or traces");
        }
        let message = ["Error during planning: ", "Execution error: ", "External error: ", "Arrow error: "]
            .iter()
            .fold(&*message, |message, prefix| message.strip_prefix(prefix).unwrap_or(message))
            .to_owned();
        Self::new(message).at(place)
    }

    /// Returns the text of the error, with its line of this SQL and a mark at its place.
    pub fn with_line(&self, sql: &str) -> String {
        let Some(place) = self.place else { return self.to_string() };
        let line = usize::try_from(place.line - 1).ok().and_then(|line| sql.lines().nth(line));
        let Some(line) = line else { return self.to_string() };
        let column = usize::try_from(place.column - 1).unwrap_or(0);
        // A long line is shown around the place.
        let start = column.saturating_sub(60);
        let part: String =
            line.chars().skip(start).take(100).map(|ch| if ch.is_control() { ' ' } else { ch }).collect();
        let marker = " ".repeat(column - start);
        format!("{self}\n  {part}\n  {marker}^")
    }

    pub(crate) fn suggest(self, name: &str, names: &[String]) -> Self {
        match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => self.help(format!("perhaps '{near}'")),
            None => self,
        }
    }
}

fn of_schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let name = field.name();
            let table = field.relation.as_ref().map(|relation| relation.table().to_owned());
            let of_table = |own: &&datafusion::common::Column| match (&field.relation, &own.relation) {
                (Some(wanted), Some(own)) => wanted.table() == own.table(),
                (None, _) => true,
                (Some(_), None) => false,
            };
            let fields: Vec<&str> =
                valid_fields.iter().filter(of_table).map(datafusion::common::Column::name).collect();
            let error = match &table {
                Some(table) if fields.is_empty() => SqlError::new(format!("'{table}' is no table of this statement")),
                Some(table) => SqlError::new(format!("'{table}' has no column '{name}'")),
                None => SqlError::new(format!("there is no column '{name}'")),
            };
            let mut names: Vec<&str> = fields.clone();
            names.sort_unstable();
            names.dedup();
            match nearest(name, names.iter().copied()) {
                Some(near) => error.help(format!("perhaps '{near}'")),
                None if names.is_empty() => error,
                None => {
                    let more = if names.len() > 30 { ", …" } else { "" };
                    error.help(format!("columns: {}{more}", names[..names.len().min(30)].join(", ")))
                }
            }
        }
        SchemaError::AmbiguousReference { field } => {
            SqlError::new(format!("column '{}' is in several tables", field.name()))
                .help(format!("name the table: 'table.{}'", field.name()))
        }
        other => SqlError::new(other.to_string()),
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place {
            write!(f, "line {}, column {}: ", place.line, place.column)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for SqlError {}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let start = text.find(before)? + before.len();
    let length = text[start..].find(after)?;
    Some(&text[start..start + length])
}

/// Splits `… at Line: 1, Column: 8`.
fn split_place(text: &str) -> (&str, Option<Place>) {
    let Some((message, place)) = text.rsplit_once(" at Line: ") else { return (text, None) };
    let mut numbers = place.split(", Column: ").map(|number| number.trim().parse().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(line), Some(column)) => (message, Place::new(line, column)),
        _ => (text, None),
    }
}

/// Returns the name with the least difference, if it is small.
pub(crate) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_lowercase();
    let near = names.map(|own| (distance(&name, &own.to_lowercase()), own)).min()?;
    (near.0 <= name.chars().count().div_ceil(3).min(4)).then_some(near.1)
}

/// Returns the number of insertions, removals, changes and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(100).collect(), b.chars().take(100).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["slice", "sched", "thread", "process"];
        let near = |name| nearest(name, names.into_iter());
        assert_eq!(near("slcie"), Some("slice"));
        assert_eq!(near("THREADS"), Some("thread"));
        assert_eq!(near("counter"), None);
        assert_eq!(near(""), None);
    }

    #[test]
    fn places_of_the_parser_are_found() {
        let found = split_place("Expected: an expression, found: from at Line: 2, Column: 8");
        assert_eq!(found, ("Expected: an expression, found: from", Place::new(2, 8)));
        assert_eq!(split_place("Expected: x").1, None);
    }
}
