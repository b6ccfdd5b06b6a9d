//! Places in the source code.

use core::sync::atomic::{AtomicU32, Ordering};

use esatto_schema::SourceLocationWriter;

/// A place in the source code, for [`Event::location`](crate::Event::location), log messages and
/// tasks.
///
/// [`here!`](crate::here) is the place where it stands, and costs no more than a name. Other
/// locations are made at run time. Each event looks them up by their text:
///
/// ```
/// use esatto::Location;
///
/// esatto::categories! { static APP = "app"; }
///
/// esatto::instant!(APP, "reached", |event| event.location(esatto::here!()));
/// let script = Location::new("rules.lua", 17).in_function("on_click");
/// esatto::instant!(APP, "script", |event| event.location(script));
///
/// #[track_caller]
/// fn called() {
///     esatto::instant!(APP, "called", |event| event.location(core::panic::Location::caller()));
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Location<'a> {
    file: &'a str,
    function: &'a str,
    line: u32,
    place: Option<&'static Place>,
}

impl<'a> Location<'a> {
    /// Makes a location from a file and a line, counted from 1; 0 if the line is not known.
    #[must_use]
    pub const fn new(file: &'a str, line: u32) -> Self {
        Self { file, function: "", line, place: None }
    }

    /// Adds the name of the function.
    #[must_use]
    pub const fn in_function(self, function: &'a str) -> Self {
        Self { function, place: None, ..self }
    }

    /// Returns the number that all sequences use for a constant place of the program.
    pub(crate) fn place_number(&self) -> Option<u32> {
        self.place.map(Place::number)
    }

    /// Returns a key that differs between locations.
    pub(crate) fn key(&self) -> Vec<u8> {
        [self.file.as_bytes(), self.function.as_bytes(), &self.line.to_le_bytes()].join(&0xff)
    }

    pub(crate) fn write(&self, out: &mut SourceLocationWriter<'_>) {
        out.file_name(self.file);
        if !self.function.is_empty() {
            out.function_name(self.function);
        }
        if self.line != 0 {
            out.line_number(self.line);
        }
    }
}

impl<'a> From<&'a core::panic::Location<'_>> for Location<'a> {
    fn from(location: &'a core::panic::Location<'_>) -> Self {
        Self::new(location.file(), location.line())
    }
}

/// A constant place of the program, made by [`here!`](crate::here).
#[doc(hidden)]
#[derive(Debug)]
pub struct Place {
    number: AtomicU32,
    file: &'static str,
    module: &'static str,
    line: u32,
}

impl Place {
    #[must_use]
    pub const fn new(file: &'static str, module: &'static str, line: u32) -> Self {
        Self { number: AtomicU32::new(0), file, module, line }
    }

    #[must_use]
    pub const fn location(&'static self) -> Location<'static> {
        Location { file: self.file, function: self.module, line: self.line, place: Some(self) }
    }

    /// Returns the number, assigned at the first use; never 0.
    pub(crate) fn number(&self) -> u32 {
        static NUMBERS: AtomicU32 = AtomicU32::new(1);
        match self.number.load(Ordering::Relaxed) {
            0 => {
                let new = NUMBERS.fetch_add(1, Ordering::Relaxed);
                match self.number.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => new,
                    Err(other) => other,
                }
            }
            number => number,
        }
    }
}

/// Returns the place where it stands: file, line and, as the function, the path of the module.
///
/// ```
/// # esatto::categories! { static APP = "app"; }
/// esatto::instant!(APP, "reached", |event| event.location(esatto::here!()));
/// ```
#[macro_export]
macro_rules! here {
    () => {{
        static PLACE: $crate::__private::Place =
            $crate::__private::Place::new(::core::file!(), ::core::module_path!(), ::core::line!());
        PLACE.location()
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_number() {
        let places: Vec<_> = (0..2).map(|_| here!().place_number()).collect();
        assert_eq!(places[0], places[1]);
        assert_ne!(places[0], Some(0));
        assert_ne!(places[0], here!().place_number());
        assert_eq!(Location::new("a", 1).place_number(), None);
    }
}
