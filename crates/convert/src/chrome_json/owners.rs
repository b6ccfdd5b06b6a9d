//! Processes and threads of a file: their numbers and names.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::{Event, Owner, hash_of};

/// The first number for processes and threads that the file names by texts.
const FIRST_TEXT: u32 = 1 << 30;

/// A process, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Process(pub(super) u32);

/// A thread, by its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Thread {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

#[derive(Debug, Default)]
struct Facts {
    name: Option<String>,
    labels: Option<String>,
    order: Option<i32>,
}

/// Processes and threads.
#[derive(Debug)]
pub(super) struct Owners {
    seed: u64,
    texts: BTreeMap<String, u32>,
    processes: BTreeMap<Process, Facts>,
    threads: BTreeMap<Thread, Facts>,
}

impl Owners {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, texts: BTreeMap::new(), processes: BTreeMap::new(), threads: BTreeMap::new() }
    }

    fn number(&mut self, owner: &Owner) -> u32 {
        match owner {
            // Such a number would be negative in a packet.
            Owner::Number(number) if *number < FIRST_TEXT => *number,
            Owner::Number(number) => self.number_of_text(&number.to_string()),
            Owner::Text(text) => self.number_of_text(text),
        }
    }

    fn number_of_text(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        let number =
            u32::try_from(self.texts.len()).map_or(u32::MAX >> 1, |index| FIRST_TEXT | index & (FIRST_TEXT - 1));
        self.texts.insert(text.to_owned(), number);
        number
    }

    /// Returns process and thread of an event.
    pub(super) fn of(&mut self, event: &Event) -> (Process, Thread) {
        let (pid, tid) = (self.number(&event.pid), self.number(&event.tid));
        let thread = Thread { pid, tid };
        if let Owner::Text(text) = &event.pid {
            self.processes.entry(Process(pid)).or_default().name.get_or_insert_with(|| text.clone());
        }
        if let (Owner::Text(text), true) = (&event.tid, event.tid != event.pid) {
            self.threads.entry(thread).or_default().name.get_or_insert_with(|| text.clone());
        }
        (Process(pid), thread)
    }

    /// Takes a name from an event of metadata.
    pub(super) fn name(&mut self, event: &Event) {
        let (process, thread) = self.of(event);
        let text = |key: &str| event.args.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let order = || event.args.get("sort_index").and_then(Value::as_i64).and_then(|order| i32::try_from(order).ok());
        let facts = if event.name.starts_with("thread_") {
            self.threads.entry(thread).or_default()
        } else {
            self.processes.entry(process).or_default()
        };
        match event.name.as_str() {
            "process_name" | "thread_name" => set(&mut facts.name, text("name").map(str::to_owned)),
            "process_labels" => set(&mut facts.labels, text("labels").map(str::to_owned)),
            "process_sort_index" | "thread_sort_index" => set(&mut facts.order, order()),
            _ => {}
        }
    }

    /// Returns the id of a track.
    pub(super) fn uuid(&self, kind: &str, pid: u32, number: u64) -> u64 {
        let mut hash = self.seed ^ hash_of(kind);
        for part in [u64::from(pid), number] {
            // Steps of the generator splitmix64, which is a permutation.
            hash = hash.wrapping_add(part).wrapping_add(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            hash ^= hash >> 31;
        }
        // Track 0 is the default one.
        hash.max(1)
    }

    pub(super) fn named_processes(&self) -> Vec<Process> {
        self.processes.keys().copied().collect()
    }

    pub(super) fn named_threads(&self) -> Vec<Thread> {
        self.threads.keys().copied().collect()
    }

    pub(super) fn process_name(&self, process: Process) -> Option<String> {
        self.processes.get(&process)?.name.clone()
    }

    pub(super) fn process_facts(&self, process: Process) -> (Option<String>, Option<i32>) {
        self.processes.get(&process).map(|facts| (facts.labels.clone(), facts.order)).unwrap_or_default()
    }

    pub(super) fn thread_name(&self, thread: Thread) -> Option<String> {
        self.threads.get(&thread)?.name.clone()
    }

    pub(super) fn thread_order(&self, thread: Thread) -> Option<i32> {
        self.threads.get(&thread)?.order
    }
}

/// The last value that is there counts.
fn set<T>(place: &mut Option<T>, value: Option<T>) {
    if value.is_some() {
        *place = value;
    }
}
