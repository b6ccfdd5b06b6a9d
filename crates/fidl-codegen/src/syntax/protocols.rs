//! How protocols are read: methods, events, composed protocols.

use super::parser::Parser;
use super::token::TokenKind;
use super::tree::{Attributes, Composed, Method, Modifier, Payload, Protocol};
use crate::error::Result;

impl Parser {
    /// Reads the braces of a protocol, whose methods `method` reads.
    pub(super) fn protocol(
        &mut self,
        modifiers: Vec<Modifier>,
        mut method: impl FnMut(&mut Self, Attributes) -> Result<Method>,
    ) -> Result<Protocol> {
        self.expect('{', "before the methods of the protocol")?;
        let mut protocol = Protocol { modifiers, composed: Vec::new(), methods: Vec::new() };
        while !self.sign('}') {
            let attributes = self.attributes()?;
            if self.is_word("compose") && matches!(self.peek_second(), TokenKind::Name(_)) {
                self.take();
                let composed = self.path("the name of a protocol")?;
                self.expect(';', "after the composed protocol")?;
                protocol.composed.push(Composed { attributes, protocol: composed });
            } else {
                protocol.methods.push(method(self, attributes)?);
            }
        }
        Ok(protocol)
    }

    pub(super) fn method(&mut self, attributes: Attributes) -> Result<Method> {
        // `strict(…)` with versions, or a method of the name `strict`.
        let is_named_as_modifier = *self.peek_second() == TokenKind::Sign('(') && !self.has_versions();
        let modifiers = if is_named_as_modifier { Vec::new() } else { self.modifiers(&["strict", "flexible"])? };
        if *self.peek() == TokenKind::Arrow {
            self.take();
            let name = self.ident("the name of the event")?;
            let response = Some(self.payload()?);
            if self.is_word("error") {
                return Err(self.span().error("an event has no error"));
            }
            self.expect(';', "after the event")?;
            return Ok(Method { attributes, modifiers, name, request: None, response, error: None });
        }
        let name = self.ident("a method, an event, `compose` or `}`")?;
        let request = Some(self.payload()?);
        let (mut response, mut error) = (None, None);
        if *self.peek() == TokenKind::Arrow {
            self.take();
            response = Some(self.payload()?);
            if self.word("error") {
                error = Some(self.type_use()?);
            }
        }
        self.expect(';', "after the method")?;
        Ok(Method { attributes, modifiers, name, request, response, error })
    }

    fn payload(&mut self) -> Result<Payload> {
        self.expect('(', "before the parameters")?;
        if self.sign(')') {
            return Ok(Payload(None));
        }
        let type_ = self.type_use()?;
        self.expect(')', "after the parameters")?;
        Ok(Payload(Some(type_)))
    }
}
