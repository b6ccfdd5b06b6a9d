//! Stacks with values: the common form of folded stacks, pprof and sampled profiles.

use std::collections::{BTreeMap, HashMap};

use esatto_trace::tables::{Row, Table as _, Tables};

use crate::owners::{Owner, owner_of_track, process_label, thread_label};

/// Largest number of values of a stack.
const VALUES: usize = 4;
/// Frames of a stack that are written, the innermost ones. A chain of a million call sites with a
/// sample at each would otherwise make an output of their square.
const MAX_STACK_FRAMES: usize = 1024;

/// The content of a trace that has stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StackKind {
    /// Slices, by the time that they took without the slices inside them.
    Slices,
    /// Samples of call stacks.
    Samples,
    /// Allocations of heap profiles.
    Heap,
}

impl StackKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Slices, Self::Samples, Self::Heap];

    /// Returns whether a trace has content of this kind.
    pub fn is_in(self, tables: &Tables) -> bool {
        match self {
            Self::Slices => (0..tables.slice.rows()).any(|row| tables.slice.dur.get(row) != 0),
            Self::Samples => tables.perf_sample.rows() + tables.cpu_profile_stack_sample.rows() > 0,
            Self::Heap => tables.heap_profile_allocation.rows() > 0,
        }
    }

    /// Returns the names and the units of the values, the most important first.
    pub fn values(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Slices => &[("wall", "nanoseconds"), ("slices", "count")],
            Self::Samples => &[("samples", "count")],
            Self::Heap => &[
                ("inuse_space", "bytes"),
                ("inuse_objects", "count"),
                ("alloc_space", "bytes"),
                ("alloc_objects", "count"),
            ],
        }
    }
}

/// A frame of stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    pub(crate) name: String,
    /// The file that contains its code.
    pub(crate) file: String,
    /// Its address in that file.
    pub(crate) address: u64,
}

/// Owner of stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Origin {
    pub(crate) process: Option<(String, i64)>,
    pub(crate) thread: Option<(String, i64)>,
    /// A track that is no thread's own one, or a heap.
    pub(crate) track: Option<String>,
}

impl Origin {
    /// Returns its parts as frames, from the root.
    pub(crate) fn frames(&self) -> Vec<String> {
        let labels = [&self.process, &self.thread].into_iter().flatten().map(|(label, _)| label.clone());
        labels.chain(self.track.clone()).collect()
    }
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    frame: usize,
}

/// Stacks with values.
#[derive(Debug)]
pub struct Stacks {
    kind: StackKind,
    pub(crate) origins: Vec<Origin>,
    pub(crate) frames: Vec<Frame>,
    nodes: Vec<Node>,
    values: BTreeMap<(usize, usize), [i64; VALUES]>,
    frame_index: HashMap<Frame, usize>,
    origin_index: HashMap<Origin, usize>,
    node_index: HashMap<(Option<usize>, usize), usize>,
}

impl Stacks {
    /// Makes stacks of one kind of content.
    pub fn of(kind: StackKind, tables: &Tables) -> Self {
        let mut stacks = Self::empty(kind);
        match kind {
            StackKind::Slices => stacks.add_slices(tables),
            StackKind::Samples => stacks.add_samples(tables),
            StackKind::Heap => stacks.add_heap(tables),
        }
        stacks
    }

    pub(crate) fn empty(kind: StackKind) -> Self {
        Self {
            kind,
            origins: Vec::new(),
            frames: Vec::new(),
            nodes: Vec::new(),
            values: BTreeMap::new(),
            frame_index: HashMap::new(),
            origin_index: HashMap::new(),
            node_index: HashMap::new(),
        }
    }

    /// Returns the kind of content.
    pub fn kind(&self) -> StackKind {
        self.kind
    }

