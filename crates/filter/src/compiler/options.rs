//! Exceptions for fields that do not simply pass: options of the compiler, and options of fields in
//! the schema.

use std::collections::BTreeSet;

use prost_reflect::{DynamicMessage, FieldDescriptor, Kind};

use crate::bytecode::StringField;
use crate::{Error, SemanticType};

/// Exceptions from the rule that every field of the schema is allowed.
///
/// A name is the full name of a field (`shop.Order.note`) or of a message (`shop.Card`), which
/// stands for all fields of that type.
#[derive(Clone, Debug, Default)]
pub struct Options {
    exclude: Vec<String>,
    pass: Vec<String>,
    strings: Vec<(String, StringField)>,
}

impl Options {
    /// Makes options without exceptions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Excludes a field, or a message wherever it occurs.
    #[must_use]
    pub fn exclude(mut self, name: impl Into<String>) -> Self {
        self.exclude.push(name.into());
        self
    }

    /// Allows a nested message with all its fields, including those that the schema does not know.
    #[must_use]
    pub fn pass(mut self, name: impl Into<String>) -> Self {
        self.pass.push(name.into());
        self
    }

    /// Applies string rules to a string field as one of type `semantic_type`; 0 is unspecified.
    ///
    /// Bytecode for older services does not have the field; see
    /// [`filter_string_with`](Self::filter_string_with).
    #[must_use]
    pub fn filter_string(self, name: impl Into<String>, semantic_type: u32) -> Self {
        let semantic_type = SemanticType(semantic_type);
        self.filter_string_with(name, StringField { semantic_type, ..StringField::default() })
    }

    /// As [`filter_string`](Self::filter_string), with the treatment by older services.
    #[must_use]
    pub fn filter_string_with(mut self, name: impl Into<String>, string: StringField) -> Self {
        self.strings.push((name.into(), string));
        self
    }
}

/// Treatment of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Exclude,
    /// By its type: a message is entered, any other field passes.
    Allow,
    Pass,
    FilterString(StringField),
}

/// Applies options and notes which of them applied.
pub(super) struct Judge<'a> {
    options: &'a Options,
    unused: BTreeSet<&'a str>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        let names = options.exclude.iter().chain(&options.pass).chain(options.strings.iter().map(|(name, _)| name));
        Self { options, unused: names.map(String::as_str).collect() }
    }

    pub(super) fn fate(&mut self, field: &FieldDescriptor) -> Result<Fate, Error> {
        let kind = field.kind();
        let message = kind.as_message().map(|message| message.full_name().to_owned());
        let mut applies = |name: &'a String| {
            let bare = name.strip_prefix('.').unwrap_or(name);
            let applies = bare == field.full_name() || message.as_deref() == Some(bare);
            if applies {
                self.unused.remove(name.as_str());
            }
            applies
        };
        // All options are checked, so that each one that applies is noted.
        let excluded = self.options.exclude.iter().filter(|name| applies(name)).count() > 0;
        let passed = self.options.pass.iter().filter(|name| applies(name)).count() > 0;
        let string = self.options.strings.iter().filter(|(name, _)| applies(name)).last();
        let annotation = Annotation::of(field);
        let string = string.map(|(_, string)| *string).or(annotation.string);
        if string.is_some() && kind != Kind::String {
            return Err(Error::NotString(field.full_name().to_owned()));
        }
        Ok(match string {
            _ if excluded => Fate::Exclude,
            Some(string) => Fate::FilterString(string),
            None if passed || annotation.pass => Fate::Pass,
            None => Fate::Allow,
        })
    }

    /// # Errors
    ///
    /// If there is an option that never applied.
    pub(super) fn finish(self) -> Result<(), Error> {
        self.unused.first().map_or(Ok(()), |name| Err(Error::UnusedName((*name).to_owned())))
    }
}

/// Options of a field in the schema.
///
/// They are read by number, so any file may declare them.
#[derive(Default)]
struct Annotation {
    string: Option<StringField>,
    pass: bool,
}

/// Extension of `FieldOptions` for the filtering of a string, and its fields.
const PROTO_FILTER: u32 = 73_400_001;
const SEMANTIC_TYPE: u32 = 1;
const FILTER_STRING: u32 = 2;
const ALLOW_V2_WITH_SEMANTIC_TYPE: u32 = 4;
const ALLOW_V1_WITH_FILTER_STRING: u32 = 5;

/// Extension of `FieldOptions` that allows a message unchanged.
const PASSTHROUGH: u32 = 73_400_002;

impl Annotation {
    fn of(field: &FieldDescriptor) -> Self {
        let mut annotation = Self::default();
        for (extension, value) in field.options().extensions() {
            match (extension.number(), value.as_message()) {
                (PASSTHROUGH, _) => annotation.pass = value.as_bool() == Some(true),
                (PROTO_FILTER, Some(options)) => annotation.string = string_field(options),
                _ => {}
            }
        }
        annotation
    }
}

fn string_field(options: &DynamicMessage) -> Option<StringField> {
    let flag = |number| options.get_field_by_number(number).is_some_and(|value| value.as_bool() == Some(true));
    let semantic_type = options.get_field_by_number(SEMANTIC_TYPE);
    // A plain number here, an enumeration in Perfetto's file.
    let semantic_type =
        semantic_type.and_then(|value| value.as_u32().or_else(|| value.as_enum_number()?.try_into().ok()));
    let string = StringField {
        semantic_type: SemanticType(semantic_type.unwrap_or(0)),
        pass_in_v1: flag(ALLOW_V1_WITH_FILTER_STRING),
        untyped_in_v2: flag(ALLOW_V2_WITH_SEMANTIC_TYPE),
    };
    (flag(FILTER_STRING) || string.semantic_type != SemanticType(0)).then_some(string)
}
