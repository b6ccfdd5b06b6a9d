//! The operations that every measured library performs.

/// An operation that is measured, the same with every library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An instant of a category, or a span of a level, that no session records.
    Disabled,
    /// The same with a u64 and a string.
    DisabledArguments,
    /// A slice that begins and ends, with a static name, on the thread's track.
    Pair,
    /// The same with a u64 and a string of 15 bytes.
    Arguments,
    /// A value on a counter track that was made before.
    Counter,
    /// A moment with a static name.
    Instant,
    /// A moment that is on a flow.
    Flow,
    /// A span that was made before is entered and left.
    Enter,
}

impl Operation {
    /// In the results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disabled => "disabled trace point",
            Self::DisabledArguments => "disabled trace point with two arguments",
            Self::Pair => "slice pair",
            Self::Arguments => "slice pair with u64 and 15-byte string",
            Self::Counter => "counter",
            Self::Instant => "instant",
            Self::Flow => "instant with flow",
            Self::Enter => "span entered and left",
        }
    }

    /// Operations in a batch: some 15 to 30 KiB of events, so that a batch fits into every
    /// library's memory.
    #[must_use]
    pub const fn per_batch(self) -> u64 {
        match self {
            Self::Disabled | Self::DisabledArguments => 20_000,
            Self::Pair | Self::Arguments | Self::Enter => 400,
            Self::Counter | Self::Instant | Self::Flow => 800,
        }
    }

    /// Trace events of one operation.
    #[must_use]
    pub const fn events(self) -> u64 {
        match self {
            Self::Disabled | Self::DisabledArguments => 0,
            Self::Pair | Self::Arguments | Self::Enter => 2,
            Self::Counter | Self::Instant | Self::Flow => 1,
        }
    }
}

/// The string argument.
pub const TEXT: &str = "fifteen bytes !";

const _: () = assert!(TEXT.len() == 15);
