//! Call stacks: samples on rows of their threads, and heap profiles.

use std::collections::{BTreeMap, HashMap};

use esatto_trace::tables::{ArgValue, Row, Table as _, Tables};

use super::rows::{CPUS_OF_MACHINE, Rows};
use super::{Import, number};
use crate::arguments::{Argument, ArgumentSet};
use crate::report::Report;
use crate::stacks::{Heap, Stack};
use crate::texts::Text;
use crate::timeline::{Span, TrackId};

/// Functions of one address that are shown: that of the code, and those that it has inlined.
const MAX_INLINED: usize = 64;

/// Functions of an address with their files, the outermost first.
type Functions = Box<[(Text, Text)]>;

/// Samples that programs took themselves, by the name of their source.
const OWN_SAMPLES: &str = "the programs";

/// Returns the names of the counters by which the sessions of perf events took samples.
fn counters_of_sessions(tables: &Tables) -> HashMap<u32, String> {
    let mut sessions: BTreeMap<u32, &str> = BTreeMap::new();
    for row in 0..tables.track.rows() {
        if tables.strings.get(tables.track.r#type[row]) != "perf_cpu_counter" {
            continue;
        }
        let find = |set: Option<Row>, key: &str| {
            let arg = tables.args.set(set?).iter().find(|arg| tables.strings.get(arg.key) == key)?;
            Some(arg.value)
        };
        let session = find(tables.track.dimension_arg_set_id[row], "perf_session_id");
        let is_timebase = find(tables.track.source_arg_set_id[row], "is_timebase");
        if let (Some(ArgValue::Int(session)), Some(ArgValue::Bool(true))) = (session, is_timebase) {
            let name = tables.track.name[row].map_or("", |name| tables.strings.get(name));
            sessions.entry(u32::try_from(session).unwrap_or(0)).or_insert(name);
        }
    }
    let label = |(session, name): (&u32, &&str)| {
        let is_alone = sessions.values().filter(|other| *other == name).count() == 1;
        (*session, if is_alone { (*name).to_owned() } else { format!("{name}, session {session}") })
    };
    sessions.iter().map(label).collect()
}

/// The stacks of the call sites in the tables; those that nothing uses are left out.
pub(super) struct CallSites(Vec<Stack>);

impl CallSites {
    /// Adds the stacks that samples and heap profiles use.
    pub(super) fn new(import: &Import<'_>, report: &mut Report) -> Self {
        let tables = import.tables;
        let sites = &tables.stack_profile_callsite;
        let mut is_used = vec![false; sites.rows()];
        let samples = tables.perf_sample.callsite_id.iter().flatten();
        let others = tables.cpu_profile_stack_sample.callsite_id.iter();
        for site in samples.chain(others).chain(&tables.heap_profile_allocation.callsite_id) {
            let mut next = Some(*site);
            while let Some(site) = next.filter(|site| !is_used[site.index()]) {
                is_used[site.index()] = true;
                next = sites.parent_id[site.index()];
            }
        }
        let mut names: Vec<Option<Functions>> = vec![None; tables.stack_profile_frame.rows()];
        let mut stacks = vec![Stack::default(); sites.rows()];
        // A caller has an earlier row than those that it calls.
        for site in (0..sites.rows()).filter(|&site| is_used[site]) {
            let frame = sites.frame_id[site].index();
            let functions = names[frame].get_or_insert_with(|| import.functions(report, frame));
            let caller = sites.parent_id[site].map_or_else(Stack::default, |caller| stacks[caller.index()]);
            let add = |caller, &(function, file): &(Text, Text)| report.stacks.add(caller, function, file);
            stacks[site] = functions.iter().fold(caller, add);
        }
        Self(stacks)
    }

    fn stack(&self, site: Option<Row>) -> Stack {
        site.map_or_else(Stack::default, |site| self.0[site.index()])
    }
}

