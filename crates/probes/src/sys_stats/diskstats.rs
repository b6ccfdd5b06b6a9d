//! `SysStats.disk_stat`: `/proc/diskstats`.

use esatto_schema::SysStatsWriter;

use crate::words::{Words, lines, name_text};

/// Counters of a block device since it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Disk<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) reads: Transfers,
    pub(crate) writes: Transfers,
    /// Linux 4.18 and later.
    pub(crate) discards: Option<Transfers>,
    /// Linux 5.5 and later: number of flushes, and their time.
    pub(crate) flushes: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfers {
    pub(crate) sectors: u64,
    pub(crate) time_ms: u64,
}

pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = Disk<'_>> {
    lines(text).filter_map(|line| {
        let mut words = Words::new(line);
        words.skip(2); // the numbers of the device
        let name = words.word()?;
        let reads = transfers(&mut words)?;
        let writes = transfers(&mut words)?;
        words.skip(3); // in flight, time of I/O, weighted time
        let discards = transfers(&mut words);
        let flushes = words.number().zip(words.number());
        Some(Disk { name, reads, writes, discards, flushes })
    })
}

/// Reads four columns: finished, merged, sectors, time.
fn transfers(words: &mut Words<'_>) -> Option<Transfers> {
    words.skip(2);
    Some(Transfers { sectors: words.number()?, time_ms: words.number()? })
}

pub(super) fn write(text: &[u8], stats: &mut SysStatsWriter<'_>) {
    for disk in parse(text) {
        let mut stat = stats.disk_stat();
        stat.device_name(&*name_text(disk.name));
        stat.read_sectors(disk.reads.sectors).read_time_ms(disk.reads.time_ms);
        stat.write_sectors(disk.writes.sectors).write_time_ms(disk.writes.time_ms);
        if let Some(discards) = disk.discards {
            stat.discard_sectors(discards.sectors).discard_time_ms(discards.time_ms);
        }
        if let Some((count, time_ms)) = disk.flushes {
            stat.flush_count(count).flush_time_ms(time_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_know_no_discards_and_no_flushes() {
        let new = b" 254       0 vda 258538 15974 10036714 264857 46895 211194 55819080 444614 0 37508 718607 37424 93 3218024 8996 1391 138\n";
        let disk = Disk {
            name: b"vda",
            reads: Transfers { sectors: 10_036_714, time_ms: 264_857 },
            writes: Transfers { sectors: 55_819_080, time_ms: 444_614 },
            discards: Some(Transfers { sectors: 3_218_024, time_ms: 8996 }),
            flushes: Some((1391, 138)),
        };
        assert_eq!(parse(new).collect::<Vec<_>>(), [disk]);
        let old = b"   8       0 sda 1 2 3 4 5 6 7 8 0 9 10\n";
        let disk = parse(old).next().expect("a disk");
        assert_eq!((disk.reads.sectors, disk.writes.time_ms, disk.discards, disk.flushes), (3, 8, None, None));
        assert_eq!(parse(b"8 0 sda 1 2\n\n").count(), 0, "a line that ends too early");
    }
}
