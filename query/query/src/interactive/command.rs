//! Lines that begin with a period.

use std::path::PathBuf;

use crate::Format;
use clap::ValueEnum as _;

use super::Shell;

/// The commands: name, argument, meaning.
const COMMANDS: [(&str, &str, &str); 11] = [
    (".describe", "TABLE", "show the columns of a table or a view"),
    (".exit", "", "end, as Ctrl-D does"),
    (".format", "FORMAT", "write rows as table, csv, json, jsonl, parquet or arrow"),
    (".functions", "[PART]", "list the functions whose names have this part"),
    (".help", "", "list the commands"),
    (".output", "[FILE]", "write rows to this file, which each line replaces; without a name, show them"),
    (".param", "NAME VALUE", "give the parameter $NAME a value"),
    (".read", "FILE", "run the statements of a file"),
    (".tables", "[PART]", "list the tables and views whose names have this part"),
    (".timer", "on|off", "tell the rows and the time of each statement"),
    (".traces", "", "list the traces"),
];

/// The kind of a command's argument, for completion.
pub(super) enum Argument {
    File,
    Relation,
    Word(&'static [&'static str]),
    Other,
}

/// The step after a command.
pub(super) enum Next {
    Line,
    End,
}

/// A command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Describe(String),
    Exit,
    Format(Format),
    Functions(String),
    Help,
    Output(Option<PathBuf>),
    Param(String, String),
    /// Statements of a file, or ones that a command stands for.
    Sql(String),
    Tables(String),
    Timer(bool),
    Traces,
}

/// Returns the names of the commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().map(|(name, ..)| *name)
}

/// Returns what the argument of a command is.
pub(super) fn argument(name: &str) -> Argument {
    match name {
        ".describe" | ".tables" => Argument::Relation,
        ".output" | ".read" => Argument::File,
        ".format" => Argument::Word(&["table", "csv", "json", "jsonl", "parquet", "arrow"]),
        ".timer" => Argument::Word(&["on", "off"]),
        _ => Argument::Other,
    }
}

impl Command {
    /// Parses a line. The names may be shortened as far as they are unique.
    pub(super) fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim().trim_end_matches(';').trim_end();
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        let name = match name {
            // As other shells of SQL call them.
            ".quit" | ".q" => ".exit",
            ".schema" => ".describe",
            ".mode" => ".format",
            ".parameter" => ".param",
            other => other,
        };
        let mut found = names().filter(|own| own.starts_with(name));
        let (Some(name), None) = (found.next().filter(|_| name.len() > 1), found.next()) else {
            return Err(format!("there is no command '{name}'; '.help' lists them"));
        };
        let needed = |what: &str| match argument {
            "" => Err(format!("{name} needs {what}")),
            argument => Ok(argument.to_owned()),
        };
        Ok(match name {
            ".describe" => Self::Describe(needed("the name of a table")?),
            ".exit" => Self::Exit,
            ".format" => Self::Format(
                Format::from_str(&needed("a form of rows")?, true)
                    .map_err(|_| format!("there is no form '{argument}': table, csv, json, jsonl, parquet, arrow"))?,
            ),
            ".functions" => Self::Functions(argument.to_owned()),
            ".output" => Self::Output((!matches!(argument, "" | "-")).then(|| argument.into())),
            ".param" => {
                let argument = needed("a name and a value")?;
                let (name, value) = argument
                    .split_once(|ch: char| ch.is_whitespace() || ch == '=')
                    .ok_or("a parameter needs a value: .param NAME VALUE")?;
                Self::Param(name.trim_start_matches(['$', ':', '@']).to_owned(), value.trim().to_owned())
            }
            ".read" => {
                let path = needed("the name of a file")?;
                Self::Sql(std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?)
            }
            ".tables" => Self::Tables(argument.to_owned()),
            ".timer" => Self::Timer(match argument {
                "on" => true,
                "off" => false,
                _ => return Err("the timer is 'on' or 'off'".to_owned()),
            }),
            ".traces" => Self::Traces,
            _ => Self::Help,
        })
    }

    /// Runs the command. [`Command::Sql`] is for the caller.
    pub(super) fn run(self, shell: &mut Shell) -> Result<Next, String> {
        let session = &shell.session;
        match self {
            Self::Exit => return Ok(Next::End),
            Self::Help => {
                for (name, argument, meaning) in COMMANDS {
                    println!("{:<20} {meaning}", format!("{name} {argument}"));
                }
            }
            Self::Describe(name) => match session.columns(&name) {
                Some(schema) => {
                    let width = schema.fields().iter().map(|field| field.name().len()).max().unwrap_or(0);
                    for field in schema.fields() {
                        let null = if field.is_nullable() { ", may be null" } else { "" };
                        println!("{:<width$}  {}{null}", field.name(), field.data_type());
                    }
                }
                None if session.relations().contains(&name) => {
                    return Err(format!("the columns of {name} are known after its first use: select * from {name}"));
                }
                None => return Err(format!("there is no table '{name}'; '.tables' lists them")),
            },
            Self::Tables(part) => print_columns(&with_part(session.relations(), &part)),
            Self::Functions(part) => print_columns(&with_part(session.functions(), &part)),
            Self::Traces if session.traces().are_of_lake() => {
                return Err("the traces of a lake are a table: select trace_file from traces".to_owned());
            }
            Self::Traces => {
                for number in 0..session.traces().len() {
                    println!("{}", session.traces().path(number).display());
                }
            }
            Self::Format(format) => shell.format = format,
            Self::Output(path) => shell.output = path,
            Self::Param(name, value) => session.set_parameter(&name, &value),
            Self::Timer(is_on) => shell.has_timer = is_on,
            Self::Sql(_) => {}
        }
        Ok(Next::Line)
    }
}

fn with_part(names: Vec<String>, part: &str) -> Vec<String> {
    let part = part.trim_matches(['*', '%']).to_ascii_lowercase();
    names.into_iter().filter(|name| name.to_ascii_lowercase().contains(&part)).collect()
}

/// Prints names in columns of a line of 80 characters, one below the other.
fn print_columns(names: &[String]) {
    let width = names.iter().map(String::len).max().unwrap_or(0) + 2;
    let columns = (80 / width).max(1);
    let rows = names.len().div_ceil(columns);
    for row in 0..rows {
        let line: String = names.iter().skip(row).step_by(rows).map(|name| format!("{name:<width$}")).collect();
        println!("{}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_may_be_short_and_need_their_arguments() {
        assert_eq!(Command::parse(".tables sched"), Ok(Command::Tables("sched".to_owned())));
        assert_eq!(Command::parse(" .tab ;"), Ok(Command::Tables(String::new())));
        assert_eq!(Command::parse(".quit"), Ok(Command::Exit));
        assert_eq!(Command::parse(".mode CSV"), Ok(Command::Format(Format::Csv)));
        assert_eq!(Command::parse(".param $a = b"), Ok(Command::Param("a".to_owned(), "= b".to_owned())));
        assert_eq!(Command::parse(".param a=b c"), Ok(Command::Param("a".to_owned(), "b c".to_owned())));
        assert_eq!(Command::parse(".output -"), Ok(Command::Output(None)));
        for wrong in [".", ".t", ".nothing", ".format", ".format x", ".timer", ".param a", ".read", ".describe"] {
            assert!(Command::parse(wrong).is_err(), "{wrong}");
        }
    }
}
