//! Translation of ECMAScript's patterns to those of `regex` and `fancy-regex`.
//!
//! A pattern is read once from left to right, with a stack of the open groups. The output is a
//! small language that means the same in every dialect: classes of `\xHH`, groups, alternatives,
//! repetitions, and the few assertions in full. Everything that is not understood is refused, so no
//! construct of the other dialect can get through.
//!
//! Some details prevent a plain translation:
//!
//! - `regex-syntax` (0.8.11) factors out the common beginning of alternatives: `.*?b|.*?c` becomes
//!   `.*?(?:b|c)`. If the common part has a variable length, this changes the first match: on `acb`
//!   it is `ac` and not `acb`. An empty group at the beginning of the first alternative prevents
//!   this.
//! - `fancy-regex` (0.20) turns `b*c??b*` and similar patterns into `b*(?:c*?b*)?`, and then finds
//!   a longer match. An empty group after each repetition prevents this.
//! - After that, groups no longer have the numbers of the original. So they have names: `g1` is
//!   group 1.

use core::fmt::Write as _;

use super::byte_set::ByteSet;
use crate::Error;

/// Translated pattern for `regex` without Unicode, or for `fancy-regex` in its ASCII mode.
pub(super) struct Translation {
    pub(super) text: String,
    /// Number of groups of the original. In the translation they are named `g1`, `g2`, ….
    pub(super) groups: usize,
    /// True if the pattern has lookaround or back references, which only `fancy-regex` supports.
    pub(super) backtracks: bool,
}

/// Bounds on patterns.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Largest size of a pattern in bytes.
    pub(super) pattern: usize,
    /// Largest nesting depth of groups.
    pub(super) nesting: usize,
}

/// Translates `pattern`.
pub(super) fn translate(pattern: &[u8], limits: Limits) -> Result<Translation, Error> {
    let error = |(offset, reason): Mistake| Error::Pattern {
        pattern: String::from_utf8_lossy(pattern).into_owned(),
        offset,
        reason: reason.to_owned(),
    };
    if pattern.len() > limits.pattern {
        return Err(error((limits.pattern, "too long")));
    }
    let names = group_names(pattern).map_err(error)?;
    let run = |backtracks| Translator {
        pattern,
        max_nesting: limits.nesting,
        at: 0,
        names: &names,
        groups: 0,
        out: String::new(),
        open: Vec::new(),
        choice: Choice::default(),
        last: Term::None,
        backtracks,
    };
    let translation = run(false).run().map_err(error)?;
    // The translation differs a little for the other engine.
    if translation.backtracks { run(true).run().map_err(error) } else { Ok(translation) }
}

/// Offset and description of a mistake.
type Mistake = (usize, &'static str);

struct Translator<'a> {
    pattern: &'a [u8],
    /// Largest nesting depth of groups.
    max_nesting: usize,
    at: usize,
    /// Names of all groups; empty for groups without a name.
    names: &'a [&'a [u8]],
    /// Number of groups that have begun.
    groups: usize,
    out: String,
    open: Vec<Group>,
    choice: Choice,
    last: Term,
    backtracks: bool,
}

/// Open group.
struct Group {
    /// Offset at which it begins.
    offset: usize,
    /// Number of the group; 0 if it has none.
    number: usize,
    is_lookbehind: bool,
    /// The kind of term that it is when it is closed.
    term: Term,
    /// The alternatives that contain it.
    choice: Choice,
}

/// Alternatives of the group that is being read.
#[derive(Clone, Copy, Default)]
struct Choice {
    /// Offset of the first alternative in the output.
    start: usize,
    /// True if there is more than one alternative.
    is_second: bool,
    /// True if the first alternative can match texts of different lengths.
    varies: bool,
}

/// Term to which a quantifier would apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Term {
    None,
    /// A term that can be repeated.
    Atom,
    Assertion,
    /// A term that is repeated already.
    Quantified,
}

