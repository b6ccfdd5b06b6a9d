//! Completion of names, and the editor's question whether a statement is whole.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Session;
use rustyline::completion::{Completer as Complete, FilenameCompleter, Pair};
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};

use super::command;
use super::input::is_command;
use super::statement::{is_blank, is_complete};

/// Words of SQL that statements begin with or often have.
const WORDS: [&str; 44] = [
    "all",
    "and",
    "as",
    "asc",
    "between",
    "by",
    "case",
    "cast",
    "create",
    "cross",
    "desc",
    "describe",
    "distinct",
    "drop",
    "else",
    "end",
    "except",
    "exists",
    "explain",
    "from",
    "full",
    "glob",
    "group",
    "having",
    "in",
    "intersect",
    "is",
    "join",
    "left",
    "like",
    "limit",
    "not",
    "null",
    "offset",
    "on",
    "or",
    "order",
    "over",
    "partition",
    "select",
    "show",
    "tables",
    "union",
    "where",
];

/// Completes names.
pub(super) struct Completer {
    session: Arc<Session>,
    files: FilenameCompleter,
}

impl Completer {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self { session, files: FilenameCompleter::new() }
    }

    /// Returns the names that fit what stands before the cursor, and where the name begins.
    fn names(&self, before: &str) -> (usize, Vec<String>) {
        let start = before
            .rfind(|ch: char| !ch.is_alphanumeric() && ch != '_')
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        let (head, word) = before.split_at(start);
        let word = word.to_ascii_lowercase();
        let mut names = BTreeSet::new();
        if let Some(table) = head.strip_suffix('.') {
            let from = table.rfind(|ch: char| !ch.is_alphanumeric() && ch != '_').map_or(0, |at| at + 1);
            names.extend(self.columns(table.get(from..).unwrap_or_default()));
        } else if matches!(&*last_word(head), "from" | "join" | "describe" | "table" | "view") {
            names.extend(self.session.relations());
        } else {
            names.extend(WORDS.iter().map(|&word| word.to_owned()));
            names.extend(self.session.functions());
            let relations = self.session.relations();
            for relation in &relations {
                if is_named(before, relation) {
                    names.extend(self.columns(relation));
                }
            }
            names.extend(relations);
        }
        (start, names.into_iter().filter(|name| name.to_ascii_lowercase().starts_with(&word)).collect())
    }

    fn columns(&self, relation: &str) -> Vec<String> {
        let schema = self.session.columns(relation);
        schema.map_or_else(Vec::new, |schema| schema.fields().iter().map(|field| field.name().clone()).collect())
    }
}

fn last_word(text: &str) -> String {
    text.split_whitespace().next_back().unwrap_or_default().to_ascii_lowercase()
}

fn is_named(text: &str, name: &str) -> bool {
    text.split(|ch: char| !ch.is_alphanumeric() && ch != '_').any(|word| word.eq_ignore_ascii_case(name))
}

impl Complete for Completer {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, context: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..at];
        let pairs = |names: Vec<String>| {
            names.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect()
        };
        if !is_command(before) {
            let (start, names) = self.names(before);
            return Ok((start, pairs(names)));
        }
        let Some((name, argument)) = before.trim_start().split_once(' ') else {
            let start = before.len() - before.trim_start().len();
            let names = command::names().filter(|name| name.starts_with(before.trim_start()));
            return Ok((start, pairs(names.map(str::to_owned).collect())));
        };
        match command::argument(name) {
            command::Argument::File => self.files.complete(line, at, context),
            command::Argument::Relation => {
                let names = self.session.relations();
                let names = names.into_iter().filter(|name| name.starts_with(argument)).collect();
                Ok((at - argument.len(), pairs(names)))
            }
            command::Argument::Word(words) => {
                let words = words.iter().filter(|word| word.starts_with(argument)).map(|&word| word.to_owned());
                Ok((at - argument.len(), pairs(words.collect())))
            }
            command::Argument::Other => Ok((at, Vec::new())),
        }
    }
}

impl Validator for Completer {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input();
        let is_whole = is_command(text) || is_blank(text) || is_complete(text);
        Ok(if is_whole { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Hinter for Completer {
    type Hint = String;
}

impl Highlighter for Completer {}

impl Helper for Completer {}

#[cfg(test)]
mod tests {
    use crate::{Broken, Options, Traces};

    use super::*;

    fn completer() -> Completer {
        let traces = Traces::new(vec!["a trace".into()], Broken::Keep, 1 << 20).expect("few traces");
        Completer::new(Arc::new(Session::new(traces, &Options::default()).expect("a session")))
    }

    #[test]
    fn names_fit_their_place() {
        let completer = completer();
        let names = |text| completer.names(text).1;
        assert_eq!(names("select * from thread_st"), ["thread_state", "thread_state_with_thread"]);
        assert_eq!(names("select slice.thread_d"), ["thread_dur"]);
        assert!(names("select extract_a").contains(&"extract_arg".to_owned()));
        assert!(names("select name from slice where arg_s").contains(&"arg_set_id".to_owned()));
        assert!(!names("select arg_s").contains(&"arg_set_id".to_owned()), "no table is named");
        assert_eq!(names("sele"), ["select"]);
        assert!(names("select \u{e4}.x").is_empty());
    }
}
