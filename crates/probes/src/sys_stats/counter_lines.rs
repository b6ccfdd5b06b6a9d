//! [`CounterLines`]: values of the wanted lines of `/proc/meminfo` or `/proc/vmstat`.

use crate::words::{leading_number, split_line};

/// Values of the wanted lines of `/proc/meminfo` (`MemFree:  123 kB`) or `/proc/vmstat`
/// (`nr_free_pages 123`).
///
/// A running kernel writes the same lines in the same order every time. So this remembers for each
/// line its key and its counter. To recognise the line again, one comparison with the remembered
/// key suffices. A line that differs is looked up again.
#[derive(Debug)]
pub(crate) struct CounterLines {
    /// Keys of the wanted counters and their numbers, sorted.
    wanted: Vec<(&'static [u8], u16)>,
    lines: Vec<Line>,
    /// Keys of all `lines`, one after the other.
    keys: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Line {
    /// Length of the key in `keys`. It does not include the colon.
    key_len: usize,
    /// Number of the counter; `None` if it is not wanted.
    counter: Option<u16>,
}

impl CounterLines {
    /// Makes a reader for those of the keys, numbered from 1, that are wanted.
    pub(crate) fn new(keys: &[&'static str], is_wanted: impl Fn(u16) -> bool) -> Self {
        let numbered = keys.iter().map(|key| key.as_bytes()).zip(1_u16..);
        let mut wanted: Vec<_> = numbered.filter(|&(_, counter)| is_wanted(counter)).collect();
        wanted.sort_unstable();
        Self { wanted, lines: Vec::new(), keys: Vec::new() }
    }

    /// Calls `add` with the number and the value of each wanted counter in `text`.
    pub(crate) fn read(&mut self, text: &[u8], mut add: impl FnMut(u16, u64)) {
        let mut rest = text;
        let mut keys = &self.keys[..];
        for (index, line) in self.lines.iter().enumerate() {
            let (key, later_keys) = keys.split_at(line.key_len);
            let Some(after) = after_key(rest, key) else {
                let known = self.keys.len() - keys.len();
                return self.learn(index, known, rest, add);
            };
            keys = later_keys;
            rest = match line.counter {
                Some(counter) => read_value(after, counter, &mut add),
                None => split_line(after).1,
            };
        }
        if !rest.is_empty() {
            self.learn(self.lines.len(), self.keys.len(), rest, add);
        }
    }

    /// Reads lines that are not known: those from number `index` on, whose keys begin at `known`.
    #[cold]
    fn learn(&mut self, index: usize, known: usize, text: &[u8], mut add: impl FnMut(u16, u64)) {
        self.lines.truncate(index);
        self.keys.truncate(known);
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.iter().position(|byte| matches!(byte, b':' | b' ' | b'\n')).unwrap_or(rest.len());
            let (key, after) = rest.split_at(end);
            let found = self.wanted.binary_search_by(|&(wanted, _)| wanted.cmp(key));
            let counter = found.ok().map(|found| self.wanted[found].1);
            self.lines.push(Line { key_len: key.len(), counter });
            self.keys.extend_from_slice(key);
            rest = match counter {
                Some(counter) => read_value(after, counter, &mut add),
                None => split_line(after).1,
            };
        }
    }
}

/// Returns what follows the key, if the text begins with it.
#[inline]
fn after_key<'t>(text: &'t [u8], key: &[u8]) -> Option<&'t [u8]> {
    let after = text.strip_prefix(key)?;
    matches!(after, [] | [b':' | b' ' | b'\n', ..]).then_some(after)
}

/// Reads the value that follows a key, and returns the next lines. A line without a value has
/// nothing to add.
#[inline]
fn read_value<'t>(text: &'t [u8], counter: u16, add: &mut impl FnMut(u16, u64)) -> &'t [u8] {
    let mut rest = text.strip_prefix(b":").unwrap_or(text);
    while let [b' ', after @ ..] = rest {
        rest = after;
    }
    let (value, len) = leading_number(rest);
    if len > 0 {
        add(counter, value);
    }
    match &rest[len..] {
        [b'\n', after @ ..] => after,
        // ` kB`
        rest => split_line(rest).1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::counter_names::{MEMINFO, VMSTAT};
    use super::*;

    fn read(lines: &mut CounterLines, text: &str) -> Vec<(u16, u64)> {
        let mut found = Vec::new();
        lines.read(text.as_bytes(), |counter, value| found.push((counter, value)));
        found
    }

    #[test]
    fn values_are_read_with_and_without_a_unit() {
        let mut meminfo = CounterLines::new(&MEMINFO, |_| true);
        let text = "MemTotal:       24684084 kB\nZswap: 3 kB\nActive(anon):       1624 kB\nCmaFree:   7";
        for _ in 0..3 {
            assert_eq!(read(&mut meminfo, text), [(1, 24_684_084), (9, 1624), (33, 7)]);
        }
        let mut vmstat = CounterLines::new(&VMSTAT, |_| true);
        let text = "nr_free_pages 2680659\nnr_free_pages_blocks 1\nworkingset_restore_file 18446744073709551615\n";
        for _ in 0..3 {
            assert_eq!(read(&mut vmstat, text), [(1, 2_680_659), (188, u64::MAX)]);
        }
    }

    #[test]
    fn only_wanted_counters_are_read() {
        let mut meminfo = CounterLines::new(&MEMINFO, |counter| counter == 2);
        assert_eq!(read(&mut meminfo, "MemTotal: 5 kB\nMemFree: 4 kB\n"), [(2, 4)]);
        let mut none = CounterLines::new(&MEMINFO, |_| false);
        assert_eq!(read(&mut none, "MemTotal: 5 kB\n"), []);
    }

    #[test]
    fn lines_that_change_are_looked_up_again() {
        let mut meminfo = CounterLines::new(&MEMINFO, |_| true);
        assert_eq!(read(&mut meminfo, "MemTotal: 5 kB\nMemFree: 4 kB\n"), [(1, 5), (2, 4)]);
        assert_eq!(read(&mut meminfo, "MemTotal: 5 kB\nCached: 1 kB\nMemFree: 3 kB\n"), [(1, 5), (5, 1), (2, 3)]);
        assert_eq!(read(&mut meminfo, "MemFreeX: 5 kB\nMemFree: 2 kB\n"), [(2, 2)]);
        assert_eq!(read(&mut meminfo, "MemFree: 1 kB\n"), [(2, 1)]);
        assert_eq!(read(&mut meminfo, ""), []);
        assert_eq!(read(&mut meminfo, "MemFree: 1 kB\n"), [(2, 1)]);
    }

    #[test]
    fn a_line_without_a_number_has_no_value() {
        let mut meminfo = CounterLines::new(&MEMINFO, |_| true);
        for _ in 0..2 {
            assert_eq!(read(&mut meminfo, "MemTotal\nMemFree:\nCached: x\n\n:\nBuffers: 9"), [(4, 9)]);
        }
    }
}
