//! [`Finding`]: a mistake of a config, or a warning about it.

use core::fmt;

use esatto_text_format::{Error, Snippet};
use esatto_trace::escape::{Line, Lines};
use serde_json::json;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    Mistake,
    Warning,
}

#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// Path of the field, as in `buffers[0].size_kb`; empty for the whole config.
    pub(crate) field: String,
    pub(crate) message: String,
    pub(crate) remedy: Option<String>,
    /// The place in a text.
    pub(crate) snippet: Option<Snippet>,
    /// Line and column, if there is no snippet.
    pub(crate) position: Option<(usize, usize)>,
}

impl Finding {
    pub(crate) fn mistake(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Mistake,
            field: field.into(),
            message: message.into(),
            remedy: None,
            snippet: None,
            position: None,
        }
    }

    pub(crate) fn warning(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::mistake(field, message) }
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// A mistake that the parser of texts has found.
    pub(crate) fn of_text(error: &Error) -> Self {
        Self { snippet: Some(error.snippet().clone()), ..Self::mistake("", &error.message) }
    }

    /// Returns line and column, counted from 1.
    pub(crate) fn position(&self) -> Option<(usize, usize)> {
        self.snippet.as_ref().map(|snippet| (snippet.line, snippet.column)).or(self.position)
    }

    /// Shows the finding in some lines, with the name of the file.
    pub(crate) fn in_file<'a>(&'a self, name: &'a str) -> InFile<'a> {
        InFile { finding: self, name }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let (line, column) = self.position().unzip();
        json!({
            "severity": match self.severity {
                Severity::Mistake => "mistake",
                Severity::Warning => "warning",
            },
            "line": line,
            "column": column,
            "field": self.field,
            "message": self.message,
            "remedy": self.remedy,
        })
    }
}

pub(crate) struct InFile<'a> {
    finding: &'a Finding,
    name: &'a str,
}

impl InFile<'_> {
    /// The place, as editors know it.
    pub(crate) fn place(&self) -> String {
        match self.finding.position() {
            Some((line, column)) => format!("{}:{line}:{column}", self.name),
            None => format!("{}:", self.name),
        }
    }

    /// The sort of the finding, as compilers name it.
    pub(crate) fn severity(&self) -> &'static str {
        match self.finding.severity {
            Severity::Mistake => "error:",
            Severity::Warning => "warning:",
        }
    }

    /// The message, and the field if no line shows it.
    pub(crate) fn message(&self) -> String {
        let Finding { field, message, remedy, snippet, .. } = self.finding;
        let mut text = match (snippet, &field[..]) {
            (Some(_), _) | (None, "") => Line(message).to_string(),
            (None, field) => format!("{}: {}", Line(field), Line(message)),
        };
        if let Some(remedy) = remedy {
            text += "; ";
            text += &Line(remedy).to_string();
        }
        text
    }

    /// The line of the text, underlined.
    pub(crate) fn snippet(&self) -> Option<String> {
        self.finding.snippet.as_ref().map(|snippet| Lines(snippet).to_string())
    }
}

impl fmt::Display for InFile<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.place(), self.severity(), self.message())?;
        match self.snippet() {
            Some(snippet) => write!(f, "\n{snippet}"),
            None => Ok(()),
        }
    }
}
