//! [`CpuStats`]: what the kernel counts of the ring buffer of a CPU.

use esatto_schema::FtraceCpuStatsWriter;

/// Content of `per_cpu/cpuN/stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuStats {
    pub(crate) entries: u64,
    pub(crate) overrun: u64,
    pub(crate) commit_overrun: u64,
    pub(crate) bytes: u64,
    /// Seconds in the trace clock.
    pub(crate) oldest_event_ts: f64,
    /// Seconds in the trace clock.
    pub(crate) now_ts: f64,
    /// The same in nanoseconds, without rounding.
    pub(crate) now_ns: i64,
    pub(crate) dropped_events: u64,
    pub(crate) read_events: u64,
}

impl CpuStats {
    /// Parses the file. What it lacks is 0.
    pub(crate) fn parse(file: &[u8]) -> Self {
        let mut stats = Self::default();
        for line in file.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let value = core::str::from_utf8(line[colon + 1..].trim_ascii()).unwrap_or_default();
            let number = || value.parse().unwrap_or(0);
            match &line[..colon] {
                b"entries" => stats.entries = number(),
                b"overrun" => stats.overrun = number(),
                b"commit overrun" => stats.commit_overrun = number(),
                b"bytes" => stats.bytes = number(),
                b"oldest event ts" => stats.oldest_event_ts = seconds(value),
                b"now ts" => {
                    stats.now_ts = seconds(value);
                    stats.now_ns = nanoseconds(value);
                }
                b"dropped events" => stats.dropped_events = number(),
                b"read events" => stats.read_events = number(),
                _ => {}
            }
        }
        stats
    }

    /// Returns the events that the kernel did not keep, because the buffer was full or a writer was
    /// interrupted.
    pub(crate) fn lost(&self) -> u64 {
        self.overrun.saturating_add(self.commit_overrun).saturating_add(self.dropped_events)
    }

    pub(crate) fn write(&self, cpu: u32, message: &mut FtraceCpuStatsWriter<'_>) {
        message.cpu(u64::from(cpu));
        message.entries(self.entries);
        message.overrun(self.overrun);
        message.commit_overrun(self.commit_overrun);
        message.bytes_read(self.bytes);
        message.oldest_event_ts(self.oldest_event_ts);
        message.now_ts(self.now_ts);
        message.dropped_events(self.dropped_events);
        message.read_events(self.read_events);
    }
}

/// Returns hits and misses of all events in `kprobe_profile`, whose lines are `NAME HITS MISSES`.
pub(crate) fn kprobe_hits_and_misses(file: &[u8]) -> (i64, i64) {
    let (mut hits, mut misses) = (0_i64, 0_i64);
    for line in file.split(|byte| *byte == b'\n').filter_map(|line| core::str::from_utf8(line).ok()) {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut number = || words.next()?.parse::<u64>().ok().map(|number| i64::try_from(number).unwrap_or(i64::MAX));
        if let (Some(hit), Some(miss)) = (number(), number()) {
            (hits, misses) = (hits.saturating_add(hit), misses.saturating_add(miss));
        }
    }
    (hits, misses)
}

/// Clocks that count something else than nanoseconds are shown without a point.
fn seconds(text: &str) -> f64 {
    text.parse().ok().filter(|seconds: &f64| seconds.is_finite()).unwrap_or(0.0)
}

fn nanoseconds(text: &str) -> i64 {
    let Some((seconds, fraction)) = text.split_once('.') else { return text.parse().unwrap_or(0) };
    let digits = fraction.len().min(9);
    let parsed = (seconds.parse::<i64>(), fraction.get(..digits).unwrap_or_default().parse::<i64>());
    let (Ok(seconds), Ok(fraction)) = parsed else { return 0 };
    let fraction = fraction.saturating_mul(10_i64.pow(9 - digits as u32));
    seconds.saturating_mul(1_000_000_000).saturating_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_a_cpu_are_those_of_the_file() {
        let stats = CpuStats::parse(
            b"entries: 12\noverrun: 3\ncommit overrun: 4\nbytes: 500\noldest event ts:  2981.258405\n\
              now ts:  3416.598079\ndropped events: 6\nread events: 70\nnews: 1\n",
        );
        let want = CpuStats {
            entries: 12,
            overrun: 3,
            commit_overrun: 4,
            bytes: 500,
            oldest_event_ts: 2981.258405,
            now_ts: 3416.598079,
            now_ns: 3_416_598_079_000,
            dropped_events: 6,
            read_events: 70,
        };
        assert_eq!(stats, want);
    }

    #[test]
    fn odd_statistics_are_no_numbers() {
        for file in [
            "",
            "entries",
            "entries: x\n",
            "now ts: 1.é\n",
            "now ts: .\n",
            "now ts: 99999999999999999999.5\n",
            "now ts: inf\n",
        ] {
            let stats = CpuStats::parse(file.as_bytes());
            assert_eq!((stats.entries, stats.now_ns), (0, 0), "{file}");
            assert!(stats.now_ts.is_finite());
        }
        assert_eq!(CpuStats::parse(b"now ts: 77\n").now_ns, 77);
    }

    #[test]
    fn hits_of_all_kernel_probes_are_added() {
        let profile = b"  a_probe    10     1\n  b_probe 5 0\n\nbad\n  c_probe -7 1\n";
        assert_eq!(kprobe_hits_and_misses(profile), (15, 1));
    }
}
