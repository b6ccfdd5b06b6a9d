//! Parser of the grammar, and its recovery from mistakes.
//!
//! It is a recursive descent over the tokens, with one level of recursion per nested message.
//! Fields are encoded as they come; there is no tree in between. After a mistake, the parser
//! continues where the next field seems to begin: at a name followed by `:` or `{`, or at the end
//! of the message.

mod scalar;

use std::collections::{BTreeMap, HashSet};

use prost_reflect::prost::encoding::{WireType, encode_key, encode_varint};
use prost_reflect::{ExtensionDescriptor, FieldDescriptor, Kind as FieldKind, MessageDescriptor};

use crate::error::{Error, Errors};
use crate::lexer::{Kind, Lexer, Span, Token};
use crate::places::{Place, Places};
use crate::scalar_encoding;
use crate::suggestions;

/// Largest nesting of messages; protobuf's own parsers have the same limit.
pub const MAX_NESTING: usize = 100;
/// Number of mistakes after which the parser stops.
pub const MAX_ERRORS: usize = 100;
/// Longest piece of the text that a message quotes, in characters.
const MAX_QUOTED: usize = 40;

/// Encodes a text as a message of the given type.
///
/// # Errors
///
/// All mistakes of the text. Unknown fields and enum values are mistakes; see [`Parser::lossy`].
pub fn parse(message: &MessageDescriptor, text: impl AsRef<[u8]>) -> Result<Vec<u8>, Errors> {
    Parser::new(message.clone()).parse(text)
}

/// A parser with settings.
#[derive(Debug, Clone)]
pub struct Parser {
    message: MessageDescriptor,
    file_name: String,
    lossy: bool,
}

impl Parser {
    /// Creates a parser for messages of this type.
    pub fn new(message: MessageDescriptor) -> Self {
        Self { message, file_name: "-".to_owned(), lossy: false }
    }

    /// Sets the file name that begins each error. The default is `-`, for standard input.
    #[must_use]
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = name.into();
        self
    }

    /// Sets whether unknown fields, extensions and enum values are dropped instead of reported.
    /// Their content must still be well formed.
    #[must_use]
    pub fn lossy(mut self, lossy: bool) -> Self {
        self.lossy = lossy;
        self
    }

    /// Encodes a text.
    ///
    /// Strings may hold any bytes, as in proto2. Fields are encoded in the order of the text,
    /// packed ones at the end of their message.
    ///
    /// # Errors
    ///
    /// All mistakes of the text.
    pub fn parse(&self, text: impl AsRef<[u8]>) -> Result<Vec<u8>, Errors> {
        self.run(text.as_ref(), None).map(|(bytes, _)| bytes)
    }

    /// Encodes a text like [`parse`](Self::parse), and also returns where each field stands in it.
    /// The places take about 60 bytes for each field.
    ///
    /// # Errors
    ///
    /// All mistakes of the text.
    pub fn parse_with_places(&self, text: impl AsRef<[u8]>) -> Result<(Vec<u8>, Places), Errors> {
        let text = text.as_ref();
        let (bytes, places) = self.run(text, Some(Vec::new()))?;
        Ok((bytes, Places::new(text, places)))
    }

    fn run(&self, text: &[u8], places: Option<Vec<Place>>) -> Result<(Vec<u8>, Vec<Place>), Errors> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        let mut run = Run {
            text,
            lexer,
            token,
            path: Vec::new(),
            errors: Vec::new(),
            lossy: self.lossy,
            multiline: None,
            ended: false,
            last_end: 0,
            places,
            open_places: Vec::new(),
        };
        let bytes = run.message(self.message.clone(), None);
        if run.errors.is_empty() {
            Ok((bytes, run.places.unwrap_or_default()))
        } else {
            Err(Errors::new(self.file_name.clone(), run.errors))
        }
    }
}

/// A field or an extension, as far as the parser needs it.
struct Target {
    number: u32,
    name: String,
    kind: FieldKind,
    list: bool,
    packed: bool,
    group: bool,
}

