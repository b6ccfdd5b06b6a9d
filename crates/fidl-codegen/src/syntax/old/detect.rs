//! Finds the syntax of a file by the parts that only one syntax has.

use super::super::layouts::kind;
use super::super::token::{Token, TokenKind};
use super::super::tree::Syntax;
use crate::error::Result;
use crate::model::Primitive;

/// Returns the syntax of the file. Fails if one part of it is in the one, another in the other.
///
/// A file that says nothing is in today's syntax.
pub(in super::super) fn detect(tokens: &[Token]) -> Result<Syntax> {
    let mut detector = Detector { tokens, next: 0, found: None, has_old_attributes: false };
    detector.file()?;
    Ok(match detector.found {
        Some(mark) => mark.syntax,
        None if detector.has_old_attributes => Syntax::Old,
        None => Syntax::Today,
    })
}

struct Detector<'t> {
    tokens: &'t [Token],
    next: usize,
    /// The first part that only one syntax has.
    found: Option<Mark>,
    has_old_attributes: bool,
}

/// Part of a file that only one syntax has.
#[derive(Clone, Copy)]
struct Mark {
    syntax: Syntax,
    /// Index of its token.
    at: usize,
}

impl Detector<'_> {
    fn token(&self, index: usize) -> &TokenKind {
        self.tokens.get(index).map_or(&TokenKind::End, |token| &token.kind)
    }

    fn word(&self, index: usize) -> Option<&str> {
        match self.token(index) {
            TokenKind::Name(word) => Some(word),
            _ => None,
        }
    }

    fn is_sign(&self, index: usize, sign: char) -> bool {
        *self.token(index) == TokenKind::Sign(sign)
    }

    fn file(&mut self) -> Result<()> {
        loop {
            self.attributes();
            if *self.token(self.next) == TokenKind::End {
                return Ok(());
            }
            match self.word(self.next) {
                Some("protocol") => self.protocol()?,
                _ => {
                    if let Some(syntax) = self.declaration() {
                        self.mark(syntax, self.next)?;
                    }
                }
            }
            self.skip_declaration();
        }
    }

    fn mark(&mut self, syntax: Syntax, at: usize) -> Result<()> {
        let Some(first) = self.found else {
            self.found = Some(Mark { syntax, at });
            return Ok(());
        };
        if first.syntax == syntax {
            return Ok(());
        }
        let line = self.tokens[first.at].span.line();
        let message = match syntax {
            Syntax::Today => format!("this is in today's syntax, but line {line} in that from before 2021"),
            Syntax::Old => format!("this is in the syntax from before 2021, but line {line} in today's"),
        };
        Err(self.tokens[at].span.error(format!("{message}: a file has one of them")))
    }

    /// Skips attributes and doc comments.
    fn attributes(&mut self) {
        loop {
            match self.token(self.next) {
                TokenKind::Doc(_) => self.next += 1,
                TokenKind::Sign('@') => {
                    self.next += 2;
                    if self.is_sign(self.next, '(') {
                        self.skip_to(')');
                    }
                }
                TokenKind::Sign('[') => {
                    // The form of the RFC is allowed in today's files.
                    self.has_old_attributes |= self.word(self.next + 1) != Some("Trace");
                    self.skip_to(']');
                }
                _ => return,
            }
        }
    }

    /// Skips until after the sign.
    fn skip_to(&mut self, sign: char) {
        while !self.is_sign(self.next, sign) && *self.token(self.next) != TokenKind::End {
            self.next += 1;
        }
        self.next += 1;
    }

    /// Skips until after the `;` that is in no braces.
    fn skip_declaration(&mut self) {
        let mut depth = 0_usize;
        loop {
            match self.token(self.next) {
                TokenKind::Sign('{') => depth += 1,
                TokenKind::Sign('}') => depth = depth.saturating_sub(1),
                TokenKind::Sign(';') if depth == 0 => {
                    self.next += 1;
                    return;
                }
                TokenKind::End => return,
                _ => {}
            }
            self.next += 1;
        }
    }

    /// Returns the syntax of a declaration that is no protocol.
    fn declaration(&self) -> Option<Syntax> {
        let at = self.next;
        let second = self.word(at + 1);
        match self.word(at)? {
            "type" | "alias" if self.is_sign(at + 2, '=') => Some(Syntax::Today),
            "resource_definition" => second.map(|_| Syntax::Today),
            "open" | "ajar" | "closed" => (second == Some("protocol")).then_some(Syntax::Today),
            "resource" if self.is_sign(at + 2, ':') => second.map(|_| Syntax::Old),
            "strict" | "flexible" | "resource" => second.map(|_| Syntax::Old),
            "xunion" | "interface" => second.map(|_| Syntax::Old),
            "using" => self.is_sign(at + 2, '=').then_some(Syntax::Old),
            "const" => self.constant(at),
            "service" => self.service(at),
            word if kind(word).is_some() => second.map(|_| Syntax::Old),
            _ => None,
        }
    }

    /// `const uint8 NAME = …` or `const NAME uint8 = …`
    fn constant(&self, at: usize) -> Option<Syntax> {
        let is_built_in = |word: Option<&str>| {
            word.is_some_and(|word| Primitive::from_fidl(word).is_some() || matches!(word, "string" | "byte"))
        };
        match (self.word(at + 1)?, self.word(at + 2)) {
            (_, None) => matches!(self.token(at + 2), TokenKind::Sign('.' | ':' | '<' | '?')).then_some(Syntax::Old),
            (_, second) if is_built_in(second) => Some(Syntax::Today),
            (_, Some(_)) if !self.is_sign(at + 3, '=') => Some(Syntax::Today),
            (first, Some(_)) => is_built_in(Some(first)).then_some(Syntax::Old),
        }
    }

    /// `service S { Protocol name; }` or `service S { name client_end:Protocol; }`
    fn service(&self, at: usize) -> Option<Syntax> {
        let mut member = Detector { next: at + 3, found: None, ..*self };
        member.attributes();
        member.word(member.next)?;
        let after = member.after_path(member.next);
        match self.word(after) {
            Some("client_end") => Some(Syntax::Today),
            Some(_) if self.is_sign(after + 1, ';') => Some(Syntax::Old),
            _ => None,
        }
    }

    /// Returns the index after the names and dots at `index`.
    fn after_path(&self, index: usize) -> usize {
        let mut after = index + 1;
        while self.is_sign(after, '.') {
            after += 2;
        }
        after
    }

    /// Looks at the parameters of all methods. Stays at the protocol.
    fn protocol(&mut self) -> Result<()> {
        let start = self.next;
        let mut depth = 0_usize;
        while *self.token(self.next) != TokenKind::End {
            match self.token(self.next) {
                TokenKind::Sign('{') => depth += 1,
                TokenKind::Sign('}') if depth <= 1 => break,
                TokenKind::Sign('}') => depth -= 1,
                TokenKind::Sign('@') => {
                    self.attributes();
                    continue;
                }
                TokenKind::Sign('(') if depth == 1 => {
                    if let Some(syntax) = self.parameters(self.next + 1) {
                        self.mark(syntax, self.next + 1)?;
                    }
                }
                _ => {}
            }
            self.next += 1;
        }
        self.next = start;
        Ok(())
    }

    /// `(Type name, …)`, or `(struct { … })` or `(Type)`
    fn parameters(&self, at: usize) -> Option<Syntax> {
        let first = match self.token(at) {
            TokenKind::Sign('@') => return Some(Syntax::Today),
            TokenKind::Name(first) => first.as_str(),
            _ => return None,
        };
        let after = self.after_path(at);
        match self.token(after) {
            // The versions of a modifier.
            TokenKind::Sign('=') => None,
            TokenKind::Sign(')' | '{') => Some(Syntax::Today),
            TokenKind::Name(_) if matches!(first, "resource" | "strict" | "flexible") => Some(Syntax::Today),
            TokenKind::Name(_) | TokenKind::Sign('<' | '?' | ':') => Some(Syntax::Old),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::detect;
    use crate::source::Source;
    use crate::syntax::Syntax;
    use crate::syntax::lexer::tokens;

    fn syntax(text: &str) -> Result<Syntax, String> {
        let tokens = tokens(&Source::new("t.fidl", &format!("library t;\n{text}"))).unwrap();
        detect(&tokens).map_err(|error| error.to_string())
    }

    #[test]
    fn each_syntax_has_its_marks() {
        for today in [
            "type A = struct {};",
            "alias A = bool;",
            "open protocol P {};",
            "const A uint8 = 1;",
            "const A other.B = 1;",
            "protocol P { M(struct { a bool; }); };",
            "protocol P { @selector(\"a b\") M(a.B) -> (); };",
            "protocol P { strict(added=2) M(resource struct {}); };",
            "service S { @x p client_end:P; };",
            "[Trace = \"x\"] protocol P { M(); };",
            "protocol P { M(); };",
            "",
        ] {
            assert_eq!(syntax(today), Ok(Syntax::Today), "{today}");
        }
        for old in [
            "struct A {};",
            "strict union A {};",
            "xunion A {};",
            "using A = bool;",
            "const uint8 A = 1;",
            "const string:4 A = \"\";",
            "const other.B A = X;",
            "protocol P { M(bool a); };",
            "protocol P { -> M(vector<bool>:4? a); };",
            "service S { a.P p; };",
            "resource handle : uint32 {};",
            "[Discoverable] protocol P { M(); };",
        ] {
            assert_eq!(syntax(old), Ok(Syntax::Old), "{old}");
        }
    }

    #[test]
    fn a_file_has_one_syntax() {
        let old_first = syntax("struct A {\n};\n/// B\ntype B = struct {};").unwrap_err();
        let expected =
            "t.fidl:5:1: this is in today's syntax, but line 2 in that from before 2021: a file has one of them";
        assert_eq!(old_first, expected);
        let today_first = syntax("type A = struct {};\nprotocol P { M(bool a); };").unwrap_err();
        let expected =
            "t.fidl:3:16: this is in the syntax from before 2021, but line 2 in today's: a file has one of them";
        assert_eq!(today_first, expected);
    }
}
