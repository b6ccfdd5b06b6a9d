//! [`Parser`]: the tokens of a file and the next one to read; how a whole file is read.

use std::rc::Rc;

use super::lexer::tokens;
use super::old::detect;
use super::token::{Token, TokenKind};
use super::tree::{Constant, ConstantPart, File, Ident, Path, Syntax, Use};
use crate::error::{Error, Result};
use crate::source::{Source, Span};

/// Nested types and layouts that a file may have. A message has at most 32 levels.
const MAX_DEPTH: usize = 64;

/// Reads a file.
pub(crate) fn parse(source: &Rc<Source>) -> Result<File> {
    let tokens = tokens(source)?;
    let syntax = detect(&tokens)?;
    let mut parser = Parser { tokens, next: 0, depth: 0, syntax };
    parser.file()
}

pub(super) struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    syntax: Syntax,
}

impl Parser {
    /// Returns the token that many places ahead.
    fn ahead(&self, places: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.next + places).min(last)]
    }

    pub(super) fn peek(&self) -> &TokenKind {
        &self.ahead(0).kind
    }

    pub(super) fn peek_second(&self) -> &TokenKind {
        &self.ahead(1).kind
    }

    pub(super) fn peek_third(&self) -> &TokenKind {
        &self.ahead(2).kind
    }

    /// Returns true if `(added=…` or another named argument follows the next token.
    pub(super) fn has_versions(&self) -> bool {
        self.ahead(1).kind == TokenKind::Sign('(') && self.ahead(3).kind == TokenKind::Sign('=')
    }

    pub(super) fn span(&self) -> Span {
        self.ahead(0).span.clone()
    }

    pub(super) fn take(&mut self) -> TokenKind {
        let kind = self.peek().clone();
        if kind != TokenKind::End {
            self.next += 1;
        }
        kind
    }

    /// Takes the sign if it is next.
    pub(super) fn sign(&mut self, sign: char) -> bool {
        let is_next = *self.peek() == TokenKind::Sign(sign);
        if is_next {
            self.next += 1;
        }
        is_next
    }

    pub(super) fn expect(&mut self, sign: char, after: &str) -> Result<()> {
        if self.sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}` {after}"))) }
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), TokenKind::Name(name) if name == word)
    }

    /// Takes the word if it is next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.next += 1;
        }
        is_next
    }

    /// Makes the error that the next token is not `expected`.
    pub(super) fn unexpected(&self, expected: &str) -> Error {
        self.span().error(format!("expected {expected}, found {}", self.peek().describe()))
    }

    pub(super) fn ident(&mut self, expected: &str) -> Result<Ident> {
        let span = self.span();
        match self.peek().clone() {
            TokenKind::Name(text) => {
                self.next += 1;
                Ok(Ident { text, span })
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    pub(super) fn path(&mut self, expected: &str) -> Result<Path> {
        let first = self.ident(expected)?;
        let mut parts = vec![first.text];
        while self.sign('.') {
            parts.push(self.ident("a name after `.`")?.text);
        }
        Ok(Path { parts, span: first.span })
    }

    pub(super) fn constant(&mut self) -> Result<Constant> {
        let span = self.span();
        let mut parts = vec![self.constant_part()?];
        while self.sign('|') {
            parts.push(self.constant_part()?);
        }
        Ok(Constant { span, parts })
    }

    fn constant_part(&mut self) -> Result<ConstantPart> {
        match self.peek().clone() {
            TokenKind::Number(number) => {
                self.next += 1;
                Ok(ConstantPart::Number(number))
            }
            TokenKind::Text(text) => {
                self.next += 1;
                Ok(ConstantPart::Text(text))
            }
            TokenKind::Name(word) if matches!(word.as_str(), "true" | "false") => {
                self.next += 1;
                Ok(ConstantPart::Bool(word == "true"))
            }
            TokenKind::Name(_) => Ok(ConstantPart::Name(self.path("a constant")?)),
            _ => Err(self.unexpected("a constant")),
        }
    }

    /// Runs `parse` one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.span().error(format!("more than {MAX_DEPTH} nested types")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn file(&mut self) -> Result<File> {
        let attributes = self.attributes()?;
        if !self.word("library") {
            return Err(self.unexpected("`library NAME;`"));
        }
        let library = self.path("the name of the library")?;
        let is_valid = |part: &String| {
            part.starts_with(|first: char| first.is_ascii_lowercase())
                && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if let Some(part) = library.parts.iter().find(|part| !is_valid(part)) {
            let message =
                format!("`{part}` is no part of a library name: use a letter, then letters and digits, all lower-case");
            return Err(library.span.error(message));
        }
        self.expect(';', "after the name of the library")?;
        let mut uses = Vec::new();
        let mut declarations = Vec::new();
        while *self.peek() != TokenKind::End {
            let attributes = self.attributes()?;
            let is_alias = *self.peek_third() == TokenKind::Sign('=');
            if self.is_word("using") && matches!(self.peek_second(), TokenKind::Name(_)) && !is_alias {
                if let Some(attribute) = attributes.0.iter().find(|attribute| attribute.name != "doc") {
                    return Err(attribute.span.error("`using` has no attributes"));
                }
                uses.push(self.using()?);
                continue;
            }
            declarations.push(match self.syntax {
                Syntax::Today => self.declaration(attributes)?,
                Syntax::Old => self.old_declaration(attributes)?,
            });
        }
        Ok(File { syntax: self.syntax, is_built_in: false, attributes, library, uses, declarations })
    }

    fn using(&mut self) -> Result<Use> {
        self.next += 1;
        let library = self.path("the name of a library")?;
        let alias = if self.word("as") { Some(self.ident("another name for the library")?) } else { None };
        self.expect(';', "after `using`")?;
        Ok(Use { library, alias })
    }
}