impl From<FieldDescriptor> for Target {
    fn from(field: FieldDescriptor) -> Self {
        Self {
            number: field.number(),
            name: field.name().to_owned(),
            kind: field.kind(),
            list: field.is_list() || field.is_map(),
            packed: field.is_packed(),
            group: field.is_group(),
        }
    }
}

impl From<ExtensionDescriptor> for Target {
    fn from(field: ExtensionDescriptor) -> Self {
        Self {
            number: field.number(),
            name: field.full_name().to_owned(),
            kind: field.kind(),
            list: field.is_list() || field.is_map(),
            packed: field.is_packed(),
            group: field.is_group(),
        }
    }
}

/// A message being encoded.
#[derive(Default)]
struct Body {
    out: Vec<u8>,
    packed: BTreeMap<u32, Vec<u8>>,
    seen: HashSet<u32>,
    /// Number of values of each field whose places were recorded.
    placed: BTreeMap<u32, usize>,
}

impl Body {
    fn scalar(&mut self, target: &Target, value: &[u8]) {
        if target.packed {
            self.packed.entry(target.number).or_default().extend(value);
            return;
        }
        let wire_type = scalar_encoding::wire_type(&target.kind);
        encode_key(target.number, wire_type, &mut self.out);
        if wire_type == WireType::LengthDelimited {
            encode_varint(value.len() as u64, &mut self.out);
        }
        self.out.extend(value);
    }

    fn message(&mut self, target: &Target, value: &[u8]) {
        if target.group {
            encode_key(target.number, WireType::StartGroup, &mut self.out);
            self.out.extend(value);
            encode_key(target.number, WireType::EndGroup, &mut self.out);
        } else {
            self.scalar(target, value);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        for (number, values) in self.packed {
            encode_key(number, WireType::LengthDelimited, &mut self.out);
            encode_varint(values.len() as u64, &mut self.out);
            self.out.extend(values);
        }
        self.out
    }
}

/// A run over one text.
struct Run<'t> {
    text: &'t [u8],
    lexer: Lexer<'t>,
    /// The next token, not yet consumed.
    token: Token,
    /// The types of the messages that are open, outermost first.
    path: Vec<MessageDescriptor>,
    errors: Vec<Error>,
    lossy: bool,
    /// The last string with a line break. If a mistake follows directly, a quote may be missing.
    multiline: Option<Span>,
    /// True if a message without an end was reported.
    ended: bool,
    /// End of the last consumed token.
    last_end: usize,
    /// Places of the fields so far, if they are wanted.
    places: Option<Vec<Place>>,
    /// Indexes of the messages in `places` that are open, outermost first.
    open_places: Vec<usize>,
}

