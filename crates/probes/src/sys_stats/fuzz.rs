//! [`fuzz`]: any bytes in place of the kernel's files.

use esatto_protozero::HeapBuffer;
use esatto_schema::sys_stats::psi_sample::PsiResource;
use esatto_schema::{SysStatsConfigReader, SysStatsWriter};

use super::gpufreq::Format;
use super::{buddyinfo, diskstats, meminfo, psi, slabinfo, stat, thermal, vmstat};

/// Bytes of the trace for a byte of text, at most: `1 ` in a row of interrupts becomes a message of
/// less than 24 bytes.
const MAX_GROWTH: usize = 24;

/// Writes the text of a file that `linux.sys_stats` reads. The first byte selects the file; the
/// text is read twice, and after another text.
pub fn fuzz(bytes: &[u8]) {
    let [selector, text @ ..] = bytes else { return };
    let config = SysStatsConfigReader::default();
    let (some, full) = (PsiResource::PSI_RESOURCE_IO_SOME, PsiResource::PSI_RESOURCE_IO_FULL);
    match selector % 9 {
        0 => {
            let mut counters = meminfo::counters(&config);
            check(text, |text, stats| meminfo::write(&mut counters, text, stats));
        }
        1 => {
            let mut counters = vmstat::counters(&config);
            check(text, |text, stats| vmstat::write(&mut counters, text, stats));
        }
        2 => {
            let writer = stat::StatWriter::new(&config);
            check(text, |text, stats| writer.write(text, stats));
        }
        3 => check(text, buddyinfo::write),
        4 => check(text, diskstats::write),
        5 => check(text, |text, stats| psi::write(text, some, full, stats)),
        6 => check(text, slabinfo::write),
        7 => {
            for format in [Format::Hertz, Format::Megahertz, Format::List] {
                let _ = format.parse(text);
            }
        }
        _ => assert!(thermal::parse(text).is_none_or(|degrees| degrees <= u64::MAX / 2000)),
    }
}

/// The same text has the same counters, whatever was read before, and they are not much longer.
fn check(text: &[u8], mut write: impl FnMut(&[u8], &mut SysStatsWriter<'_>)) {
    let mut encode = |text: &[u8]| {
        let mut buffer = HeapBuffer::<SysStatsWriter<'static>>::default();
        write(text, &mut buffer.message());
        buffer.into_vec()
    };
    let first = encode(text);
    assert!(first.len() <= MAX_GROWTH * (text.len() + 1), "{} bytes of {}", first.len(), text.len());
    assert_eq!(encode(text), first, "the second time");
    encode(&text[text.len() / 3..]);
    assert_eq!(encode(text), first, "after another text");
}