impl<'a> Translator<'a> {
    fn run(mut self) -> Result<Translation, Mistake> {
        while let Some(byte) = self.next() {
            match byte {
                b'^' => self.assertion(r"\A"),
                b'$' => self.assertion(r"\z"),
                b'.' => self.class(ByteSet::of(|byte| !matches!(byte, b'\n' | b'\r'))),
                b'[' => {
                    let set = self.brackets()?;
                    self.class(set);
                }
                b'\\' => self.escape()?,
                b'(' => self.open_group()?,
                b')' => {
                    let group = self.open.pop().ok_or_else(|| self.mistake("`)` without `(`"))?;
                    self.out.push(')');
                    (self.last, self.choice) = (group.term, group.choice);
                }
                b'|' => self.next_alternative(),
                b'*' | b'+' | b'?' => self.quantifier(char::from(byte).to_string())?,
                b'{' => match self.braces()? {
                    Some(text) => self.quantifier(text)?,
                    None => self.literal(byte),
                },
                _ => self.literal(byte),
            }
        }
        match self.open.last() {
            Some(group) => Err((group.offset, "`(` without `)`")),
            None => Ok(Translation { text: self.out, groups: self.groups, backtracks: self.backtracks }),
        }
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.pattern.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Consumes `text` if it comes next.
    fn eat(&mut self, text: &[u8]) -> bool {
        let found = self.pattern[self.at..].starts_with(text);
        self.at += if found { text.len() } else { 0 };
        found
    }

    /// Makes a mistake at the character that was just consumed.
    const fn mistake(&self, reason: &'static str) -> Mistake {
        (self.at.saturating_sub(1), reason)
    }

    fn literal(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() {
            self.out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(self.out, "\\x{byte:02x}");
        }
        self.last = Term::Atom;
    }

    fn class(&mut self, set: ByteSet) {
        set.write(&mut self.out);
        self.last = Term::Atom;
    }

    fn assertion(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = Term::Assertion;
    }

    fn next_alternative(&mut self) {
        let Choice { start, is_second, varies } = self.choice;
        if !is_second && varies {
            self.out.insert_str(start, "()");
        }
        self.choice.is_second = true;
        self.out.push('|');
        self.last = Term::None;
    }

    fn quantifier(&mut self, text: String) -> Result<(), Mistake> {
        if self.last != Term::Atom {
            return Err(self.mistake("nothing that could be repeated"));
        }
        self.out.push_str(&text);
        self.choice.varies = true;
        if self.eat(b"?") {
            self.out.push('?');
        }
        if self.backtracks && !self.open.iter().any(|group| group.is_lookbehind) {
            self.out.push_str("()");
        }
        self.last = Term::Quantified;
        Ok(())
    }

    /// Reads the text after `{`: a quantifier, or `None` if the brace stands for itself.
    fn braces(&mut self) -> Result<Option<String>, Mistake> {
        let rest = &self.pattern[self.at..];
        let Some(size) = rest.iter().position(|byte| *byte == b'}') else { return Ok(None) };
        let Ok(inner) = core::str::from_utf8(&rest[..size]) else { return Ok(None) };
        let (min, max) = match inner.split_once(',') {
            None => (inner, Some(inner)),
            Some((min, "")) => (min, None),
            Some((min, max)) => (min, Some(max)),
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(min) || !max.is_none_or(is_number) {
            return Ok(None);
        }
        let number = |text: &str| text.parse::<u16>().map_err(|_| (self.at, "a number of repetitions over 65535"));
        let (min, max) = (number(min)?, max.map(number).transpose()?);
        if max.is_some_and(|max| max < min) {
            return Err((self.at, "fewer repetitions at most than at least"));
        }
        self.at += size + 1;
        Ok(Some(match max {
            Some(max) if max == min => format!("{{{min}}}"),
            Some(max) => format!("{{{min},{max}}}"),
            None => format!("{{{min},}}"),
        }))
    }

    fn open_group(&mut self) -> Result<(), Mistake> {
        let offset = self.at - 1;
        if self.open.len() >= self.max_nesting {
            return Err((offset, "groups nested too deeply"));
        }
        const LOOK: [&str; 4] = ["?=", "?!", "?<=", "?<!"];
        let before = self.groups;
        let is_lookbehind = [&b"?<="[..], b"?<!"].iter().any(|look| self.pattern[self.at..].starts_with(look));
        let term = if self.eat(b"?:") {
            self.out.push_str("(?:");
            Term::Atom
        } else if let Some(look) = LOOK.into_iter().find(|look| self.eat(look.as_bytes())) {
            self.backtracks = true;
            self.out.push('(');
            self.out.push_str(look);
            Term::Assertion
        } else if self.eat(b"?<") {
            // The name was checked before.
            while self.next().is_some_and(|byte| byte != b'>') {}
            self.capture();
            Term::Atom
        } else if self.eat(b"?") {
            return Err((offset, "a kind of group that ECMAScript does not have"));
        } else {
            self.capture();
            Term::Atom
        };
        self.choice.varies = true;
        let number = if self.groups > before { self.groups } else { 0 };
        self.open.push(Group { offset, number, is_lookbehind, term, choice: self.choice });
        self.choice = Choice { start: self.out.len(), ..Choice::default() };
        self.last = Term::None;
        Ok(())
    }

    fn capture(&mut self) {
        self.groups += 1;
        let _ = write!(self.out, "(?<g{}>", self.groups);
    }

    fn escape(&mut self) -> Result<(), Mistake> {
        match self.next().ok_or_else(|| self.mistake("nothing after `\\`"))? {
            b'b' => self.assertion(r"\b"),
            b'B' => self.assertion(r"\B"),
            b'k' if self.names.iter().any(|name| !name.is_empty()) => {
                let start = self.at;
                let name = if self.eat(b"<") { self.name() } else { None };
                let group = name.and_then(|name| self.names.iter().position(|other| *other == name));
                self.back_reference(group.ok_or((start, "a reference to no group"))? + 1);
            }
            byte @ b'1'..=b'9' => {
                let mut group = usize::from(byte - b'0');
                while let Some(digit) = self.pattern.get(self.at).filter(|byte| byte.is_ascii_digit()) {
                    group = group.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
                    self.at += 1;
                }
                if group > self.names.len() {
                    return Err(self.mistake("a reference to a group that does not exist"));
                }
                self.back_reference(group);
            }
            b'u' => match self.code_unit()? {
                unit @ 0..0x80 => self.literal((unit & 0x7f) as u8),
                unit => {
                    let character = char::from_u32(unit).ok_or_else(|| self.mistake("half a character"))?;
                    self.out.push_str("(?:");
                    character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.literal(byte));
                    self.out.push(')');
                }
            },
            byte => match self.class_escape(byte)? {
                Escaped::Byte(byte) => self.literal(byte),
                Escaped::Set(set) => self.class(set),
            },
        }
        Ok(())
    }

    /// A reference to a group that took no part matches the empty text. In `fancy-regex` it would
    /// fail. Groups that have not ended yet took no part.
    fn back_reference(&mut self, group: usize) {
        if group > self.groups || self.open.iter().any(|open| open.number == group) {
            self.out.push_str("(?:)");
            self.last = Term::Atom;
            return;
        }
        self.backtracks = true;
        let _ = write!(self.out, r"(?:(?(<g{group}>)\k<g{group}>|))");
        self.choice.varies = true;
        self.last = Term::Atom;
    }

    /// Reads an escape that means the same inside and outside of brackets. `byte` came after the
    /// backslash.
    fn class_escape(&mut self, byte: u8) -> Result<Escaped, Mistake> {
        Ok(Escaped::Byte(match byte {
            b'd' | b'D' | b's' | b'S' | b'w' | b'W' => {
                let set = match byte.to_ascii_lowercase() {
                    b'd' => ByteSet::of(u8::is_ascii_digit),
                    b's' => white_space(),
                    _ => word(),
                };
                return Ok(Escaped::Set(if byte.is_ascii_uppercase() { set.complement() } else { set }));
            }
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 0x0b,
            b'f' => 0x0c,
            b'r' => b'\r',
            b'0' if self.pattern.get(self.at).is_some_and(u8::is_ascii_digit) => {
                return Err(self.mistake("an octal escape"));
            }
            b'0' => 0,
            b'c' => match self.next() {
                Some(letter) if letter.is_ascii_alphabetic() => letter & 0x1f,
                _ => return Err(self.mistake("`\\c` without a letter")),
            },
            b'x' => (self.hex(2)? & 0xff) as u8,
            b'u' => match self.code_unit()? {
                unit @ 0..0x80 => (unit & 0x7f) as u8,
                _ => return Err(self.mistake("a character of several bytes in brackets")),
            },
            byte => byte,
        }))
    }

    fn code_unit(&mut self) -> Result<u32, Mistake> {
        self.hex(4)
    }

    fn hex(&mut self, digits: usize) -> Result<u32, Mistake> {
        let text = self.pattern.get(self.at..self.at + digits).filter(|text| text.iter().all(u8::is_ascii_hexdigit));
        let text = text.and_then(|text| core::str::from_utf8(text).ok());
        let value = text.and_then(|text| u32::from_str_radix(text, 16).ok());
        let value = value.ok_or_else(|| self.mistake("too few hexadecimal digits"))?;
        self.at += digits;
        Ok(value)
    }

    /// Reads the text after `<`, up to `>`.
    fn name(&mut self) -> Option<&'a [u8]> {
        let (name, size) = name(&self.pattern[self.at..])?;
        self.at += size;
        Some(name)
    }

