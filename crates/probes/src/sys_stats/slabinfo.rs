//! `SysStats.slab_info`: `/proc/slabinfo`, which only root may read.

use esatto_schema::SysStatsWriter;

use crate::words::{Words, lines, name_text};

/// A cache of the kernel's allocator of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slab<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) pages_per_slab: u32,
    pub(crate) slabs: u32,
}

/// Parses lines of version 2: `name active_objs num_objs objsize objperslab pagesperslab : tunables
/// limit batchcount sharedfactor : slabdata active_slabs num_slabs sharedavail`.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = Slab<'_>> {
    lines(text).skip(2).filter_map(|line| {
        let mut words = Words::new(line);
        let name = words.word()?;
        words.skip(4);
        let pages_per_slab = words.number_u32()?;
        words.skip(8);
        Some(Slab { name, pages_per_slab, slabs: words.number_u32()? })
    })
}

pub(super) fn write(text: &[u8], stats: &mut SysStatsWriter<'_>) {
    for slab in parse(text) {
        let mut info = stats.slab_info();
        info.name(&*name_text(slab.name)).pages_per_slab(slab.pages_per_slab).num_slabs(slab.slabs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_has_pages_and_slabs() {
        let text = b"slabinfo - version: 2.1\n# name            <active_objs> ...\n\
            bio-312               12     24    320   12    2 : tunables    0    0    0 : slabdata      1      3      0\n\
            cut                    1      2      3    4    5 : tunables\n";
        assert_eq!(parse(text).collect::<Vec<_>>(), [Slab { name: b"bio-312", pages_per_slab: 2, slabs: 3 }]);
    }
}
