//! `SysStats.psi`: `/proc/pressure/{cpu,io,memory}`.

use esatto_schema::SysStatsWriter;
use esatto_schema::sys_stats::psi_sample::PsiResource;

use crate::words::{Words, leading_number, lines};

/// How many tasks a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Share {
    /// At least one task waited.
    Some,
    /// All tasks that had something to do waited.
    Full,
}

/// Returns for each line the total time in microseconds that tasks have waited.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = (Share, u64)> {
    lines(text).filter_map(|line| {
        let mut words = Words::new(line);
        let share = match words.word()? {
            b"some" => Share::Some,
            b"full" => Share::Full,
            _ => return None,
        };
        while let Some(word) = words.word() {
            if let Some(total) = word.strip_prefix(b"total=") {
                let (total, len) = leading_number(total);
                return (len > 0).then_some((share, total));
            }
        }
        None
    })
}

/// `some` and `full` are what the lines of this file are in the trace.
pub(super) fn write(text: &[u8], some: PsiResource, full: PsiResource, stats: &mut SysStatsWriter<'_>) {
    for (share, total_us) in parse(text) {
        let resource = if share == Share::Some { some } else { full };
        stats.psi().resource(resource).total_ns(total_us.saturating_mul(1000));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_by_its_name() {
        let text =
            b"some avg10=97.16 avg60=81.39 avg300=72.70 total=1175188183\nfull total=5 x=6\nnone total=7\nsome\n";
        assert_eq!(parse(text).collect::<Vec<_>>(), [(Share::Some, 1_175_188_183), (Share::Full, 5)]);
    }
}