    /// Reads the text after `[`, up to `]`.
    fn brackets(&mut self) -> Result<ByteSet, Mistake> {
        let start = self.at - 1;
        let negated = self.eat(b"^");
        let mut set = ByteSet::default();
        loop {
            let item = match self.next().ok_or((start, "`[` without `]`"))? {
                b']' => break,
                byte => self.bracket_item(byte)?,
            };
            // `[a-]` has a hyphen, `[a-z]` a range.
            let is_range = self.pattern[self.at..].first() == Some(&b'-')
                && self.pattern.get(self.at + 1).is_some_and(|byte| *byte != b']');
            set = match item {
                Escaped::Byte(first) if is_range => {
                    self.at += 1;
                    let byte = self.next().ok_or((start, "`[` without `]`"))?;
                    match self.bracket_item(byte)? {
                        Escaped::Byte(last) if first <= last => set.union(ByteSet::of(|b| (first..=last).contains(b))),
                        Escaped::Byte(_) => return Err(self.mistake("a range that ends before it begins")),
                        Escaped::Set(_) => return Err(self.mistake("a range that ends with a class")),
                    }
                }
                Escaped::Set(_) if is_range => return Err(self.mistake("a range that begins with a class")),
                Escaped::Byte(byte) => set.union(ByteSet::of(|b| *b == byte)),
                Escaped::Set(other) => set.union(other),
            };
        }
        Ok(if negated { set.complement() } else { set })
    }

