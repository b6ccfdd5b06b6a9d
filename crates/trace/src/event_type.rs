//! Effects of track events (`docs/spec/track-event.md` §2).

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventType {
    /// Opens a slice.
    SliceBegin,
    /// Closes a slice.
    SliceEnd,
    /// Marks a moment.
    Instant,
    /// Sets a counter.
    Counter,
    /// Sets a state.
    State,
    /// Records a whole slice (the older form).
    Complete,
}

/// The value of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
}

impl CounterValue {
    /// Returns the value as a floating point number, perhaps rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Double(value) => value,
        }
    }
}
