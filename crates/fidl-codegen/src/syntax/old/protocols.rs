//! How protocols are read: `Divide(int32 a, int32 b) -> (int32 quotient) error Reason;`.

use super::super::parser::Parser;
use super::super::token::TokenKind;
use super::super::tree::{Attributes, LayoutKind, Method, Payload, Protocol};
use super::declarations::{implied, layout_use};
use crate::error::Result;
use crate::syntax::{Ident, Modifier};

impl Parser {
    pub(super) fn old_protocol(&mut self) -> Result<Protocol> {
        let span = self.span();
        let closed = Modifier { name: "closed".to_owned(), span, arguments: Vec::new() };
        self.protocol(vec![closed], Self::old_method)
    }

    fn old_method(&mut self, attributes: Attributes) -> Result<Method> {
        if matches!(self.peek(), TokenKind::Number(_)) {
            return Err(self.span().error("methods with ordinals are older than this syntax"));
        }
        let is_event = *self.peek() == TokenKind::Arrow;
        let (name, request, mut response, mut error): (Ident, _, _, _);
        if is_event {
            self.take();
            name = self.ident("the name of the event")?;
            (request, response, error) = (None, Some(self.old_parameters()?), None);
        } else {
            name = self.ident("a method, an event, `compose` or `}`")?;
            (request, response, error) = (Some(self.old_parameters()?), None, None);
            if *self.peek() == TokenKind::Arrow {
                self.take();
                response = Some(self.old_parameters()?);
                if self.word("error") {
                    error = Some(self.old_type()?);
                }
            }
        }
        self.expect(';', if is_event { "after the event" } else { "after the method" })?;
        Ok(Method { attributes, modifiers: vec![implied("strict", &name)], name, request, response, error })
    }

    /// Reads `(Type name, …)`.
    fn old_parameters(&mut self) -> Result<Payload> {
        let span = self.span();
        self.expect('(', "before the parameters")?;
        if self.sign(')') {
            return Ok(Payload(None));
        }
        let mut members = vec![self.old_member()?];
        while self.sign(',') {
            members.push(self.old_member()?);
        }
        self.expect(')', "after the parameters")?;
        Ok(Payload(Some(layout_use(LayoutKind::Struct, Vec::new(), None, members, span))))
    }
}