    fn bracket_item(&mut self, byte: u8) -> Result<Escaped, Mistake> {
        match byte {
            b'\\' => match self.next().ok_or_else(|| self.mistake("nothing after `\\`"))? {
                b'b' => Ok(Escaped::Byte(0x08)),
                b'1'..=b'9' => Err(self.mistake("an octal escape")),
                byte => self.class_escape(byte),
            },
            b'[' => match named_class_size(&self.pattern[self.at..]) {
                Some(size) => {
                    let name = &self.pattern[self.at + 1..self.at + size - 2];
                    let set = named_class(name).ok_or_else(|| self.mistake("an unknown named class"))?;
                    self.at += size;
                    Ok(Escaped::Set(set))
                }
                None if matches!(self.pattern.get(self.at), Some(b'.' | b'=')) => {
                    Err(self.mistake("a collating element"))
                }
                None => Ok(Escaped::Byte(byte)),
            },
            _ => Ok(Escaped::Byte(byte)),
        }
    }
}

/// Meaning of an escape.
enum Escaped {
    Byte(u8),
    Set(ByteSet),
}

fn white_space() -> ByteSet {
    ByteSet::of(|byte| matches!(byte, b'\t'..=b'\r' | b' '))
}

fn word() -> ByteSet {
    ByteSet::of(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

fn named_class(name: &[u8]) -> Option<ByteSet> {
    Some(match name {
        b"alnum" => ByteSet::of(u8::is_ascii_alphanumeric),
        b"alpha" => ByteSet::of(u8::is_ascii_alphabetic),
        b"blank" => ByteSet::of(|byte| matches!(byte, b'\t' | b' ')),
        b"cntrl" => ByteSet::of(u8::is_ascii_control),
        b"d" | b"digit" => ByteSet::of(u8::is_ascii_digit),
        b"graph" => ByteSet::of(u8::is_ascii_graphic),
        b"lower" => ByteSet::of(u8::is_ascii_lowercase),
        b"print" => ByteSet::of(|byte| byte.is_ascii_graphic() || *byte == b' '),
        b"punct" => ByteSet::of(u8::is_ascii_punctuation),
        b"s" | b"space" => white_space(),
        b"upper" => ByteSet::of(u8::is_ascii_uppercase),
        b"w" => word(),
        b"xdigit" => ByteSet::of(u8::is_ascii_hexdigit),
        _ => return None,
    })
}

/// Returns the size of `:name:]` at the start of `text`, which comes after a `[`.
fn named_class_size(text: &[u8]) -> Option<usize> {
    let name = text.strip_prefix(b":")?;
    let size = name.iter().position(|byte| !byte.is_ascii_alphabetic())?;
    name[size..].starts_with(b":]").then_some(size + 3)
}

/// Returns the name at the start of `text`, and its size with the `>` that ends it.
fn name(text: &[u8]) -> Option<(&[u8], usize)> {
    let size = text.iter().position(|byte| *byte == b'>')?;
    let name = &text[..size];
    let is_name = name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
    (is_name && name.first().is_some_and(|byte| !byte.is_ascii_digit())).then_some((name, size + 1))
}

/// Returns the names of all groups of `pattern`, empty for groups without a name. References may
/// come before their group.
fn group_names(pattern: &[u8]) -> Result<Vec<&[u8]>, Mistake> {
    let mut names: Vec<&[u8]> = Vec::new();
    let (mut at, mut in_brackets) = (0, false);
    while let Some(byte) = pattern.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            // The `]` of a named class does not end the brackets.
            b'[' if in_brackets => at += named_class_size(&pattern[at..]).unwrap_or(0),
            b'[' => in_brackets = true,
            b']' => in_brackets = false,
            b'(' if !in_brackets => match &pattern[at..] {
                [b'?', b'<', b'=' | b'!', ..] => {}
                [b'?', b'<', rest @ ..] => {
                    let (name, _) = name(rest).ok_or((at, "not a name of a group"))?;
                    if names.contains(&name) {
                        return Err((at, "two groups with one name"));
                    }
                    names.push(name);
                }
                [b'?', ..] => {}
                _ => names.push(b""),
            },
            _ => {}
        }
    }
    Ok(names)
}
