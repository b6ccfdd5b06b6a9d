//! `SysStats.buddy_info`: `/proc/buddyinfo`.

use esatto_schema::SysStatsWriter;

use crate::words::{Words, lines, name_text};

/// A zone of memory: `Node 0, zone   Normal   1781    419 …`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zone<'a> {
    pub(crate) node: &'a [u8],
    pub(crate) name: &'a [u8],
    orders: Words<'a>,
}

impl Zone<'_> {
    /// Returns the number of free blocks of 1 page, 2 pages, 4 pages, and so on.
    pub(crate) fn orders(mut self) -> impl Iterator<Item = u32> {
        core::iter::from_fn(move || self.orders.number_u32())
    }
}

pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = Zone<'_>> {
    lines(text).filter_map(|line| {
        let mut words = Words::new(line);
        words.skip(1);
        let node = words.word()?;
        let node = node.strip_suffix(b",").unwrap_or(node);
        words.skip(1);
        let name = words.word()?;
        Some(Zone { node, name, orders: words })
    })
}

pub(super) fn write(text: &[u8], stats: &mut SysStatsWriter<'_>) {
    for zone in parse(text) {
        let mut info = stats.buddy_info();
        info.node(&*name_text(zone.node)).zone(&*name_text(zone.name));
        for blocks in zone.orders() {
            info.order_pages(blocks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_a_node_a_name_and_its_orders() {
        let text =
            b"Node 0, zone      DMA      0      0      3 \nNode 11, zone   Normal   1781    4294967296\nNode 1\n";
        let zones: Vec<_> = parse(text).map(|zone| (zone.node, zone.name, zone.orders().collect::<Vec<_>>())).collect();
        assert_eq!(zones, [(&b"0"[..], &b"DMA"[..], vec![0, 0, 3]), (b"11", b"Normal", vec![1781, u32::MAX])]);
    }
}
