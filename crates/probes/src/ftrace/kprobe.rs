//! [`Kprobe`]: an event that a kernel probe makes.

/// An event of a kernel probe that the data source asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kprobe {
    pub(crate) id: u16,
    pub(crate) name: String,
    pub(crate) kind: KprobeKind,
}

/// Meaning of an event of a kernel probe. The numbers are those of `KprobeEvent.KprobeType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KprobeKind {
    Begin = 1,
    End = 2,
    Instant = 3,
}
