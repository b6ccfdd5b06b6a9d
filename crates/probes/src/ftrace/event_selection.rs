//! [`EventSelection`]: the events that a config stands for, in one tracefs.

use std::collections::HashSet;

use super::atrace_categories::{RSS_STAT, RSS_STAT_THROTTLED, events_of, is_atrace_category};
use super::event_table::EventTable;
use super::ftrace_request::FtraceRequest;
use super::tracefs::Tracefs;

/// Events that one data source selects.
const MAX_SELECTED_EVENTS: usize = 1 << 16;

/// Groups of the events that this daemon makes for kernel probes. Configs get them by
/// `kprobe_events` only.
pub(crate) const KPROBE_GROUP: &str = "perfetto_kprobes";
pub(crate) const KRETPROBE_GROUP: &str = "perfetto_kretprobes";

/// Events that tell to which process a thread belongs, and what it is called.
const TASK_EVENTS: [&str; 6] = [
    "task/task_newtask",
    "task/task_rename",
    "sched/sched_process_fork",
    "sched/sched_process_exec",
    "sched/sched_process_exit",
    "sched/sched_process_free",
];

/// Events that a config stands for.
#[derive(Debug, Default)]
pub(crate) struct EventSelection {
    /// Group and name, in the order of the config.
    pub(crate) events: Vec<SelectedEvent>,
    /// Entries of the config for which there is no event.
    pub(crate) unknown: Vec<String>,
    seen: HashSet<String>,
}

/// An event that a config stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectedEvent {
    pub(crate) group: String,
    pub(crate) name: String,
    /// The config names this event. If it does not exist, the statistics say so.
    pub(crate) is_named: bool,
}

impl EventSelection {
    /// Finds the events of a config. Events that it names are in the selection whether they exist
    /// or not.
    pub(crate) fn new(request: &FtraceRequest, tracefs: &Tracefs) -> Self {
        let mut selection = Self::default();
        let has_throttled = tracefs.has(&format!("events/{RSS_STAT_THROTTLED}"));
        for event in &request.events {
            match event.as_str() {
                RSS_STAT if request.throttles_rss_stat && has_throttled => {
                    selection.push_path(RSS_STAT_THROTTLED, true)
                }
                event => selection.push_pattern(event, tracefs),
            }
        }
        for category in &request.categories {
            if !is_atrace_category(category) {
                selection.unknown.push(format!("{category} (atrace category)"));
            }
            for event in events_of(category) {
                match event.strip_suffix("/*") {
                    Some(group) => {
                        for name in tracefs.folders(&format!("events/{group}")) {
                            if EventTable::is_in_schema(group, &name) {
                                selection.push(group, &name, false);
                            }
                        }
                    }
                    None if *event == RSS_STAT && has_throttled => selection.push_path(RSS_STAT_THROTTLED, false),
                    None => selection.push_path(event, false),
                }
            }
        }
        if request.wants_print {
            selection.push("ftrace", "print", false);
        }
        if !request.syscall_numbers.is_empty() {
            selection.push("raw_syscalls", "sys_enter", true);
            selection.push("raw_syscalls", "sys_exit", true);
        }
        if request.function_graph.is_some() {
            selection.push("ftrace", "funcgraph_entry", true);
            selection.push("ftrace", "funcgraph_exit", true);
        }
        if ["sched/sched_switch", "sched/sched_waking"].iter().any(|event| selection.seen.contains(*event)) {
            TASK_EVENTS.iter().for_each(|event| selection.push_path(event, false));
        }
        selection.unknown.extend(request.unknown_syscalls.iter().cloned());
        selection
    }

    /// Adds the events of an entry of the config: `GROUP/NAME` or `NAME`, both with wildcards.
    fn push_pattern(&mut self, pattern: &str, tracefs: &Tracefs) {
        match pattern.split_once('/') {
            Some((group, name)) if !pattern.contains('*') => self.push(group, name, true),
            None if !pattern.contains('*') => {
                let mut groups = EventTable::groups_of(pattern);
                let exists = |group: &str| tracefs.has(&format!("events/{group}/{pattern}"));
                let group = groups.find(|group| exists(group)).map(str::to_owned);
                let group = group.or_else(|| tracefs.folders("events").into_iter().find(|group| exists(group)));
                match group {
                    Some(group) => self.push(&group, pattern, true),
                    None => self.unknown.push(pattern.to_owned()),
                }
            }
            parts => {
                let (group_pattern, name_pattern) = parts.unwrap_or(("*", pattern));
                let before = self.seen.len();
                let mut exists = false;
                for group in tracefs.folders("events").iter().filter(|group| matches(group_pattern, group)) {
                    for name in tracefs.folders(&format!("events/{group}")) {
                        if matches(name_pattern, &name) {
                            exists = true;
                            self.push(group, &name, false);
                        }
                    }
                }
                if !exists && self.seen.len() == before {
                    self.unknown.push(pattern.to_owned());
                }
            }
        }
    }

