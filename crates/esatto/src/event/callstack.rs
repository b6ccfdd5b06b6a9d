//! Call stacks that the program brings along.

/// A function in a call stack, for [`Event::callstack`](crate::Event::callstack).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    pub(crate) function: &'a str,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
}

impl<'a> Frame<'a> {
    /// A function of this name.
    #[must_use]
    pub const fn new(function: &'a str) -> Self {
        Self { function, file: None, line: None }
    }

    /// The same function with the place in its source.
    #[must_use]
    pub const fn at(self, file: &'a str, line: u32) -> Self {
        Self { file: Some(file), line: Some(line), ..self }
    }
}
