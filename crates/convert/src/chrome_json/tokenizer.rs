//! Splits a file into its events, without keeping more than one of them.

use std::io::{self, BufRead};

use super::error::Error;

/// Longest event. Its JSON becomes a tree in memory of some times that size.
pub const MAX_EVENT_BYTES: usize = 64 << 20;
/// Longest key of the outermost object.
const MAX_KEY_BYTES: usize = 4096;
/// The key of the list of events.
const EVENTS: &[u8] = b"\"traceEvents\"";
/// The key of kernel events as text.
const SYSTEM_EVENTS: &[u8] = b"\"systemTraceEvents\"";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Start,
    /// In the outermost object.
    Object,
    /// In a list of events, which is the file itself or is in the outermost object.
    List {
        is_file: bool,
    },
    End,
}

/// Reader of the events of a file.
#[derive(Debug)]
pub(super) struct Tokenizer<R> {
    file: R,
    at: u64,
    position: Position,
    /// The value that was read last.
    value: Vec<u8>,
    has_events: bool,
    /// The file ends inside a value.
    pub(super) is_torn: bool,
    /// The file has kernel events as text.
    pub(super) has_system_events: bool,
}

impl<R: BufRead> Tokenizer<R> {
    pub(super) fn new(file: R) -> Self {
        Self {
            file,
            at: 0,
            position: Position::Start,
            value: Vec::new(),
            has_events: false,
            is_torn: false,
            has_system_events: false,
        }
    }

