//! `SysStats.cpu_stat`, `num_irq`, `num_softirq` and `num_forks`: `/proc/stat`.

use esatto_schema::sys_stats::InterruptCountWriter;
use esatto_schema::{SysStatsConfigReader, SysStatsWriter};

use super::wanted::Wanted;
use crate::words::{Words, leading_number, lines};

const CPU_TIMES: u16 = 1;
const IRQ_COUNTS: u16 = 2;
const SOFTIRQ_COUNTS: u16 = 3;
const FORK_COUNT: u16 = 4;

/// Columns of a line of a CPU: user, nice, system, idle, iowait, irq, softirq, steal.
type Times = [u64; 8];

/// A line of `/proc/stat`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Line<'a> {
    /// Number of a CPU, and its times in ticks of the clock.
    Cpu(u32, Times),
    Interrupts(Counts<'a>),
    Softirqs(Counts<'a>),
    Forks(u64),
}

/// Numbers of a line: the total, then one for each interrupt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts<'a>(&'a [u8]);

/// Returns the lines that the trace may want.
pub(crate) fn parse(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines(text).filter_map(|line| {
        if let Some(rest) = line.strip_prefix(b"cpu") {
            // The line `cpu` is the sum of all CPUs.
            let (cpu, len) = leading_number(rest);
            let cpu = u32::try_from(cpu).ok().filter(|_| len > 0)?;
            let mut words = Words::new(&rest[len..]);
            let times = core::array::from_fn(|_| words.number().unwrap_or(0));
            Some(Line::Cpu(cpu, times))
        } else if let Some(rest) = line.strip_prefix(b"intr ") {
            Some(Line::Interrupts(Counts(rest)))
        } else if let Some(rest) = line.strip_prefix(b"softirq ") {
            Some(Line::Softirqs(Counts(rest)))
        } else {
            let rest = line.strip_prefix(b"processes ")?;
            Some(Line::Forks(Words::new(rest).number()?))
        }
    })
}

impl Counts<'_> {
    /// Returns the total, and calls `add` with the index and the count of each interrupt. Most
    /// machines have thousands of interrupts that never happened: `skip_zeros` leaves these out.
    pub(crate) fn read(self, skip_zeros: bool, mut add: impl FnMut(i32, u64)) -> Option<u64> {
        const ZEROS: &[u8; 16] = b"0 0 0 0 0 0 0 0 ";
        let mut words = Words::new(self.0);
        let total = words.number()?;
        words.take(b" ");
        let mut index = 0;
        loop {
            if skip_zeros {
                while words.take(ZEROS) {
                    index += 8;
                }
            }
            let Some(count) = words.number() else { return Some(total) };
            words.take(b" ");
            if count > 0 || !skip_zeros {
                add(index, count);
            }
            index += 1;
        }
    }
}

/// Parts of `/proc/stat` that the config wants.
#[derive(Debug)]
pub(super) struct StatWriter {
    wanted: Wanted,
    ns_per_tick: u64,
}

impl StatWriter {
    pub(super) fn new(config: &SysStatsConfigReader<'_>) -> Self {
        let wanted = config.stat_counters().map(|counter| counter.0).collect();
        let ns_per_tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        Self { wanted, ns_per_tick }
    }

    pub(super) fn write(&self, text: &[u8], stats: &mut SysStatsWriter<'_>) {
        for line in parse(text) {
            match line {
                Line::Cpu(cpu, times) if self.wanted.contains(CPU_TIMES) => {
                    let [user, nice, system, idle, iowait, irq, softirq, steal] =
                        times.map(|ticks| ticks.saturating_mul(self.ns_per_tick));
                    let mut stat = stats.cpu_stat();
                    stat.cpu_id(cpu).user_ns(user).user_nice_ns(nice).system_mode_ns(system).idle_ns(idle);
                    stat.io_wait_ns(iowait).irq_ns(irq).softirq_ns(softirq).steal_ns(steal);
                }
                Line::Interrupts(counts) if self.wanted.contains(IRQ_COUNTS) => {
                    let total = counts.read(true, |irq, count| write_count(stats.num_irq(), irq, count));
                    stats.num_irq_total(total.unwrap_or(0));
                }
                Line::Softirqs(counts) if self.wanted.contains(SOFTIRQ_COUNTS) => {
                    let total = counts.read(false, |irq, count| write_count(stats.num_softirq(), irq, count));
                    stats.num_softirq_total(total.unwrap_or(0));
                }
                Line::Forks(forks) if self.wanted.contains(FORK_COUNT) => {
                    stats.num_forks(forks);
                }
                _ => {}
            }
        }
    }
}

fn write_count(mut writer: InterruptCountWriter<'_>, irq: i32, count: u64) {
    writer.irq(irq).count(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(line: &str, skip_zeros: bool) -> (Option<u64>, Vec<(i32, u64)>) {
        let mut all = Vec::new();
        let total = Counts(line.as_bytes()).read(skip_zeros, |irq, count| all.push((irq, count)));
        (total, all)
    }

    #[test]
    fn interrupts_are_numbered_from_zero_by_position() {
        let zeros = "0 ".repeat(1000);
        assert_eq!(counts(&format!("44 {zeros}7 0 {zeros}37"), true), (Some(44), vec![(1000, 7), (2002, 37)]));
        assert_eq!(counts("5 0 5 0", false), (Some(5), vec![(0, 0), (1, 5), (2, 0)]));
        assert_eq!(counts("0", true), (Some(0), vec![]));
        assert_eq!(counts("", true), (None, vec![]));
    }

    #[test]
    fn each_cpu_has_eight_times() {
        let text = b"cpu  10 0 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu13 1 2\ncpux 4\nctxt 5\nprocesses 92491\n";
        let lines: Vec<_> = parse(text).collect();
        assert!(matches!(lines[0], Line::Cpu(0, [1, 2, 3, 4, 5, 6, 7, 8])), "{:?}", lines[0]);
        assert!(matches!(lines[1], Line::Cpu(13, [1, 2, 0, 0, 0, 0, 0, 0])), "{:?}", lines[1]);
        assert!(matches!(lines[2..], [Line::Forks(92491)]), "{lines:?}");
    }
}
