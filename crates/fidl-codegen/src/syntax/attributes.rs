//! How attributes are read: doc comments, `@name(…)`, and the form `[Name = "…"]` of old files.

use super::parser::Parser;
use super::token::TokenKind;
use super::tree::{Attribute, Attributes, Constant, ConstantPart};
use crate::error::Result;

impl Parser {
    pub(super) fn attributes(&mut self) -> Result<Attributes> {
        let mut attributes: Vec<Attribute> = Vec::new();
        loop {
            let span = self.span();
            match self.peek().clone() {
                TokenKind::Doc(line) => {
                    self.take();
                    let line = format!("{line}\n");
                    match attributes.last_mut().filter(|last| last.name == "doc") {
                        Some(doc) => append(doc, &line),
                        None => attributes.push(doc(line, span)),
                    }
                }
                TokenKind::Sign('@') => {
                    self.take();
                    let name = self.ident("the name of an attribute")?.text;
                    let arguments = if self.sign('(') { self.arguments()? } else { Vec::new() };
                    attributes.push(Attribute { name: lower_snake(&name), span, arguments });
                }
                TokenKind::Sign('[') => {
                    self.take();
                    self.bracketed(&mut attributes)?;
                }
                _ => break,
            }
        }
        for (index, attribute) in attributes.iter().enumerate() {
            if attributes[..index].iter().any(|earlier| earlier.name == attribute.name) {
                return Err(attribute.span.error(format!("the attribute `{}` is there twice", attribute.name)));
            }
        }
        Ok(Attributes(attributes))
    }

    /// Reads `Name = "…", Other]`.
    fn bracketed(&mut self, attributes: &mut Vec<Attribute>) -> Result<()> {
        loop {
            let name = self.ident("the name of an attribute")?;
            let mut arguments = Vec::new();
            if self.sign('=') {
                arguments.push((None, self.constant()?));
            }
            attributes.push(Attribute { name: lower_snake(&name.text), span: name.span, arguments });
            if !self.sign(',') {
                return self.expect(']', "after the attributes");
            }
        }
    }

    /// Reads `value)` or `name=value, …)`.
    pub(super) fn arguments(&mut self) -> Result<Vec<(Option<String>, Constant)>> {
        let mut arguments = Vec::new();
        loop {
            let is_named = matches!(self.peek(), TokenKind::Name(_)) && *self.peek_second() == TokenKind::Sign('=');
            let name = if is_named {
                let name = self.ident("the name of an argument")?.text;
                self.expect('=', "after the name of the argument")?;
                Some(name)
            } else {
                None
            };
            arguments.push((name, self.constant()?));
            if !self.sign(',') {
                break;
            }
            if *self.peek() == TokenKind::Sign(')') {
                break;
            }
        }
        self.expect(')', "after the arguments")?;
        Ok(arguments)
    }
}

fn doc(text: String, span: crate::source::Span) -> Attribute {
    let value = Constant { span: span.clone(), parts: vec![ConstantPart::Text(text)] };
    Attribute { name: "doc".to_owned(), span, arguments: vec![(None, value)] }
}

fn append(doc: &mut Attribute, line: &str) {
    let parts = doc.arguments.first_mut().map(|(_, value)| &mut value.parts);
    if let Some(ConstantPart::Text(text)) = parts.and_then(|parts| parts.first_mut()) {
        text.push_str(line);
    }
}

/// Returns the name as today's files write it: `Trace` is `trace`, and `NoDoc` is `no_doc`.
fn lower_snake(name: &str) -> String {
    let mut lower = String::new();
    for (index, character) in name.char_indices() {
        if character.is_ascii_uppercase() && index > 0 && !lower.ends_with('_') {
            lower.push('_');
        }
        lower.push(character.to_ascii_lowercase());
    }
    lower
}

#[cfg(test)]
mod tests {
    use super::lower_snake;

    #[test]
    fn old_names_of_attributes_become_todays() {
        assert_eq!(lower_snake("Trace"), "trace");
        assert_eq!(lower_snake("NoDoc"), "no_doc");
        assert_eq!(lower_snake("generated_name"), "generated_name");
    }
}
