//! Texts of a report, each stored once.

use std::collections::HashMap;

/// Number of a text; 0 is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Text(pub(crate) u32);

/// Longest text, in bytes; longer ones are cut.
const MAX_TEXT: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct Texts {
    list: Vec<Box<str>>,
    numbers: HashMap<Box<str>, Text>,
}

impl Default for Texts {
    fn default() -> Self {
        let empty = Box::<str>::from("");
        Self { list: vec![empty.clone()], numbers: HashMap::from([(empty, Text(0))]) }
    }
}

impl Texts {
    /// Returns the number of a text. Texts longer than 16 KiB are cut.
    pub(crate) fn number(&mut self, text: &str) -> Text {
        let text = cut(text);
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = Text(u32::try_from(self.list.len()).expect("a trace has less than 2^32 texts"));
        self.list.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.list.iter().map(AsRef::as_ref)
    }
}

fn cut(text: &str) -> &str {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let mut end = MAX_TEXT;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_stored_once() {
        let mut texts = Texts::default();
        assert_eq!(texts.number(""), Text(0));
        assert_eq!(texts.number("a"), texts.number("a"));
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["", "a"]);
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let mut texts = Texts::default();
        let long = format!("{}{}", "a".repeat(MAX_TEXT - 1), "ä".repeat(10));
        texts.number(&long);
        assert_eq!(texts.iter().last(), Some(&*"a".repeat(MAX_TEXT - 1)));
    }
}