impl Run<'_> {
    /// Parses fields up to the end of the text, or up to the partner of the brace at `open`.
    fn message(&mut self, descriptor: MessageDescriptor, open: Option<Span>) -> Vec<u8> {
        let close = open.map(|open| partner(self.text[open.start]));
        let mut body = Body::default();
        self.path.push(descriptor.clone());
        while self.errors.len() < MAX_ERRORS {
            match self.token.kind {
                Kind::End => {
                    if let Some(open) = open {
                        self.not_closed(open);
                    }
                    break;
                }
                Kind::Punct(b) if Some(b) == close => {
                    self.advance();
                    break;
                }
                Kind::Punct(b'}' | b'>') => {
                    let message = match close {
                        None => "Unmatched closing brace".to_owned(),
                        Some(close) => {
                            format!("Unexpected character {}: expected '{}'", self.quote_token(), char::from(close))
                        }
                    };
                    self.error(self.token.span, message);
                    self.advance();
                    if open.is_some() {
                        break;
                    }
                }
                Kind::Ident => self.named_field(&descriptor, &mut body),
                Kind::Punct(b'[') => self.bracketed_field(&descriptor, &mut body),
                Kind::Number => {
                    self.error(
                        self.token.span,
                        format!("Unexpected {}: expected the name of a field", self.quote_token()),
                    );
                    self.recover();
                }
                _ => self.unexpected("expected the name of a field"),
            }
        }
        self.path.pop();
        body.finish()
    }

    fn named_field(&mut self, descriptor: &MessageDescriptor, body: &mut Body) {
        let name_span = self.token.span;
        let name = self.word(name_span);
        self.advance();
        let group =
            || descriptor.fields().find(|field| field.is_group() && group_name(field).as_deref() == Some(&name));
        let target = descriptor.get_field_by_name(&name).or_else(group).map(Target::from);
        if target.is_none() && !self.lossy {
            let hint = match self.missing_quote(name_span) {
                hint if hint.is_empty() => suggestions::field(&self.path, &name),
                hint => hint,
            };
            self.error(name_span, format!("No field named \"{name}\" in proto {}{hint}", descriptor.name()));
        }
        self.field(descriptor, name_span, target, body);
    }

    /// Parses an extension, or the content of an `Any`.
    fn bracketed_field(&mut self, descriptor: &MessageDescriptor, body: &mut Body) {
        let bracket = self.token.span;
        let Some((name, name_span)) = self.lexer.bracketed_name() else {
            self.advance();
            self.unexpected("expected the full name of an extension and ']'");
            return;
        };
        self.advance();
        if name.is_empty() {
            self.error(bracket.to(name_span), "Empty extension name".to_owned());
        } else if let Some((_, type_name)) = name.rsplit_once('/') {
            self.any(descriptor, name_span, &name, type_name, body);
            return;
        }
        let found = descriptor.parent_pool().get_extension_by_name(&name);
        if let Some(wrong) = found.as_ref().filter(|extension| extension.containing_message() != *descriptor) {
            let extended = wrong.containing_message();
            let message = format!(
                "Extension \"{name}\" extends \"{}\", not the current message {}",
                extended.full_name(),
                descriptor.full_name()
            );
            self.error(name_span, message);
        } else if found.is_none() && !name.is_empty() && !self.lossy {
            self.error(name_span, format!("No extension named \"{name}\" registered"));
        }
        let target = found.filter(|extension| extension.containing_message() == *descriptor).map(Target::from);
        self.field(descriptor, name_span, target, body);
    }

    /// Parses `[type.googleapis.com/a.Type] { … }` inside a `google.protobuf.Any`.
    fn any(&mut self, descriptor: &MessageDescriptor, span: Span, url: &str, type_name: &str, body: &mut Body) {
        let inner = descriptor.parent_pool().get_message_by_name(type_name);
        if descriptor.full_name() != "google.protobuf.Any" {
            self.error(
                span,
                format!("A type URL has its place in google.protobuf.Any, not in proto {}", descriptor.name()),
            );
        } else if inner.is_none() && !self.lossy {
            self.error(span, format!("No message named \"{type_name}\" registered"));
        }
        if self.token.is(b':') {
            self.advance();
        }
        if !(self.token.is(b'{') || self.token.is(b'<')) {
            self.unexpected("expected '{'");
            return;
        }
        let Some(inner) = inner else {
            self.skip_block();
            return;
        };
        // They are no fields of this message.
        let places = self.places.take();
        let value = self.block(inner);
        self.places = places;
        let target = |number, kind, name: &str| Target {
            number,
            name: name.to_owned(),
            kind,
            list: false,
            packed: false,
            group: false,
        };
        body.scalar(&target(1, FieldKind::String, "type_url"), url.as_bytes());
        body.scalar(&target(2, FieldKind::Bytes, "value"), &value);
    }

    /// Parses the value after a name. Without a target (the name is unknown and was reported),
    /// skips the value.
    fn field(&mut self, descriptor: &MessageDescriptor, name: Span, target: Option<Target>, body: &mut Body) {
        if self.token.is(b':') {
            self.advance();
        }
        let mut repeated_by_mistake = false;
        if let Some(target) = target.as_ref().filter(|target| !target.list) {
            if !body.seen.insert(target.number) {
                self.error(name, format!("Saw non-repeating field '{}' more than once", target.name));
                repeated_by_mistake = true;
            }
        }
        let target = target.filter(|_| !repeated_by_mistake);
        if self.token.is(b'[') {
            self.list(descriptor, name, target, body);
        } else {
            self.value(descriptor, name, target.as_ref(), body);
        }
        if self.token.is(b';') || self.token.is(b',') {
            self.advance();
        }
    }

    fn list(&mut self, descriptor: &MessageDescriptor, name: Span, mut target: Option<Target>, body: &mut Body) {
        if let Some(single) = target.as_ref().filter(|target| !target.list) {
            let message =
                format!("Field {} in proto {} is not repeated and takes no list", single.name, descriptor.name());
            self.error(self.token.span, message);
            target = None;
        }
        self.advance();
        if self.token.is(b']') {
            self.advance();
            return;
        }
        loop {
            let before = self.errors.len();
            self.value(descriptor, name, target.as_ref(), body);
            if self.token.is(b',') {
                self.advance();
            } else if self.token.is(b']') {
                self.advance();
                return;
            } else {
                // If the value itself was wrong, one report is enough.
                if self.errors.len() == before {
                    self.unexpected("expected ',' or ']'");
                }
                return;
            }
        }
    }

    fn value(&mut self, descriptor: &MessageDescriptor, name: Span, target: Option<&Target>, body: &mut Body) {
        if self.token.is(b'{') || self.token.is(b'<') {
            match target.map(|target| (target, &target.kind)) {
                Some((target, FieldKind::Message(inner))) => {
                    let place = self.begin_place(name, self.token.span, target, body);
                    self.open_places.extend(place);
                    let value = self.block(inner.clone());
                    if let Some((place, places)) = place.zip(self.places.as_mut()) {
                        self.open_places.pop();
                        places[place].value.end = self.last_end;
                    }
                    body.message(target, &value);
                }
                Some((target, _)) => {
                    self.mismatch(descriptor, target, self.token.span);
                    self.skip_block();
                }
                None => self.skip_block(),
            }
            return;
        }
        let Some(scalar) = self.scalar(target) else { return };
        let Some(target) = target else { return };
        let mut value = Vec::new();
        if self.encode(descriptor, target, &scalar, &mut value) {
            self.begin_place(name, scalar.span, target, body);
            body.scalar(target, &value);
        }
    }

    /// Records the place of a value, if places are wanted. Returns its index.
    fn begin_place(&mut self, name: Span, value: Span, target: &Target, body: &mut Body) -> Option<usize> {
        let places = self.places.as_mut()?;
        let count = body.placed.entry(target.number).or_default();
        let parent = self.open_places.last().copied();
        let (name, value) = (name.start..name.end, value.start..value.end);
        places.push(Place { parent, number: target.number, index: *count, name, value });
        *count += 1;
        Some(places.len() - 1)
    }

    /// Parses a message in braces. The next token is the opening brace.
    fn block(&mut self, descriptor: MessageDescriptor) -> Vec<u8> {
        let open = self.token.span;
        if self.path.len() > MAX_NESTING {
            self.error(open, format!("Messages are nested more than {MAX_NESTING} deep"));
            self.skip_block();
            return Vec::new();
        }
        self.advance();
        self.message(descriptor, Some(open))
    }

    /// Skips a message in braces. The next token is the opening brace. All brackets in it pair up.
    fn skip_block(&mut self) {
        let open = self.token.span;
        let mut depth = 0usize;
        loop {
            match self.token.kind {
                Kind::Punct(b'{' | b'<' | b'[') => depth += 1,
                Kind::Punct(b'}' | b'>' | b']') => depth -= 1,
                Kind::End | Kind::OpenString => {
                    self.not_closed(open);
                    self.advance();
                    return;
                }
                Kind::Punct(b) if !matches!(b, b':' | b';' | b',' | b'-' | b'.' | b'/') => {
                    let seen = self.quote_token();
                    self.error(self.token.span, format!("Unexpected character {seen}"));
                }
                _ => {}
            }
            self.advance();
            if depth == 0 || self.errors.len() >= MAX_ERRORS {
                return;
            }
        }
    }

    /// Reports once that the text ended before the partner of the innermost brace.
    fn not_closed(&mut self, open: Span) {
        if !self.ended {
            self.ended = true;
            let (line, column) = self.position(open);
            let message = format!("Nested message not closed: the brace at {line}:{column} has no partner");
            self.error(self.token.span, message);
        }
    }

    /// Reports the next token and skips to the place where a field may begin.
    fn unexpected(&mut self, expected: &str) {
        let message = match self.token.kind {
            Kind::End => format!("Unexpected end of input: {expected}"),
            Kind::OpenString => "Unexpected end of input: this string is not closed".to_owned(),
            Kind::Punct(_) => format!("Unexpected character {}: {expected}", self.quote_token()),
            _ => format!("Unexpected {}: {expected}", self.quote_token()),
        };
        let hint = self.missing_quote(self.token.span);
        self.error(self.token.span, message + &hint);
        self.recover();
    }

    /// Returns a clause for an error directly after a string of several lines.
    fn missing_quote(&self, at: Span) -> String {
        let just_before = |string: &Span| string.end <= at.start && !self.text[string.end..at.start].contains(&b'\n');
        match self.multiline.filter(just_before) {
            Some(string) => {
                let (line, _) = self.position(string);
                format!(
                    "; the string that begins on line {line} goes over several lines, is its closing quote missing?"
                )
            }
            None => String::new(),
        }
    }

    /// Skips tokens up to the next field, the end of this message or the end of the text.
    fn recover(&mut self) {
        while !matches!(self.token.kind, Kind::End | Kind::Punct(b'}' | b'>')) && !self.begins_a_field() {
            match self.token.kind {
                Kind::Punct(b'{' | b'<') => self.skip_block(),
                _ => self.advance(),
            }
        }
    }

    /// Returns whether the next token, a word, is the name of the next field and not a value.
    fn begins_a_field(&self) -> bool {
        let mut ahead = self.lexer;
        let after = ahead.next();
        self.token.kind == Kind::Ident && (after.is(b':') || after.is(b'{') || after.is(b'<'))
    }

    fn advance(&mut self) {
        self.last_end = self.token.span.end;
        self.token = self.lexer.next();
    }

    fn error(&mut self, span: Span, message: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(Error::at(self.text, span.start, span.len(), message));
        }
        if self.errors.len() == MAX_ERRORS {
            // Stop reading: more errors would not help.
            self.token = Token { kind: Kind::End, span: Span { start: self.text.len(), end: self.text.len() } };
            self.lexer = Lexer::new(b"");
        }
    }

    /// Returns the characters of a name or number, which are ASCII.
    fn word(&self, span: Span) -> String {
        String::from_utf8_lossy(&self.text[span.start..span.end]).into_owned()
    }

    fn quote_token(&self) -> String {
        self.quote(self.token.span)
    }

    fn quote(&self, span: Span) -> String {
        let text = String::from_utf8_lossy(&self.text[span.start..span.end]);
        let shown: String =
            text.chars().take(MAX_QUOTED).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        let more = if text.chars().count() > MAX_QUOTED { "…" } else { "" };
        format!("'{shown}{more}'")
    }

    fn position(&self, span: Span) -> (usize, usize) {
        let error = Error::at(self.text, span.start, 0, String::new());
        (error.line, error.column)
    }
}

fn partner(open: u8) -> u8 {
    if open == b'<' { b'>' } else { b'}' }
}

/// Returns the name of a group in the text format: that of its type.
fn group_name(field: &FieldDescriptor) -> Option<String> {
    field.kind().as_message().map(|message| message.name().to_owned())
}