    /// Returns the number of different stacks.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there are no stacks.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns origin, node and values of each stack.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (usize, usize, &[i64])> {
        let count = self.kind.values().len();
        self.values.iter().map(move |(&(origin, node), values)| (origin, node, &values[..count]))
    }

    /// Returns the frames of a node from the root, or the innermost of very many.
    pub(crate) fn path(&self, node: usize) -> Vec<usize> {
        let mut path: Vec<_> = core::iter::successors(Some(node), |&node| self.nodes[node].parent)
            .take(MAX_STACK_FRAMES)
            .map(|node| self.nodes[node].frame)
            .collect();
        path.reverse();
        path
    }

    fn origin(&mut self, origin: Origin) -> usize {
        let Self { origins, origin_index, .. } = self;
        *origin_index.entry(origin).or_insert_with_key(|origin| {
            origins.push(origin.clone());
            origins.len() - 1
        })
    }

    pub(crate) fn frame(&mut self, frame: Frame) -> usize {
        let Self { frames, frame_index, .. } = self;
        *frame_index.entry(frame).or_insert_with_key(|frame| {
            frames.push(frame.clone());
            frames.len() - 1
        })
    }

    fn node(&mut self, parent: Option<usize>, frame: usize) -> usize {
        let nodes = &mut self.nodes;
        *self.node_index.entry((parent, frame)).or_insert_with(|| {
            nodes.push(Node { parent, frame });
            nodes.len() - 1
        })
    }

    fn add(&mut self, origin: usize, node: usize, values: [i64; VALUES]) {
        let sums = self.values.entry((origin, node)).or_default();
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
    }

    fn add_slices(&mut self, tables: &Tables) {
        let slice = &tables.slice;
        let end = end_of_slices(tables);
        let duration = |row: usize| match slice.dur.get(row) {
            dur if dur >= 0 => dur,
            _ => end.saturating_sub(slice.ts.get(row)),
        };
        let mut inside = vec![0_i64; slice.rows()];
        for row in 0..slice.rows() {
            if let Some(parent) = slice.parent_id[row] {
                let sum = &mut inside[parent.index()];
                *sum = sum.saturating_add(duration(row));
            }
        }
        let mut nodes: Vec<usize> = Vec::with_capacity(slice.rows());
        let mut origins = HashMap::new();
        for (row, inside) in inside.into_iter().enumerate() {
            let name = slice.name[row].map_or("", |name| tables.strings.get(name)).to_owned();
            let frame = self.frame(Frame { name, ..Frame::default() });
            let parent = slice.parent_id[row].and_then(|parent| nodes.get(parent.index()).copied());
            let node = self.node(parent, frame);
            nodes.push(node);
            let own = duration(row).saturating_sub(inside).max(0);
            if slice.dur.get(row) == 0 {
                continue;
            }
            let track = slice.track_id[row];
            let origin = *origins.entry(track).or_insert_with(|| self.origin(origin_of_track(tables, track)));
            self.add(origin, node, [own, 1, 0, 0]);
        }
    }

    fn add_samples(&mut self, tables: &Tables) {
        let nodes = self.callsites(tables);
        let perf = &tables.perf_sample;
        for row in 0..perf.rows() {
            if let Some(callsite) = perf.callsite_id[row] {
                let origin = self.origin(origin_of_thread(tables, perf.utid[row]));
                self.add(origin, nodes[callsite.index()], [1, 0, 0, 0]);
            }
        }
        let own = &tables.cpu_profile_stack_sample;
        for row in 0..own.rows() {
            let origin = self.origin(origin_of_thread(tables, own.utid[row]));
            self.add(origin, nodes[own.callsite_id[row].index()], [1, 0, 0, 0]);
        }
    }

    fn add_heap(&mut self, tables: &Tables) {
        let nodes = self.callsites(tables);
        let heap = &tables.heap_profile_allocation;
        for row in 0..heap.rows() {
            let upid = heap.upid[row];
            let track = heap.heap_name[row].map(|name| tables.strings.get(name).to_owned());
            let process = (process_label(tables, upid), tables.process.pid[upid.index()]);
            let origin = self.origin(Origin { process: Some(process), thread: None, track });
            let (count, size) = (heap.count[row], heap.size[row]);
            self.add(origin, nodes[heap.callsite_id[row].index()], [size, count, size.max(0), count.max(0)]);
        }
    }

    /// Makes a node of each call stack. Rows of parents come before those of their children.
    pub(crate) fn callsites(&mut self, tables: &Tables) -> Vec<usize> {
        let callsite = &tables.stack_profile_callsite;
        let mut nodes: Vec<usize> = Vec::with_capacity(callsite.rows());
        for row in 0..callsite.rows() {
            let frame = self.frame(frame_of(tables, callsite.frame_id[row]));
            let parent = callsite.parent_id[row].and_then(|parent| nodes.get(parent.index()).copied());
            nodes.push(self.node(parent, frame));
        }
        nodes
    }
}

/// Returns the end of the last slice.
pub(crate) fn end_of_slices(tables: &Tables) -> i64 {
    let slice = &tables.slice;
    let end = |row| slice.ts.get(row).saturating_add(slice.dur.get(row).max(0));
    (0..slice.rows()).map(end).max().unwrap_or(0)
}

pub(crate) fn origin_of_thread(tables: &Tables, thread: Row) -> Origin {
    let process = tables.thread.upid[thread.index()];
    Origin {
        process: process.map(|process| (process_label(tables, process), tables.process.pid[process.index()])),
        thread: Some((thread_label(tables, thread), tables.thread.tid[thread.index()])),
        track: None,
    }
}

pub(crate) fn origin_of_track(tables: &Tables, track: Row) -> Origin {
    let name = || {
        Some(
            tables.track.name[track.index()]
                .map_or("(track without a name)", |name| tables.strings.get(name))
                .to_owned(),
        )
    };
    match owner_of_track(tables, track) {
        Owner::OwnThread(thread) => origin_of_thread(tables, thread),
        Owner::Thread(thread) => Origin { track: name(), ..origin_of_thread(tables, thread) },
        Owner::Process(process) => Origin {
            process: Some((process_label(tables, process), tables.process.pid[process.index()])),
            thread: None,
            track: name(),
        },
        Owner::Machine => Origin { track: name(), ..Origin::default() },
    }
}

fn frame_of(tables: &Tables, row: Row) -> Frame {
    let frame = &tables.stack_profile_frame;
    let index = row.index();
    let mapping = frame.mapping[index].index();
    let file = tables.stack_profile_mapping.name[mapping].map_or("", |name| tables.strings.get(name)).to_owned();
    let address = u64::from_ne_bytes(frame.rel_pc[index].to_ne_bytes());
    let name = frame.deobfuscated_name[index].or(frame.name[index]).map(|name| tables.strings.get(name));
    let name = match name.filter(|name| !name.is_empty()) {
        Some(name) => name.to_owned(),
        None => {
            let file = file.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or("unknown");
            format!("{file}+{address:#x}")
        }
    };
    Frame { name, file, address }
}
