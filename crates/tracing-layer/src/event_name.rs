//! Names of events: short, and the same for all events of a call site.

use core::fmt::{self, Write as _};

use tracing_core::Metadata;

/// Longest name of a place; longer ones are cut.
const MAX_BYTES: usize = 128;

/// Returns the name of the events of a call site: the one that the program gives them, or else
/// their place.
pub(crate) fn of(metadata: &'static Metadata<'static>) -> &'static str {
    if !is_default(metadata) {
        return metadata.name();
    }
    let module = metadata.module_path().unwrap_or_else(|| metadata.target());
    let name = EventName::of_place(module, metadata.line().map(u64::from));
    // It lives as long as the call site: for ever.
    String::from(name.as_str()).leak()
}

/// Returns whether `tracing` has named the event, as `event FILE:LINE`.
fn is_default(metadata: &Metadata<'_>) -> bool {
    let (Some(file), Some(line)) = (metadata.file(), metadata.line()) else { return false };
    let place = metadata.name().strip_prefix("event ").and_then(|place| place.strip_prefix(file));
    place.and_then(|rest| rest.strip_prefix(':')).is_some_and(|rest| rest.parse() == Ok(line))
}

/// A name of an event, without memory of its own on the heap.
#[derive(Debug)]
pub(crate) enum EventName<'a> {
    Text(&'a str),
    Place(Place),
}

impl EventName<'_> {
    /// Names a place by the last part of its module and its line: `server:42`.
    pub(crate) fn of_place(module: &str, line: Option<u64>) -> Self {
        let mut place = Place { bytes: [0; MAX_BYTES], len: 0 };
        let last = module.rsplit("::").next().unwrap_or(module);
        // This fails if the name is cut.
        let _ = match line {
            Some(line) => write!(place, "{last}:{line}"),
            None => place.write_str(last),
        };
        Self::Place(place)
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Place(Place { bytes, len }) => core::str::from_utf8(&bytes[..*len]).unwrap_or_default(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Place {
    bytes: [u8; MAX_BYTES],
    len: usize,
}

impl fmt::Write for Place {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let mut end = piece.len().min(MAX_BYTES - self.len);
        while !piece.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes[self.len..self.len + end].copy_from_slice(&piece.as_bytes()[..end]);
        self.len += end;
        if end == piece.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short_and_cut() {
        let name = |module, line| EventName::of_place(module, line).as_str().to_owned();
        assert_eq!(name("hyper::proto::h1::io", Some(208)), "io:208");
        assert_eq!(name("my_program", Some(7)), "my_program:7");
        assert_eq!(name("a target, not a module", None), "a target, not a module");
        let long = "ä".repeat(100);
        assert_eq!(name(&long, Some(1)), "ä".repeat(64));
    }
}
