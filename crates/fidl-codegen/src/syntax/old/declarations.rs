//! How declarations are read: `struct Point { int32 x; };`.

use super::super::layouts::kind;
use super::super::parser::Parser;
use super::super::token::TokenKind;
use super::super::tree::{
    Attributes, Declaration, DeclarationKind, Ident, Layout, LayoutKind, Member, Modifier, TypeHead, TypeUse,
};
use crate::error::Result;

impl Parser {
    pub(in super::super) fn old_declaration(&mut self, attributes: Attributes) -> Result<Declaration> {
        let kinds = "`const`, `using`, `enum`, `bits`, `struct`, `table`, `union`, `protocol` or `service`";
        let is_handle = self.is_word("resource") && *self.peek_third() == TokenKind::Sign(':');
        let modifiers = if is_handle { Vec::new() } else { self.modifiers(&["strict", "flexible", "resource"])? };
        let span = self.span();
        let TokenKind::Name(keyword) = self.peek().clone() else { return Err(self.unexpected(kinds)) };
        let layout = if keyword == "xunion" { Some(LayoutKind::Union) } else { kind(&keyword) };
        if layout.is_none() && !modifiers.is_empty() {
            return Err(self.unexpected("`enum`, `bits`, `struct`, `table` or `union`"));
        }
        if keyword == "interface" {
            return Err(span.error("`interface` is older than this syntax, which has `protocol`"));
        }
        if layout.is_none() && !matches!(keyword.as_str(), "const" | "using" | "protocol" | "service" | "resource") {
            return Err(self.unexpected(kinds));
        }
        self.take();
        let name_after = format!("a name after `{keyword}`");
        let (name, kind) = match (layout, keyword.as_str()) {
            (Some(layout), _) => {
                let name = self.ident(&name_after)?;
                let modifiers = with_strictness(layout, keyword == "xunion", modifiers, &name);
                (name, DeclarationKind::Type(self.old_layout(layout, &keyword, modifiers)?))
            }
            (None, "const") => {
                let type_ = self.old_type()?;
                let name = self.ident("the name of the constant")?;
                self.expect('=', "before the value")?;
                (name, DeclarationKind::Const { type_, value: self.constant()? })
            }
            (None, "using") => {
                let name = self.ident(&name_after)?;
                self.expect('=', "after the name of the alias")?;
                (name, DeclarationKind::Alias(self.old_type()?))
            }
            (None, "protocol") => (self.ident(&name_after)?, DeclarationKind::Protocol(self.old_protocol()?)),
            (None, "service") => (self.ident(&name_after)?, DeclarationKind::Service(self.old_members("the service")?)),
            (None, _) => (self.ident(&name_after)?, DeclarationKind::Resource(self.old_resource()?)),
        };
        self.expect(';', &format!("after the declaration of `{}`", name.text))?;
        Ok(Declaration { attributes, name, kind })
    }

    fn old_resource(&mut self) -> Result<Vec<Member>> {
        self.expect(':', "before the type of the resource")?;
        self.old_type()?;
        self.expect('{', "before the content of the resource")?;
        if !self.word("properties") {
            return Err(self.unexpected("`properties`"));
        }
        let members = self.old_members("the properties")?;
        self.expect(';', "after the properties")?;
        self.expect('}', "after the properties")?;
        Ok(members)
    }

    /// Reads `{ Type name; … }`.
    fn old_members(&mut self, of: &str) -> Result<Vec<Member>> {
        self.expect('{', &format!("before the members of {of}"))?;
        let mut members = Vec::new();
        while !self.sign('}') {
            members.push(self.old_member()?);
            self.expect(';', "after the member")?;
        }
        Ok(members)
    }

    /// Reads `Type name`.
    pub(super) fn old_member(&mut self) -> Result<Member> {
        let attributes = self.attributes()?;
        let span = self.span();
        let type_ = Some(self.old_type()?);
        let name = Some(self.ident("a name after the type")?);
        Ok(Member { attributes, ordinal: None, name, type_, value: None, span })
    }

    fn old_layout(&mut self, kind: LayoutKind, keyword: &str, modifiers: Vec<Modifier>) -> Result<TypeUse> {
        let span = self.span();
        let subtype = if self.sign(':') { Some(self.old_type()?) } else { None };
        self.expect('{', &format!("before the members of the {keyword}"))?;
        let mut members = Vec::new();
        while !self.sign('}') {
            members.push(match kind {
                LayoutKind::Bits | LayoutKind::Enum => self.member(kind)?,
                LayoutKind::Struct => {
                    let mut member = self.old_member()?;
                    if self.sign('=') {
                        member.value = Some(self.constant()?);
                    }
                    self.expect(';', "after the member")?;
                    member
                }
                LayoutKind::Table | LayoutKind::Union => self.old_ordinal_member()?,
            });
        }
        Ok(layout_use(kind, modifiers, subtype, members, span))
    }

    fn old_ordinal_member(&mut self) -> Result<Member> {
        let attributes = self.attributes()?;
        let span = self.span();
        let ordinal = Some(self.member_ordinal()?);
        let member = if self.is_word("reserved") && *self.peek_second() == TokenKind::Sign(';') {
            self.take();
            Member { attributes, ordinal, name: None, type_: None, value: None, span }
        } else {
            Member { attributes, ordinal, span, ..self.old_member()? }
        };
        self.expect(';', "after the member")?;
        Ok(member)
    }
}

pub(super) fn layout_use(
    kind: LayoutKind,
    modifiers: Vec<Modifier>,
    subtype: Option<TypeUse>,
    members: Vec<Member>,
    span: crate::source::Span,
) -> TypeUse {
    let is_message = matches!(kind, LayoutKind::Struct | LayoutKind::Table | LayoutKind::Union);
    let infers_resource = is_message && !modifiers.iter().any(|modifier| modifier.name == "resource");
    let attributes = Attributes::default();
    let layout = Layout { attributes, modifiers, kind, subtype, members, span: span.clone(), infers_resource };
    TypeUse { span, head: TypeHead::Layout(Box::new(layout)), parameters: Vec::new(), constraints: Vec::new() }
}

/// Adds `strict` where this syntax does not write it.
fn with_strictness(kind: LayoutKind, is_xunion: bool, mut modifiers: Vec<Modifier>, name: &Ident) -> Vec<Modifier> {
    let has_strictness = matches!(kind, LayoutKind::Bits | LayoutKind::Enum | LayoutKind::Union);
    let is_written = modifiers.iter().any(|modifier| matches!(modifier.name.as_str(), "strict" | "flexible"));
    if has_strictness && !is_written && !is_xunion {
        modifiers.push(implied("strict", name));
    }
    modifiers
}

/// Makes a modifier that this syntax does not write.
pub(super) fn implied(modifier: &str, name: &Ident) -> Modifier {
    Modifier { name: modifier.to_owned(), span: name.span.clone(), arguments: Vec::new() }
}