impl Import<'_> {
    /// Returns the functions of an address. A function without a name has its address as a name.
    fn functions(&self, report: &mut Report, frame: usize) -> Functions {
        let frames = &self.tables.stack_profile_frame;
        let text = |symbol: Option<_>| symbol.map_or("", |symbol| self.tables.strings.get(symbol));
        let mapping = frames.mapping[frame].index();
        let file = text(self.tables.stack_profile_mapping.name[mapping]);
        if let Some(set) = frames.symbol_set_id[frame] {
            let symbols = &self.tables.stack_profile_symbol;
            let rows = (set.index()..symbols.rows()).take_while(|&row| symbols.symbol_set_id[row] == set);
            let rows: Vec<usize> = rows.take(MAX_INLINED).collect();
            // The function that is inlined deepest is the first one.
            let named = rows.iter().rev().filter(|&&row| !text(symbols.name[row]).is_empty());
            let mut texts = |&row: &usize| {
                let source = Some(text(symbols.source_file[row])).filter(|source| !source.is_empty());
                (report.texts.number(text(symbols.name[row])), report.texts.number(source.unwrap_or(file)))
            };
            let functions: Functions = named.map(&mut texts).collect();
            if !functions.is_empty() {
                return functions;
            }
        }
        let known = [frames.deobfuscated_name[frame], frames.name[frame]].map(text);
        let file_name = file.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("unknown file");
        let function = match known.into_iter().find(|name| !name.is_empty()) {
            Some(name) => report.texts.number(name),
            None => report.texts.number(&format!("{file_name}+{:#x}", frames.rel_pc[frame])),
        };
        [(function, report.texts.number(file))].into()
    }

    /// Adds a mark for each sample of a call stack.
    pub(super) fn samples(&mut self, report: &mut Report, rows: &mut Rows<'_>, sites: &CallSites) {
        let samples = &self.tables.perf_sample;
        let sessions = counters_of_sessions(self.tables);
        for row in 0..samples.rows() {
            let strings = &self.tables.strings;
            let cpu = samples.cpu[row].map(|cpu| ("CPU", Argument::Integer(i64::from(cpu % CPUS_OF_MACHINE))));
            let mode = ("mode", Argument::Text(strings.get(samples.cpu_mode[row])));
            let error = samples.unwind_error[row];
            let error = error.map(|error| ("stack not whole", Argument::Text(strings.get(error))));
            let arguments = cpu.into_iter().chain([mode]).chain(error);
            let arguments = report.arguments.add(arguments, &mut report.texts);
            let stack = sites.stack(samples.callsite_id[row]);
            let source = sessions.get(&samples.perf_session_id[row]).map_or("", |name| name);
            let track = rows.of_samples(report, samples.utid[row], source);
            self.sample(report, track, (samples.ts[row], samples.utid[row]), stack, arguments);
        }
        let samples = &self.tables.cpu_profile_stack_sample;
        for row in 0..samples.rows() {
            let priority = ("process priority", Argument::Integer(samples.process_priority[row].into()));
            let arguments = report.arguments.add([priority], &mut report.texts);
            let stack = sites.stack(Some(samples.callsite_id[row]));
            let track = rows.of_samples(report, samples.utid[row], OWN_SAMPLES);
            self.sample(report, track, (samples.ts[row], samples.utid[row]), stack, arguments);
        }
    }

    fn sample(
        &self,
        report: &mut Report,
        track: TrackId,
        (ts, thread): (i64, Row),
        stack: Stack,
        arguments: ArgumentSet,
    ) {
        let function = report.stacks.function(stack);
        report.timeline.add_span(Span {
            track,
            lane: 0,
            depth: 0,
            begin: ts.saturating_sub(self.begin),
            duration: Some(0),
            name: function.unwrap_or_else(|| report.texts.number("no call stack")),
            category: Text::default(),
            arguments,
            thread: number(thread) + 1,
            stack: stack.0,
        });
    }

    /// Adds the heaps of processes, with a mark for each dump.
    pub(super) fn heaps(&mut self, report: &mut Report, rows: &mut Rows<'_>, sites: &CallSites) {
        let changes = &self.tables.heap_profile_allocation;
        let mut heaps: BTreeMap<(Row, &str), BTreeMap<i64, Vec<usize>>> = BTreeMap::new();
        for row in 0..changes.rows() {
            let name = changes.heap_name[row].map_or("", |name| self.tables.strings.get(name));
            let dumps = heaps.entry((changes.upid[row], name)).or_default();
            dumps.entry(changes.ts[row]).or_default().push(row);
        }
        for ((process, name), dumps) in heaps {
            let track = rows.of_heap(report, process, name);
            let mut heap = Heap {
                process: process.index(),
                name: name.to_owned(),
                track: track.0,
                dumps: Vec::new(),
                changes: Vec::new(),
            };
            for (place, (ts, dump)) in dumps.into_iter().enumerate() {
                let begin = ts.saturating_sub(self.begin);
                let number = u32::try_from(dump.len()).expect("a table has less than 2^32 rows");
                heap.dumps.push((begin, number));
                for row in dump {
                    let stack = sites.stack(Some(changes.callsite_id[row]));
                    heap.changes.push((stack, changes.count[row], changes.size[row]));
                }
                report.timeline.add_span(Span {
                    track,
                    lane: 0,
                    depth: 0,
                    begin,
                    duration: Some(0),
                    name: report.texts.number(&format!("heap dump {}", place + 1)),
                    category: Text::default(),
                    arguments: ArgumentSet::default(),
                    thread: 0,
                    stack: 0,
                });
            }
            report.heaps.push(heap);
        }
    }
}
