//! Parser of scalars: finds their tokens, and checks that they fit the field.

use prost_reflect::{Kind as FieldKind, MessageDescriptor, Syntax};

use super::{Run, Target};
use crate::lexer::{Kind, Span};
use crate::scalar_encoding::{self, NoValue, Number};
use crate::{suggestions, words};

/// A scalar as it is written in the text.
pub(super) struct Scalar {
    pub(super) span: Span,
    negative: bool,
    form: Form,
}

enum Form {
    /// Adjacent strings, which count as one.
    Text(Vec<Span>),
    Number(Span),
    Word(Span),
}

impl Run<'_> {
    /// Takes the tokens of a scalar. Reports an error if there is none.
    pub(super) fn scalar(&mut self, target: Option<&Target>) -> Option<Scalar> {
        let first = self.token;
        let scalar = match first.kind {
            Kind::String => {
                let mut pieces = Vec::new();
                while self.token.kind == Kind::String {
                    pieces.push(self.token.span);
                    if self.text[self.token.span.start..self.token.span.end].contains(&b'\n') {
                        self.multiline = Some(self.token.span);
                    }
                    self.advance();
                }
                return Some(Scalar {
                    span: first.span.to(*pieces.last()?),
                    negative: false,
                    form: Form::Text(pieces),
                });
            }
            Kind::Punct(b'-') => {
                self.advance();
                let span = first.span.to(self.token.span);
                match self.token.kind {
                    Kind::Number => Scalar { span, negative: true, form: Form::Number(self.token.span) },
                    Kind::Ident => Scalar { span, negative: true, form: Form::Word(self.token.span) },
                    _ => {
                        self.unexpected("expected a number after '-'");
                        return None;
                    }
                }
            }
            Kind::Number => Scalar { span: first.span, negative: false, form: Form::Number(first.span) },
            Kind::Ident if !self.begins_a_field() => {
                Scalar { span: first.span, negative: false, form: Form::Word(first.span) }
            }
            _ => {
                let expected = match target {
                    Some(target) => format!(
                        "expected a value of type {} for field {}",
                        scalar_encoding::type_name(&target.kind),
                        target.name
                    ),
                    None => "expected a value".to_owned(),
                };
                if first.kind == Kind::Ident {
                    self.error(first.span, format!("Unexpected {}: {expected}", self.quote_token()));
                } else {
                    self.unexpected(&expected);
                }
                return None;
            }
        };
        self.advance();
        Some(scalar)
    }

    /// Encodes a scalar for a field, without tag and length. If it has another type, reports that
    /// and returns false.
    pub(super) fn encode(
        &mut self,
        descriptor: &MessageDescriptor,
        target: &Target,
        scalar: &Scalar,
        out: &mut Vec<u8>,
    ) -> bool {
        match (&scalar.form, &target.kind) {
            (Form::Text(pieces), FieldKind::String | FieldKind::Bytes) => {
                let before = self.errors.len();
                for piece in pieces {
                    self.unescape(descriptor, target, *piece, out);
                }
                return self.errors.len() == before;
            }
            (Form::Word(word), FieldKind::Enum(of)) if !scalar.negative => {
                let word = self.word(*word);
                if let Some(value) = of.get_value_by_name(&word) {
                    scalar_encoding::sign_extended(value.number(), out);
                    return true;
                }
                if !self.lossy {
                    let hint = suggestions::enum_value(of, &word);
                    let message = format!(
                        "Unexpected value '{word}' for enum field {} in proto {}{hint}",
                        target.name,
                        descriptor.name()
                    );
                    self.error(scalar.span, message);
                }
                return false;
            }
            (Form::Number(digits), FieldKind::Enum(of)) => {
                let text = self.word(*digits);
                if let Some(value) = scalar_encoding::enum_number(Number { negative: scalar.negative, text: &text }) {
                    // A proto2 enum has only the listed values.
                    if of.get_value(value).is_some() || of.parent_file().syntax() != Syntax::Proto2 {
                        scalar_encoding::sign_extended(value, out);
                        return true;
                    }
                    if !self.lossy {
                        let message = format!(
                            "Unexpected value '{value}' for enum field {} in proto {}",
                            target.name,
                            descriptor.name()
                        );
                        self.error(scalar.span, message);
                    }
                    return false;
                }
            }
            (Form::Number(digits), kind) => {
                let text = self.word(*digits);
                match scalar_encoding::number(kind, Number { negative: scalar.negative, text: &text }, out) {
                    Ok(()) => return true,
                    Err(NoValue::OutOfRange(why)) => {
                        let message = format!(
                            "Value for field {} in proto {} does not fit: {why}",
                            target.name,
                            descriptor.name()
                        );
                        self.error(scalar.span, message);
                        return false;
                    }
                    Err(NoValue::Mismatch) => {}
                }
            }
            (Form::Word(word), kind) => {
                let word = self.word(*word);
                if words::word(kind, scalar.negative, &word, out).is_some() {
                    return true;
                }
            }
            _ => {}
        }
        self.mismatch(descriptor, target, scalar.span);
        false
    }

    fn unescape(&mut self, descriptor: &MessageDescriptor, target: &Target, piece: Span, out: &mut Vec<u8>) {
        let content = &self.text[piece.start + 1..piece.end - 1];
        let mut bad = Vec::new();
        scalar_encoding::unescape(content, out, &mut bad);
        for escape in bad {
            let start = piece.start + 1 + escape.at;
            let span = Span { start, end: (start + escape.length).min(piece.end - 1) };
            let (field, proto, seen) = (&target.name, descriptor.name(), self.quote(span));
            let message = if escape.unknown {
                format!("Unknown string escape in {field} in proto {proto}: {seen}")
            } else {
                format!(
                    "Malformed string escape in {field} in proto {proto} on {seen}. Expected \\NNN (octal, at most 377), \
                     \\xNN, \\uNNNN or \\UNNNNNNNN"
                )
            };
            self.error(span, message);
        }
    }

    pub(super) fn mismatch(&mut self, descriptor: &MessageDescriptor, target: &Target, seen: Span) {
        let expected = scalar_encoding::type_name(&target.kind);
        let (field, proto, seen_text) = (&target.name, descriptor.name(), self.quote(seen));
        let message = match target.kind {
            FieldKind::Bool => {
                format!("Expected 'true' or 'false' for boolean field {field} in proto {proto} instead saw {seen_text}")
            }
            _ => {
                format!("Expected value of type {expected} for field {field} in proto {proto} instead saw {seen_text}")
            }
        };
        self.error(seen, message);
    }
}