    /// Returns the JSON of the next element of a list of events; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        loop {
            match self.position {
                Position::Start => self.start()?,
                Position::Object => self.key()?,
                Position::List { is_file } => {
                    let Some(byte) = self.peek_value()? else {
                        // Chrome leaves out the end of a list that is the file.
                        self.is_torn |= !is_file;
                        self.position = Position::End;
                        continue;
                    };
                    if byte == b']' {
                        self.skip(1);
                        self.position = if is_file { Position::End } else { Position::Object };
                        continue;
                    }
                    if self.value(Some(MAX_EVENT_BYTES))? {
                        return Ok(Some(&self.value));
                    }
                    self.is_torn = true;
                    self.position = Position::End;
                }
                Position::End if self.has_events => return Ok(None),
                Position::End => return Err(Error::NoEvents),
            }
        }
    }

    fn start(&mut self) -> Result<(), Error> {
        // A mark of the byte order.
        if self.peek()? == Some(0xef) {
            for expected in [0xef, 0xbb, 0xbf] {
                match self.peek()? {
                    Some(byte) if byte == expected => self.skip(1),
                    byte => return Err(self.unexpected(byte)),
                }
            }
        }
        match self.peek_value()? {
            Some(b'[') => {
                self.has_events = true;
                self.position = Position::List { is_file: true };
            }
            Some(b'{') => self.position = Position::Object,
            None => return Err(Error::Empty),
            byte => return Err(self.unexpected(byte)),
        }
        self.skip(1);
        Ok(())
    }

    /// Reads a key of the outermost object, and its value unless that is the list of events.
    fn key(&mut self) -> Result<(), Error> {
        match self.peek_value()? {
            Some(b'"') => {}
            Some(b'}') => {
                self.position = Position::End;
                return Ok(());
            }
            None => {
                self.is_torn = true;
                self.position = Position::End;
                return Ok(());
            }
            byte => return Err(self.unexpected(byte)),
        }
        let is_whole = self.value(Some(MAX_KEY_BYTES))?;
        let key = core::mem::take(&mut self.value);
        let colon = if is_whole { self.peek_value()? } else { None };
        match colon {
            Some(b':') => self.skip(1),
            Some(byte) => return Err(self.unexpected(Some(byte))),
            None => {
                self.is_torn = true;
                self.position = Position::End;
                return Ok(());
            }
        }
        let first = self.peek_value()?;
        if key == EVENTS && first == Some(b'[') {
            self.skip(1);
            self.has_events = true;
            self.position = Position::List { is_file: false };
            return Ok(());
        }
        self.has_system_events |= key == SYSTEM_EVENTS;
        if !self.value(None)? {
            self.is_torn = true;
            self.position = Position::End;
        }
        Ok(())
    }

    fn unexpected(&self, byte: Option<u8>) -> Error {
        Error::Unexpected { at: self.at, byte: byte.unwrap_or(0) }
    }

    fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match self.file.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Read { at: self.at, source }),
            }
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.file.consume(bytes);
        self.at += bytes as u64;
    }

    /// Returns the first byte that is no white space and no comma.
    fn peek_value(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\n' | b'\r' | b'\t' | b',') => self.skip(1),
                byte => return Ok(byte),
            }
        }
    }

    /// Reads a value, without looking at its inside. With a limit it is kept in `self.value`.
    /// Returns false if the file ends inside of it.
    fn value(&mut self, limit: Option<usize>) -> Result<bool, Error> {
        self.value.clear();
        let start = self.at;
        let (mut depth, mut in_string, mut is_escaped) = (0_u64, false, false);
        let is_scalar = !matches!(self.peek()?, Some(b'{' | b'[' | b'"'));
        loop {
            if self.peek()?.is_none() {
                return Ok(is_scalar && !self.value.is_empty());
            }
            let bytes = self.file.fill_buf().map_err(|source| Error::Read { at: self.at, source })?;
            let mut used = 0;
            let mut is_end = false;
            for &byte in bytes {
                if in_string {
                    used += 1;
                    match byte {
                        _ if is_escaped => is_escaped = false,
                        b'\\' => is_escaped = true,
                        b'"' => {
                            in_string = false;
                            is_end = depth == 0;
                        }
                        _ => {}
                    }
                } else {
                    match byte {
                        b'"' => in_string = true,
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' if depth == 0 => {
                            is_end = true;
                            break;
                        }
                        b'}' | b']' => {
                            depth -= 1;
                            is_end = depth == 0;
                        }
                        b',' | b' ' | b'\n' | b'\r' | b'\t' | b':' if depth == 0 => {
                            is_end = true;
                            break;
                        }
                        _ => {}
                    }
                    used += 1;
                }
                if is_end {
                    break;
                }
            }
            if let Some(limit) = limit {
                if self.value.len() + used > limit {
                    return Err(Error::TooLong { at: start, limit });
                }
                self.value.extend_from_slice(&bytes[..used]);
            }
            self.skip(used);
            if is_end {
                // A byte that begins no value would be read for ever.
                if self.at == start {
                    let byte = self.peek()?;
                    return Err(self.unexpected(byte));
                }
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(json: &str) -> (Vec<String>, bool, Option<String>) {
        // Small pieces, so that values are in several of them.
        let mut tokenizer = Tokenizer::new(io::BufReader::with_capacity(3, json.as_bytes()));
        let mut found = Vec::new();
        loop {
            match tokenizer.next() {
                Ok(Some(event)) => found.push(String::from_utf8(event.to_vec()).unwrap()),
                Ok(None) => return (found, tokenizer.is_torn, None),
                Err(error) => return (found, tokenizer.is_torn, Some(error.to_string())),
            }
        }
    }

    #[test]
    fn both_forms_have_the_same_events() {
        let all = vec![r#"{"a":"]}\""}"#.to_owned(), "{}".to_owned(), "7".to_owned()];
        let list = r#"[{"a":"]}\""}, {},, 7]"#;
        assert_eq!(events(list), (all.clone(), false, None));
        assert_eq!(events(&list[..list.len() - 1]), (all.clone(), false, None), "the end may be missing");
        let object = format!(r#" {{"x":[1,{{"traceEvents":[]}}],"traceEvents" : {list} , "y": null}}"#);
        assert_eq!(events(&object), (all, false, None));
    }

    #[test]
    fn a_torn_file_has_its_first_events() {
        assert_eq!(events(r#"[{"a":1},{"b":"#), (vec![r#"{"a":1}"#.to_owned()], true, None));
        assert_eq!(events(r#"{"traceEvents":[{"a":1}"#), (vec![r#"{"a":1}"#.to_owned()], true, None));
    }

    #[test]
    fn other_files_are_refused() {
        for (json, why) in [
            ("", "empty"),
            ("{}", "no list"),
            (r#"{"traceEvents":3}"#, "no list"),
            ("hello", "0x68"),
            ("[}", "0x7d"),
            ("{\"a\"1}", "0x31"),
        ] {
            let (found, _, error) = events(json);
            assert!(found.is_empty() && error.clone().is_some_and(|error| error.contains(why)), "{json}: {error:?}");
        }
    }
}
