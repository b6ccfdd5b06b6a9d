//! How uses of types are read: `vector<string:10>:5?`.

use super::super::parser::Parser;
use super::super::token::TokenKind;
use super::super::tree::{Constant, ConstantPart, Parameter, Path, TypeHead, TypeUse};
use crate::error::Result;
use crate::source::Span;

impl Parser {
    pub(super) fn old_type(&mut self) -> Result<TypeUse> {
        self.nested(|parser| {
            let span = parser.span();
            let name = parser.path("a type")?;
            let has_parameter = *parser.peek() == TokenKind::Sign('<');
            let mut type_ = match name.parts.as_slice() {
                [word] if has_parameter => parser.with_parameter(word, &name)?,
                [word] if word == "handle" => use_of(TypeHead::Handle(None), &span),
                _ => use_of(TypeHead::Name(name), &span),
            };
            if parser.sign(':') {
                let is_array = matches!(&type_.head, TypeHead::Name(path) if path.parts == ["array"]);
                if is_array && has_parameter {
                    type_.parameters.push(Parameter::Constant(parser.constant()?));
                } else {
                    type_.constraints.append(&mut parser.constraints()?);
                }
            }
            let question = parser.span();
            if parser.sign('?') {
                let optional = Path { parts: vec!["optional".to_owned()], span: question.clone() };
                type_.constraints.push(Constant { span: question, parts: vec![ConstantPart::Name(optional)] });
            }
            Ok(type_)
        })
    }

    /// Reads `<…>` after the name of a type.
    fn with_parameter(&mut self, word: &str, name: &Path) -> Result<TypeUse> {
        self.expect('<', "after the name of the type")?;
        let type_ = match word {
            "request" => {
                let protocol = self.path("the name of a protocol")?;
                let end = Path { parts: vec!["server_end".to_owned()], span: name.span.clone() };
                let mut type_ = use_of(TypeHead::Name(end), &name.span);
                let span = protocol.span.clone();
                type_.constraints.push(Constant { span, parts: vec![ConstantPart::Name(protocol)] });
                type_
            }
            "handle" => {
                let object = self.ident("the type of the handle")?;
                if self.sign(',') {
                    // The rights of a handle mean nothing for a descriptor.
                    self.constant()?;
                }
                use_of(TypeHead::Handle(Some(object)), &name.span)
            }
            _ => {
                let element = self.old_type()?;
                let mut type_ = use_of(TypeHead::Name(name.clone()), &name.span);
                type_.parameters.push(Parameter::Type(element));
                type_
            }
        };
        self.expect('>', "after the parameter of the type")?;
        Ok(type_)
    }
}

fn use_of(head: TypeHead, span: &Span) -> TypeUse {
    TypeUse { span: span.clone(), head, parameters: Vec::new(), constraints: Vec::new() }
}
