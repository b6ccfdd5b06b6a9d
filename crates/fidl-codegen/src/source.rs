//! [`Source`]: the text of a `.fidl` file, and positions in it.

use std::rc::Rc;

use crate::error::Error;

/// Text of a file.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    text: String,
}

/// Part of a file, for errors.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    source: Rc<Source>,
    start: usize,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Rc<Self> {
        Rc::new(Self { name: name.to_owned(), text: text.to_owned() })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl Span {
    pub(crate) fn new(source: &Rc<Source>, start: usize) -> Self {
        Self { source: Rc::clone(source), start }
    }

    /// Returns the line, from 1.
    pub(crate) fn line(&self) -> usize {
        self.position().0
    }

    /// Returns line and column of the start, each from 1.
    fn position(&self) -> (usize, usize) {
        let before = self.source.text.get(..self.start).unwrap_or(&self.source.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// Returns `file:line:column`.
    pub(crate) fn place(&self) -> String {
        let (line, column) = self.position();
        format!("{}:{line}:{column}", self.source.name)
    }

    /// Makes the error `message` at this place.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        let (line, column) = self.position();
        Error::Fidl { file: self.source.name.clone(), line, column, message: message.into() }
    }

    pub(crate) fn unknown_library(&self, library: &str, known: Vec<String>) -> Error {
        let (line, column) = self.position();
        Error::UnknownLibrary { file: self.source.name.clone(), line, column, library: library.to_owned(), known }
    }
}
