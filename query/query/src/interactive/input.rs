//! Lines of a terminal or of a pipe, made into commands and statements.

use std::io::{self, BufRead as _, Stdin};
use std::path::PathBuf;
use std::sync::Arc;

use crate::Session;
use rustyline::config::Configurer as _;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Editor};

use super::completion::Completer;
use super::statement::{is_blank, is_complete};

/// Statements that the history keeps.
const HISTORY: usize = 1000;

/// A part of the input.
pub(super) enum Line {
    /// A line that begins with a period.
    Command(String),
    /// One or several statements.
    Sql(String),
    End,
}

/// The input.
pub(super) enum Input {
    Terminal { editor: Box<Editor<Completer, FileHistory>>, history: Option<PathBuf> },
    Pipe(Stdin),
}

impl Input {
    pub(super) fn new(session: &Arc<Session>, is_terminal: bool) -> Result<Self, ReadlineError> {
        if !is_terminal {
            return Ok(Self::Pipe(io::stdin()));
        }
        let config = rustyline::Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY)?
            .history_ignore_space(true)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(Completer::new(Arc::clone(session))));
        editor.set_auto_add_history(true);
        let history = history_path();
        if let Some(path) = &history {
            // There is none before the first time.
            let _none = editor.load_history(path);
        }
        Ok(Self::Terminal { editor: Box::new(editor), history })
    }

    /// Reads a command, or statements to the semicolon at the end of a line.
    pub(super) fn next(&mut self) -> Result<Line, ReadlineError> {
        match self {
            Self::Terminal { editor, .. } => loop {
                // The editor asks the completer whether the statement is whole.
                match editor.readline("esatto> ") {
                    Ok(text) if is_command(&text) => return Ok(Line::Command(text)),
                    Ok(text) if is_blank(text.trim_end().trim_end_matches(';')) => {}
                    Ok(text) => return Ok(Line::Sql(text)),
                    Err(ReadlineError::Interrupted) => {}
                    Err(ReadlineError::Eof) => return Ok(Line::End),
                    Err(error) => return Err(error),
                }
            },
            Self::Pipe(stdin) => {
                let mut text = String::new();
                loop {
                    let is_end = stdin.lock().read_line(&mut text)? == 0;
                    if is_command(&text) {
                        return Ok(Line::Command(text));
                    }
                    if is_complete(&text) || is_end {
                        return Ok(match is_blank(&text) {
                            true if is_end => Line::End,
                            _ => Line::Sql(text),
                        });
                    }
                }
            }
        }
    }

    pub(super) fn save_history(&mut self) {
        let Self::Terminal { editor, history: Some(path) } = self else { return };
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(error) = folder.map_err(ReadlineError::from).and_then(|()| editor.save_history(path)) {
            eprintln!("esatto-query: cannot save the history {}: {error}", path.display());
        }
    }
}

/// Returns whether a text is a line that begins with a period.
pub(super) fn is_command(text: &str) -> bool {
    text.trim_start().starts_with('.')
}

/// The file of the history, as the XDG Base Directory Specification wants it.
fn history_path() -> Option<PathBuf> {
    let of = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = of("XDG_STATE_HOME").or_else(|| Some(of("HOME")?.join(".local/state")))?;
    Some(state.join("esatto").join("query_history"))
}
