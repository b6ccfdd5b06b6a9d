//! How `struct { … }`, `table`, `union`, `enum` and `bits` are read.

use super::parser::Parser;
use super::token::TokenKind;
use super::tree::{Layout, LayoutKind, Member, Modifier};
use crate::error::Result;
use crate::source::Span;

const MODIFIERS: [&str; 4] = ["strict", "flexible", "resource", "overlay"];

impl Parser {
    /// Returns true if a layout begins here, and not the name of a type, which may be a keyword.
    pub(super) fn is_layout(&self) -> bool {
        match self.peek() {
            TokenKind::Sign('@' | '[') | TokenKind::Doc(_) => true,
            TokenKind::Name(word) if MODIFIERS.contains(&word.as_str()) => {
                matches!(self.peek_second(), TokenKind::Name(_) | TokenKind::Sign('('))
            }
            TokenKind::Name(word) if kind(word).is_some() => {
                // An underlying type follows the colon. Constraints may follow a type of this name,
                // but then the name is that of a declaration, which nobody calls `enum`.
                let is_number_type = matches!(kind(word), Some(LayoutKind::Enum | LayoutKind::Bits));
                *self.peek_second() == TokenKind::Sign('{')
                    || is_number_type && *self.peek_second() == TokenKind::Sign(':')
            }
            _ => false,
        }
    }

    pub(super) fn layout(&mut self) -> Result<Layout> {
        let attributes = self.attributes()?;
        let span = self.span();
        let modifiers = self.modifiers(&MODIFIERS)?;
        let kinds = "`struct`, `table`, `union`, `enum` or `bits`";
        let TokenKind::Name(word) = self.peek().clone() else { return Err(self.unexpected(kinds)) };
        let Some(kind) = kind(&word) else { return Err(self.unexpected(kinds)) };
        self.take();
        let subtype = if self.sign(':') { Some(self.type_use()?) } else { None };
        self.expect('{', &format!("before the members of the {word}"))?;
        let mut members = Vec::new();
        while !self.sign('}') {
            members.push(self.member(kind)?);
        }
        Ok(Layout { attributes, modifiers, kind, subtype, members, span, infers_resource: false })
    }

    /// Reads the modifiers in front of a layout, a protocol or a method.
    pub(super) fn modifiers(&mut self, known: &[&str]) -> Result<Vec<Modifier>> {
        let mut modifiers: Vec<Modifier> = Vec::new();
        loop {
            let span = self.span();
            let TokenKind::Name(name) = self.peek().clone() else { return Ok(modifiers) };
            if !known.contains(&name.as_str()) {
                return Ok(modifiers);
            }
            self.take();
            let arguments = if self.sign('(') { self.arguments()? } else { Vec::new() };
            modifiers.push(Modifier { name, span, arguments });
        }
    }

    pub(super) fn member(&mut self, kind: LayoutKind) -> Result<Member> {
        let attributes = self.attributes()?;
        let span = self.span();
        let mut member = Member { attributes, ordinal: None, name: None, type_: None, value: None, span };
        match kind {
            LayoutKind::Bits | LayoutKind::Enum => {
                member.name = Some(self.ident("the name of a member, or `}`")?);
                self.expect('=', "before the value of the member")?;
                member.value = Some(self.constant()?);
            }
            LayoutKind::Struct => {
                member.name = Some(self.ident("the name of a member, or `}`")?);
                member.type_ = Some(self.type_use()?);
                if self.sign('=') {
                    member.value = Some(self.constant()?);
                }
            }
            LayoutKind::Table | LayoutKind::Union => {
                member.ordinal = Some(self.member_ordinal()?);
                if self.is_word("reserved") && *self.peek_second() == TokenKind::Sign(';') {
                    self.take();
                } else {
                    member.name = Some(self.ident("the name of the member")?);
                    member.type_ = Some(self.type_use()?);
                }
            }
        }
        self.expect(';', "after the member")?;
        Ok(member)
    }
}

impl Parser {
    /// Reads `1:`.
    pub(super) fn member_ordinal(&mut self) -> Result<(u64, Span)> {
        let span = self.span();
        let TokenKind::Number(number) = self.peek().clone() else {
            return Err(self.unexpected("the ordinal of a member, or `}`"));
        };
        self.take();
        let ordinal = number.parse::<u64>().ok().filter(|ordinal| *ordinal > 0);
        let ordinal = ordinal.ok_or_else(|| span.error(format!("`{number}` is no ordinal: use 1, 2, …")))?;
        self.expect(':', "after the ordinal")?;
        Ok((ordinal, span))
    }
}

/// Returns the layout that the keyword stands for.
pub(super) fn kind(word: &str) -> Option<LayoutKind> {
    Some(match word {
        "bits" => LayoutKind::Bits,
        "enum" => LayoutKind::Enum,
        "struct" => LayoutKind::Struct,
        "table" => LayoutKind::Table,
        "union" => LayoutKind::Union,
        _ => return None,
    })
}
