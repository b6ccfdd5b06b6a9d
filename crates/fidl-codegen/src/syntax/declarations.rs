//! How declarations and uses of types are read.

use super::parser::Parser;
use super::token::TokenKind;
use super::tree::{Attributes, Constant, Declaration, DeclarationKind, Member, Parameter, TypeHead, TypeUse};
use crate::error::Result;

impl Parser {
    pub(super) fn declaration(&mut self, attributes: Attributes) -> Result<Declaration> {
        let kinds = "`const`, `type`, `alias`, `protocol`, `service` or `resource_definition`";
        let modifiers = self.modifiers(&["open", "ajar", "closed"])?;
        if !modifiers.is_empty() && !self.is_word("protocol") {
            return Err(self.unexpected("`protocol`"));
        }
        let TokenKind::Name(keyword) = self.peek().clone() else { return Err(self.unexpected(kinds)) };
        if !matches!(keyword.as_str(), "const" | "type" | "alias" | "protocol" | "service" | "resource_definition") {
            return Err(self.unexpected(kinds));
        }
        self.take();
        let name = self.ident(&format!("a name after `{keyword}`"))?;
        let kind = match keyword.as_str() {
            "const" => {
                let type_ = self.type_use()?;
                self.expect('=', "before the value")?;
                DeclarationKind::Const { type_, value: self.constant()? }
            }
            "type" => {
                self.expect('=', "after the name of the type")?;
                DeclarationKind::Type(self.type_use()?)
            }
            "alias" => {
                self.expect('=', "after the name of the alias")?;
                DeclarationKind::Alias(self.type_use()?)
            }
            "protocol" => DeclarationKind::Protocol(self.protocol(modifiers, Self::method)?),
            "service" => DeclarationKind::Service(self.named_members("the service")?),
            _ => DeclarationKind::Resource(self.resource()?),
        };
        self.expect(';', &format!("after the declaration of `{}`", name.text))?;
        Ok(Declaration { attributes, name, kind })
    }

    fn resource(&mut self) -> Result<Vec<Member>> {
        self.expect(':', "before the type of the resource")?;
        self.type_use()?;
        self.expect('{', "before the content of the resource")?;
        if !self.word("properties") {
            return Err(self.unexpected("`properties`"));
        }
        let members = self.named_members("the properties")?;
        self.expect(';', "after the properties")?;
        self.expect('}', "after the properties")?;
        Ok(members)
    }

    /// Reads `{ name type; … }`.
    fn named_members(&mut self, of: &str) -> Result<Vec<Member>> {
        self.expect('{', &format!("before the members of {of}"))?;
        let mut members = Vec::new();
        while !self.sign('}') {
            let attributes = self.attributes()?;
            let span = self.span();
            let name = self.ident("the name of a member, or `}`")?;
            let type_ = Some(self.type_use()?);
            self.expect(';', "after the member")?;
            members.push(Member { attributes, ordinal: None, name: Some(name), type_, value: None, span });
        }
        Ok(members)
    }

    pub(super) fn type_use(&mut self) -> Result<TypeUse> {
        self.nested(|parser| {
            let span = parser.span();
            let head = if parser.is_layout() {
                TypeHead::Layout(Box::new(parser.layout()?))
            } else {
                TypeHead::Name(parser.path("a type")?)
            };
            let parameters = if parser.sign('<') { parser.parameters()? } else { Vec::new() };
            let constraints = if parser.sign(':') { parser.constraints()? } else { Vec::new() };
            Ok(TypeUse { span, head, parameters, constraints })
        })
    }

    fn parameters(&mut self) -> Result<Vec<Parameter>> {
        let mut parameters = Vec::new();
        loop {
            parameters.push(match self.peek() {
                TokenKind::Number(_) | TokenKind::Text(_) => Parameter::Constant(self.constant()?),
                _ => Parameter::Type(self.type_use()?),
            });
            if !self.sign(',') {
                break;
            }
        }
        self.expect('>', "after the parameters of the type")?;
        Ok(parameters)
    }

    pub(super) fn constraints(&mut self) -> Result<Vec<Constant>> {
        if !self.sign('<') {
            return Ok(vec![self.constant()?]);
        }
        let mut constraints = vec![self.constant()?];
        while self.sign(',') {
            constraints.push(self.constant()?);
        }
        self.expect('>', "after the constraints of the type")?;
        Ok(constraints)
    }
}
