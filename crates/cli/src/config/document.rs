//! [`Document`]: a config as a file has it, in text format, binary or JSON.

use core::fmt;
use core::ops::Range;
use std::path::Path;

use esatto_inputs::is_trace_of_service;
use esatto_protozero::Owned as _;
use esatto_schema::TraceConfig;
use esatto_text_format::{Place, Places, Snippet};
use esatto_trace::escape::Line;

use super::field_path::find;
use super::finding::Finding;
use super::json;
use crate::failure::Failure;
use crate::shell_word::ShellWord;
use crate::trace_config;

/// Form of a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Protobuf's text format.
    Text,
    /// Protobuf's encoding.
    Binary,
    /// Protobuf's JSON mapping.
    Json,
}

impl Form {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Json => "json",
        }
    }

    /// Returns the form of a file with this name, if its ending tells it.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "cfg" | "txt" | "txtpb" | "textproto" | "textpb" | "pbtxt" | "pbtx" => Some(Self::Text),
            "pb" | "bin" | "binpb" => Some(Self::Binary),
            "json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Returns the form of this content.
    fn of(content: &[u8]) -> Self {
        if !trace_config::is_text(content) {
            return Self::Binary;
        }
        // No text config begins with a brace.
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        if content.trim_ascii_start().starts_with(b"{") { Self::Json } else { Self::Text }
    }
}

/// A config without mistakes of form.
pub(crate) struct Document {
    /// Name of the file for messages.
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) content: Vec<u8>,
    pub(crate) encoded: Vec<u8>,
    pub(crate) config: TraceConfig,
    /// Places of the fields in a text.
    places: Option<Places>,
}

/// Mistakes that keep a config from being read.
pub(crate) struct Mistakes {
    pub(crate) name: String,
    pub(crate) list: Vec<Finding>,
    /// The config without these mistakes, if they are fields and values that are not known.
    pub(crate) rest: Option<Box<Document>>,
}

/// Reads a file.
///
/// # Errors
///
/// It cannot be read.
pub(crate) fn read(path: &Path, form: Option<Form>) -> Result<Result<Document, Mistakes>, Failure> {
    let content = trace_config::content(path)?;
    if trace_config::is_too_long(&content) {
        return Err(trace_config::too_long(path));
    }
    let name = if path.as_os_str() == "-" { "stdin".to_owned() } else { Line(path.display()).to_string() };
    Document::of(name, content, form)
}

/// Reads a file that must have no mistakes of form.
pub(crate) fn read_good(path: &Path, form: Option<Form>) -> Result<Document, Failure> {
    read(path, form)?.map_err(|mistakes| {
        let count = mistakes.list.len();
        let noun = if count == 1 { "mistake" } else { "mistakes" };
        Failure::list(format!("the config {} has {count} {noun}", mistakes.name), mistakes.to_string())
    })
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", finding.in_file(&self.name))?;
        }
        Ok(())
    }
}

impl Document {
    /// Decodes a config of this form, or of the one that the content shows.
    ///
    /// # Errors
    ///
    /// The built-in schema cannot be loaded.
    pub(crate) fn of(name: String, content: Vec<u8>, form: Option<Form>) -> Result<Result<Self, Mistakes>, Failure> {
        let form = form.unwrap_or_else(|| Form::of(&content));
        let message = trace_config::message()?;
        let decoded = match form {
            Form::Text => {
                let parser = esatto_text_format::Parser::new(message).file_name(&name);
                let parsed = parser.parse_with_places(&content).map(|(encoded, places)| (encoded, Some(places)));
                parsed.map_err(|errors| errors.iter().map(Finding::of_text).collect())
            }
            Form::Json => json::encode(&message, &content).map(|encoded| (encoded, None)).map_err(|error| vec![*error]),
            Form::Binary => Ok((content.clone(), None)),
        };
        let is_foreign = |config: &TraceConfig| form == Form::Binary && *config == unknown_fields_of(config);
        let decoded = decoded.and_then(|(encoded, places)| match TraceConfig::decode(&encoded) {
            Ok(config) if config.data_sources.is_empty() && is_trace_of_service(&encoded) => {
                let why = "it is a trace, no config";
                let remedy = format!("`esatto info {}` shows what it contains", ShellWord::new(&name));
                Err(vec![Finding::mistake("", why).remedy(remedy)])
            }
            Ok(config) if encoded.is_empty() || !is_foreign(&config) => Ok((encoded, places, config)),
            _ => Err(vec![Finding::mistake("", "it is neither text, JSON nor an encoded TraceConfig")]),
        });
        Ok(match decoded {
            Ok((encoded, places, config)) => Ok(Self { name, form, content, encoded, config, places }),
            Err(list) => {
                let rest = (form == Form::Text).then(|| Self::without_unknown(&name, content)).transpose()?.flatten();
                Err(Mistakes { name, list, rest: rest.map(Box::new) })
            }
        })
    }

    /// Decodes a text without the fields and values of enums that are not known. Returns `None` if
    /// it has other mistakes.
    fn without_unknown(name: &str, content: Vec<u8>) -> Result<Option<Self>, Failure> {
        let parser = esatto_text_format::Parser::new(trace_config::message()?).lossy(true);
        let Ok((encoded, places)) = parser.parse_with_places(&content) else { return Ok(None) };
        let Ok(config) = TraceConfig::decode(&encoded) else { return Ok(None) };
        let (name, places) = (name.to_owned(), Some(places));
        Ok(Some(Self { name, form: Form::Text, content, encoded, config, places }))
    }

    /// Sets the place of a finding. If the text does not have its field, that is the place of the
    /// message around it.
    pub(crate) fn locate(&self, finding: &mut Finding) {
        let Some(places) = &self.places else { return };
        if let Some(index) = find(places, &finding.field) {
            finding.snippet = Some(Snippet::of(&self.content, self.shown_part(&places[index])));
        }
    }

    /// Returns the part of a field that a finding underlines: the name of a message, an element of
    /// a list, or a name with its value.
    fn shown_part(&self, place: &Place) -> Range<usize> {
        let between = &self.content[place.name.end..place.value.start];
        if matches!(self.content.get(place.value.start), Some(b'{' | b'<')) {
            place.name.clone()
        } else if between.contains(&b'[') {
            place.value.clone()
        } else {
            place.name.start..place.value.end
        }
    }

    pub(crate) fn places(&self) -> Option<&Places> {
        self.places.as_ref()
    }
}

/// Returns a config that has only the unknown fields of `config`.
fn unknown_fields_of(config: &TraceConfig) -> TraceConfig {
    TraceConfig { unknown_fields: config.unknown_fields.clone(), ..TraceConfig::default() }
}
