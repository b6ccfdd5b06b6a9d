//! Events of the kernel: which of them the page shows one by one.

use std::collections::HashMap;

use esatto_trace::Symbol;
use esatto_trace::tables::Tables;

/// Events of the kernel that a page shows. More would make it large and slow to open.
pub(crate) const MAX_KERNEL_EVENTS: usize = 1 << 20;

/// Events that other rows of the page show as intervals or as values.
const SHOWN_ELSEWHERE: [&str; 7] = [
    "cpu_frequency",
    "cpu_idle",
    "sched_blocked_reason",
    "sched_switch",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_waking",
];

/// Events of one name of which not all are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    pub(crate) name: String,
    /// Events that are not shown.
    pub(crate) number: usize,
    /// All events of this name.
    pub(crate) all: usize,
}

/// Events that are shown: how many of each name, from the begin of the trace on.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) shown: HashMap<Symbol, usize>,
    pub(super) left_out: Vec<LeftOut>,
}

impl Choice {
    /// Chooses among the events of a trace. If there are too many, the rarest names are shown
    /// whole, because the most frequent ones would hide them.
    pub(super) fn of(tables: &Tables, room: usize) -> Self {
        let mut counts: HashMap<Symbol, usize> = HashMap::new();
        for name in tables.ftrace_event.name.iter().flatten() {
            *counts.entry(name).or_default() += 1;
        }
        let named = counts.into_iter().map(|(symbol, number)| (symbol, tables.strings.get(symbol), number));
        let (shown, left_out) = choose(named.filter(|(_, name, _)| !SHOWN_ELSEWHERE.contains(name)).collect(), room);
        Self { shown: shown.into_iter().collect(), left_out }
    }
}

/// Shares the room among names with their numbers of events: how many of each are shown.
fn choose<K>(mut counts: Vec<(K, &str, usize)>, mut room: usize) -> (Vec<(K, usize)>, Vec<LeftOut>) {
    counts.sort_unstable_by_key(|&(_, name, number)| (number, name));
    let (mut chosen, mut left_out) = (Vec::new(), Vec::new());
    for (key, name, all) in counts {
        let shown = all.min(room);
        room -= shown;
        if shown > 0 {
            chosen.push((key, shown));
        }
        if shown < all {
            left_out.push(LeftOut { name: name.to_owned(), number: all - shown, all });
        }
    }
    (chosen, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_events_are_shown_if_there_is_room() {
        let (shown, left_out) = choose(vec![(1, "a", 5), (2, "b", 2)], 7);
        assert_eq!(shown, [(2, 2), (1, 5)]);
        assert!(left_out.is_empty());
    }

    #[test]
    fn rare_names_are_shown_whole() {
        let (shown, left_out) = choose(vec![(1, "many", 100), (2, "few", 3), (3, "most", 200)], 50);
        assert_eq!(shown, [(2, 3), (1, 47)]);
        let left = |name: &str, number, all| LeftOut { name: name.to_owned(), number, all };
        assert_eq!(left_out, [left("many", 53, 100), left("most", 200, 200)]);
    }
}
