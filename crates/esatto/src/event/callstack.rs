//! Call stacks that the program provides.

/// A function in a call stack, for [`Event::callstack`](crate::Event::callstack).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame<'a> {
    pub(crate) function: &'a str,
    pub(crate) file: Option<&'a str>,
    pub(crate) line: Option<u32>,
}

impl<'a> Frame<'a> {
    /// Makes a function with this name.
    #[must_use]
    pub const fn new(function: &'a str) -> Self {
        Self { function, file: None, line: None }
    }

    /// Adds the place in the source.
    #[must_use]
    pub const fn at(self, file: &'a str, line: u32) -> Self {
        Self { file: Some(file), line: Some(line), ..self }
    }
}