    fn push_path(&mut self, path: &str, is_named: bool) {
        if let Some((group, name)) = path.split_once('/') {
            self.push(group, name, is_named);
        }
    }

    fn push(&mut self, group: &str, name: &str, is_named: bool) {
        let is_reserved = matches!(group, KPROBE_GROUP | KRETPROBE_GROUP);
        if !is_reserved && self.events.len() < MAX_SELECTED_EVENTS && self.seen.insert(format!("{group}/{name}")) {
            self.events.push(SelectedEvent { group: group.to_owned(), name: name.to_owned(), is_named });
        }
    }
}

/// True if a text matches a pattern in which `*` stands for any characters.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for part in parts {
        if let Some(part) = last.replace(part) {
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
    }
    match last {
        Some(last) => rest.ends_with(last),
        None => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftrace::tests::TestFolder;

    fn select(folder: &TestFolder, request: &FtraceRequest) -> (Vec<String>, Vec<String>) {
        let selection = EventSelection::new(request, &Tracefs::at(folder.path().into()));
        let events = selection.events.iter().map(|event| format!("{}/{}", event.group, event.name));
        (events.collect(), selection.unknown)
    }

    fn events(entries: &[&str]) -> FtraceRequest {
        FtraceRequest { events: entries.iter().map(|entry| (*entry).to_owned()).collect(), ..FtraceRequest::default() }
    }

    #[test]
    fn wildcards_stand_for_the_events_that_exist() {
        let folder = TestFolder::new("selection").with_tracefs(1);
        let (selected, unknown) = select(&folder, &events(&["task/*", "nothing/*", "task/task_rename"]));
        assert_eq!(selected, ["task/task_newtask", "task/task_rename"]);
        assert_eq!(unknown, ["nothing/*"]);
        let (selected, _) = select(&folder, &events(&["*"]));
        assert_eq!(selected.len(), 12, "{selected:?}");
        assert_eq!(
            select(&folder, &events(&["*_rena*", "raw*/sys_e*r"])).0,
            ["task/task_rename", "raw_syscalls/sys_enter"]
        );
    }

    #[test]
    fn an_event_without_group_is_looked_up() {
        let folder = TestFolder::new("selection-names").with_tracefs(1);
        folder.with_format("odd/odd_event", 77);
        let (selected, unknown) = select(&folder, &events(&["task_rename", "odd_event", "no_event"]));
        assert_eq!(selected, ["task/task_rename", "odd/odd_event"]);
        assert_eq!(unknown, ["no_event"]);
    }

    #[test]
    fn task_events_come_with_scheduling() {
        let folder = TestFolder::new("selection-tasks").with_tracefs(1);
        let (selected, _) = select(&folder, &events(&["sched/sched_switch"]));
        assert_eq!(selected.len(), 1 + TASK_EVENTS.len(), "{selected:?}");
        assert_eq!(select(&folder, &events(&["ftrace/print"])).0, ["ftrace/print"]);
    }

    #[test]
    fn categories_stand_for_events_and_print() {
        let folder = TestFolder::new("selection-categories").with_tracefs(1);
        folder.with_format("irq/irq_handler_entry", 70).with_format("irq/unheard_of", 71);
        folder.with_format("kmem/rss_stat", 72).with_format("synthetic/rss_stat_throttled", 73);
        let categories = ["irq", "am", "memory"].map(str::to_owned).to_vec();
        let request = FtraceRequest { categories, wants_print: true, ..FtraceRequest::default() };
        let (selected, unknown) = select(&folder, &request);
        let existing: Vec<_> =
            selected.iter().filter(|event| folder.path().join("events").join(event).exists()).collect();
        assert_eq!(existing, ["irq/irq_handler_entry", "synthetic/rss_stat_throttled", "ftrace/print"]);
        assert!(unknown.is_empty());
    }

    #[test]
    fn a_probe_of_this_daemon_is_no_event_of_a_config() {
        let folder = TestFolder::new("selection-reserved").with_tracefs(1);
        assert_eq!(select(&folder, &events(&["perfetto_kprobes/x"])).0, [""; 0]);
    }
}
