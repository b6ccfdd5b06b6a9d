//! The lexer: text → [`Token`]s.

use std::rc::Rc;

use super::token::{Token, TokenKind};
use crate::error::Result;
use crate::source::{Source, Span};

/// Splits the text into tokens. The last one is [`TokenKind::End`].
pub(crate) fn tokens(source: &Rc<Source>) -> Result<Vec<Token>> {
    let mut lexer = Lexer { source, rest: source.text() };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next()?;
        let is_end = token.kind == TokenKind::End;
        tokens.push(token);
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    source: &'a Rc<Source>,
    rest: &'a str,
}

impl<'a> Lexer<'a> {
    fn span(&self) -> Span {
        Span::new(self.source, self.source.text().len() - self.rest.len())
    }

    /// Takes the characters that fit from the front.
    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|character| !fits(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn next(&mut self) -> Result<Token> {
        loop {
            self.take_while(char::is_whitespace);
            // Four slashes are a plain comment, as in a line of slashes.
            let is_doc = self.rest.starts_with("///") && !self.rest.starts_with("////");
            if !self.rest.starts_with("//") || is_doc {
                break;
            }
            self.take_while(|character| character != '\n');
        }
        let span = self.span();
        let kind = match self.rest.chars().next() {
            None => TokenKind::End,
            Some('/') if self.rest.starts_with("///") => {
                let line = self.take_while(|character| character != '\n');
                TokenKind::Doc(line[3..].trim_end_matches('\r').to_owned())
            }
            Some('"') => TokenKind::Text(self.text()?),
            Some('-') if self.rest.starts_with("->") => {
                self.rest = &self.rest[2..];
                TokenKind::Arrow
            }
            Some(first) if first == '-' || first.is_ascii_digit() => TokenKind::Number(self.number()?),
            Some(first) if first.is_ascii_alphabetic() => TokenKind::Name(self.name()?),
            Some(sign) if ";:,.=|<>(){}[]@?".contains(sign) => {
                self.rest = &self.rest[sign.len_utf8()..];
                TokenKind::Sign(sign)
            }
            Some(other) => return Err(span.error(format!("unexpected character {other:?}"))),
        };
        Ok(Token { kind, span })
    }

    fn name(&mut self) -> Result<String> {
        let span = self.span();
        let name = self.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
        if name.ends_with('_') {
            return Err(span.error(format!("the name `{name}` must not end with an underscore")));
        }
        Ok(name.to_owned())
    }

    fn number(&mut self) -> Result<String> {
        let span = self.span();
        let sign = if self.rest.starts_with('-') { 1 } else { 0 };
        let digits = &self.rest[sign..];
        let is_hex = digits.starts_with("0x") || digits.starts_with("0X");
        let mut previous = '0';
        let fits = |character: char, previous: char| match character {
            '.' => true,
            '+' | '-' => !is_hex && matches!(previous, 'e' | 'E'),
            _ => character.is_ascii_alphanumeric() || character == '_',
        };
        let mut length = sign;
        for character in digits.chars() {
            if !fits(character, previous) {
                break;
            }
            previous = character;
            length += character.len_utf8();
        }
        let (number, rest) = self.rest.split_at(length);
        if length == sign {
            return Err(span.error("expected a number after `-`"));
        }
        self.rest = rest;
        Ok(number.to_owned())
    }

    fn text(&mut self) -> Result<String> {
        let start = self.span();
        self.rest = &self.rest[1..];
        let mut text = String::new();
        loop {
            text.push_str(self.take_while(|character| !matches!(character, '"' | '\\' | '\n' | '\r')));
            let span = self.span();
            if let Some(rest) = self.rest.strip_prefix('"') {
                self.rest = rest;
                return Ok(text);
            }
            let Some(escaped) = self.rest.strip_prefix('\\') else {
                return Err(start.error("the string has no end on its line"));
            };
            let mut characters = escaped.chars();
            let character = match characters.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(same @ ('\\' | '"')) => same,
                Some('u') => {
                    let (character, rest) = unicode(characters.as_str()).ok_or_else(|| {
                        span.error("expected 1 to 6 hexadecimal digits of a character, as in \\u{1f600}")
                    })?;
                    characters = rest.chars();
                    character
                }
                _ => return Err(span.error("unknown escape; known are \\\\ \\\" \\n \\r \\t \\u{…}")),
            };
            text.push(character);
            self.rest = characters.as_str();
        }
    }
}

/// Reads `{HEX}`.
fn unicode(text: &str) -> Option<(char, &str)> {
    let (digits, rest) = text.strip_prefix('{')?.split_once('}')?;
    let is_short = (1..=6).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16).ok().filter(|_| is_short)?;
    Some((char::from_u32(code)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(&Source::new("test.fidl", text)).unwrap().into_iter().map(|token| token.kind).collect()
    }

    fn message(text: &str) -> String {
        tokens(&Source::new("test.fidl", text)).unwrap_err().to_string()
    }

    #[test]
    fn words_numbers_and_strings_are_told_apart() {
        let name = |name: &str| TokenKind::Name(name.to_owned());
        let number = |number: &str| TokenKind::Number(number.to_owned());
        assert_eq!(
            kinds("a_1 -> -0x7f 1.5e-3 // rest\n\"x\\u{41}\\n\" /// doc\n//// no doc\n;"),
            [
                name("a_1"),
                TokenKind::Arrow,
                number("-0x7f"),
                number("1.5e-3"),
                TokenKind::Text("xA\n".to_owned()),
                TokenKind::Doc(" doc".to_owned()),
                TokenKind::Sign(';'),
                TokenKind::End,
            ]
        );
        assert_eq!(kinds("0x1e-1")[..2], [number("0x1e"), number("-1")], "no exponent in hexadecimal");
    }

    #[test]
    fn errors_name_line_and_column() {
        assert_eq!(message("a\n  é"), "test.fidl:2:3: unexpected character 'é'");
        assert_eq!(message("é\"a\nb\""), "test.fidl:1:1: unexpected character 'é'");
        assert_eq!(message("x \"a\nb\""), "test.fidl:1:3: the string has no end on its line");
        assert!(message("\"\\u{110000}\"").contains("1 to 6 hexadecimal digits"));
        assert!(message("\"\\q\"").contains("unknown escape"));
        assert!(message("a_ ").contains("must not end with an underscore"));
        assert!(message("- 1").contains("expected a number"));
    }
}
