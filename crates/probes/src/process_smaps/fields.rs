//! [`Fields`]: the counters of mappings that a config wants.

use esatto_schema::PackedSmapsWriter;
use esatto_schema::smaps_config::VmaField;

/// Set of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fields(u16);

/// A counter in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Size,
    Rss,
    Anonymous,
    Swap,
    SharedClean,
    SharedDirty,
    PrivateClean,
    PrivateDirty,
    Locked,
    Pss,
    PssDirty,
    SwapPss,
}

/// Number of fields.
pub(crate) const FIELD_COUNT: usize = Field::ALL.len();

impl Fields {
    /// Size, resident, anonymous and swapped memory.
    const DEFAULT: Self = Self(0b1111);

    /// Returns the fields of a config. Unknown ones are left out.
    pub(crate) fn new(wanted: impl Iterator<Item = VmaField>) -> Self {
        let mut wanted = wanted.peekable();
        if wanted.peek().is_none() {
            return Self::DEFAULT;
        }
        let number = |field: VmaField| u32::try_from(field.0).ok().filter(|number| (1..=12).contains(number));
        Self(wanted.filter_map(number).fold(0, |fields, number| fields | 1 << (number - 1)))
    }

    pub(crate) const fn contains(self, field: Field) -> bool {
        self.0 & 1 << field as u16 != 0
    }
}

impl Field {
    /// In the order of `VmaField`, whose numbers are larger by 1.
    pub(crate) const ALL: [Self; 12] = [
        Self::Size,
        Self::Rss,
        Self::Anonymous,
        Self::Swap,
        Self::SharedClean,
        Self::SharedDirty,
        Self::PrivateClean,
        Self::PrivateDirty,
        Self::Locked,
        Self::Pss,
        Self::PssDirty,
        Self::SwapPss,
    ];

    /// Returns the field of a line of `smaps`.
    pub(crate) fn of_key(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"Size" => Self::Size,
            b"Rss" => Self::Rss,
            b"Anonymous" => Self::Anonymous,
            b"Swap" => Self::Swap,
            b"Shared_Clean" => Self::SharedClean,
            b"Shared_Dirty" => Self::SharedDirty,
            b"Private_Clean" => Self::PrivateClean,
            b"Private_Dirty" => Self::PrivateDirty,
            b"Locked" => Self::Locked,
            b"Pss" => Self::Pss,
            b"Pss_Dirty" => Self::PssDirty,
            b"SwapPss" => Self::SwapPss,
            _ => return None,
        })
    }

    pub(crate) fn write(self, packed: &mut PackedSmapsWriter<'_>, kb: impl Iterator<Item = u64> + Clone) {
        match self {
            Self::Size => packed.size_kb(kb),
            Self::Rss => packed.rss_kb(kb),
            Self::Anonymous => packed.anonymous_kb(kb),
            Self::Swap => packed.swap_kb(kb),
            Self::SharedClean => packed.shared_clean_kb(kb),
            Self::SharedDirty => packed.shared_dirty_kb(kb),
            Self::PrivateClean => packed.private_clean_kb(kb),
            Self::PrivateDirty => packed.private_dirty_kb(kb),
            Self::Locked => packed.locked_kb(kb),
            Self::Pss => packed.pss_kb(kb),
            Self::PssDirty => packed.pss_dirty_kb(kb),
            Self::SwapPss => packed.swap_pss_kb(kb),
        };
    }
}
