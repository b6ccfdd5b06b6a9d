//! Processes and threads over time, by the rules of the trace processor.
//!
//! A pid or a tid is used again when its process ends, when the kernel reports a new one, or when a
//! track descriptor of another track names it.

use super::namespaces::Namespaces;
use crate::string_table::Symbol;
use crate::tables::{Arg, ProcessRow, Row, Tables, ThreadRow};
use hashbrown::HashMap;

/// Source of a name of a thread. A name is replaced by names of the same or of a later source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum NameSource {
    #[default]
    Unknown,
    Kernel,
    ProcessTree,
    /// The kind of a thread of Chromium.
    ThreadType,
    Descriptor,
}

const RECENT: usize = 512;

/// Home of the machine, tid and thread.
#[derive(Debug)]
struct Recent(Box<[Option<(u32, i64, Row)>; RECENT]>);

impl Default for Recent {
    fn default() -> Self {
        Self(Box::new([None; RECENT]))
    }
}

impl Recent {
    fn place(&mut self, tid: i64) -> &mut Option<(u32, i64, Row)> {
        &mut self.0[usize::try_from(tid.rem_euclid(RECENT as i64)).unwrap_or(0)]
    }
}

/// The processes and threads that are alive at the current time of the import.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pids: HashMap<(u32, i64), Row>,
    /// Processes whose pid another one has got, by their rows.
    replaced: Vec<bool>,
    /// All threads with a tid that have not ended, oldest first.
    tids: HashMap<(u32, i64), Vec<Row>>,
    /// Threads that were found lately, by the lower bits of their tids.
    recent: Recent,
    name_sources: Vec<NameSource>,
    /// Threads of the same process, while it is not known which one that is.
    same_process: HashMap<Row, Vec<Row>>,
    /// Children of threads whose process is not known.
    children: HashMap<Row, Vec<Row>>,
    /// Arguments of processes.
    arguments: HashMap<Row, Vec<Arg>>,
    machines: HashMap<u32, Row>,
    pub(super) namespaces: Namespaces,
    /// Numbers of machines that are machines of other numbers.
    homes: HashMap<u32, u32>,
    /// The words of command lines.
    pub(crate) cmdlines: HashMap<Row, Vec<Symbol>>,
}

impl Processes {
    /// Adds the idle process of a machine, which is always its first one.
    pub(crate) fn add_idle(&mut self, tables: &mut Tables, machine: u32, name: Symbol) {
        let machine_id = self.machine_row(machine);
        let upid = tables.process.push(process_row(0, machine_id));
        self.pids.insert((machine, 0), upid);
        let utid = tables.thread.push(ThreadRow {
            tid: 0,
            name: Some(name),
            start_ts: None,
            end_ts: None,
            upid: Some(upid),
            is_main_thread: Some(true),
            is_idle: true,
            machine_id,
        });
        self.name_sources.push(NameSource::Unknown);
        self.tids.insert((machine, 0), vec![utid]);
        *self.recent.place(0) = None;
    }

    /// Sets the machine whose processes those of another number are.
    pub(crate) fn set_home(&mut self, machine: u32, home: u32) {
        if machine != home {
            self.homes.insert(machine, home);
        }
    }

    fn home(&self, machine: u32) -> u32 {
        self.homes.get(&machine).copied().unwrap_or(machine)
    }

    /// Sets the row of a machine other than that of the service.
    pub(crate) fn set_machine(&mut self, machine: u32, row: Row) {
        self.machines.insert(machine, row);
    }

    pub(crate) fn machine_row(&self, machine: u32) -> Option<Row> {
        self.machines.get(&machine).copied()
    }

    pub(crate) fn start_thread(&mut self, tables: &mut Tables, machine: u32, tid: i64, ts: Option<i64>) -> Row {
        let utid = tables.thread.push(ThreadRow {
            tid,
            name: None,
            start_ts: ts,
            end_ts: None,
            upid: None,
            is_main_thread: None,
            is_idle: false,
            machine_id: self.machine_row(machine),
        });
        self.name_sources.push(NameSource::Unknown);
        let home = self.home(machine);
        self.tids.entry((home, tid)).or_default().push(utid);
        *self.recent.place(tid) = Some((home, tid, utid));
        utid
    }

    /// Returns the live thread with a tid, in the process with that pid if one is given.
    fn find(&self, tables: &Tables, machine: u32, tid: i64, pid: Option<i64>) -> Option<Row> {
        let list = self.tids.get(&(self.home(machine), tid))?;
        list.iter().rev().copied().find(|&utid| {
            let process = tables.thread.upid[utid.index()];
            let fits = process.is_none_or(|upid| pid.is_none_or(|pid| pid == tables.process.pid[upid.index()]));
            fits && self.is_alive(tables, utid)
        })
    }

    /// Returns whether a thread has not ended, as far as is known.
    pub(crate) fn is_alive(&self, tables: &Tables, utid: Row) -> bool {
        let index = utid.index();
        let is_current = |upid: Row| {
            let is_replaced = self.replaced.get(upid.index()).copied().unwrap_or(false);
            tables.process.end_ts[upid.index()].is_none() && !is_replaced
        };
        tables.thread.end_ts[index].is_none() && tables.thread.upid[index].is_none_or(is_current)
    }

    /// Returns the thread with a tid, if it is known.
    pub(crate) fn known_thread(&self, tables: &Tables, machine: u32, tid: i64) -> Option<Row> {
        self.find(tables, machine, tid, None)
    }

    /// Returns the thread with a tid.
    pub(crate) fn thread(&mut self, tables: &mut Tables, machine: u32, tid: i64) -> Row {
        let home = self.home(machine);
        if let Some((of_home, of_tid, utid)) = *self.recent.place(tid) {
            if (of_home, of_tid) == (home, tid) && self.is_alive(tables, utid) {
                return utid;
            }
        }
        match self.find(tables, machine, tid, None) {
            Some(utid) => {
                *self.recent.place(tid) = Some((home, tid, utid));
                utid
            }
            None => self.start_thread(tables, machine, tid, None),
        }
    }

    /// Returns the thread with a tid in the process with that pid.
    pub(crate) fn thread_of(&mut self, tables: &mut Tables, machine: u32, tid: i64, pid: i64) -> Row {
        let utid = match self.find(tables, machine, tid, Some(pid)) {
            Some(utid) => utid,
            None => self.start_thread(tables, machine, tid, None),
        };
        if tables.thread.upid[utid.index()].is_none() {
            let upid = self.process(tables, machine, pid);
            self.associate(tables, utid, upid);
        }
        utid
    }

    fn associate(&mut self, tables: &mut Tables, utid: Row, upid: Row) {
        let mut open = vec![utid];
        while let Some(utid) = open.pop() {
            let index = utid.index();
            if tables.thread.upid[index].is_some() {
                continue;
            }
            tables.thread.upid[index] = Some(upid);
            tables.thread.is_main_thread[index] = Some(tables.thread.tid[index] == tables.process.pid[upid.index()]);
            open.extend(self.same_process.remove(&utid).unwrap_or_default());
            for child in self.children.remove(&utid).unwrap_or_default() {
                tables.process.parent_upid[child.index()] = Some(upid);
            }
        }
    }

    /// Returns the process with a pid, and its main thread is known from then on.
    pub(crate) fn process(&mut self, tables: &mut Tables, machine: u32, pid: i64) -> Row {
        if let Some(&upid) = self.pids.get(&(self.home(machine), pid)) {
            return upid;
        }
        let upid = tables.process.push(process_row(pid, self.machine_row(machine)));
        let home = self.home(machine);
        self.pids.insert((home, pid), upid);
        self.thread_of(tables, machine, pid, pid);
        upid
    }

    /// Adds a process whose pid may have been used before.
    pub(crate) fn start_process(
        &mut self,
        tables: &mut Tables,
        machine: u32,
        pid: i64,
        ts: Option<i64>,
        parent_tid: Option<i64>,
        name: Option<(Symbol, NameSource)>,
    ) -> Row {
        let home = self.home(machine);
        if let Some(before) = self.pids.remove(&(home, pid)) {
            if self.replaced.len() <= before.index() {
                self.replaced.resize(before.index() + 1, false);
            }
            self.replaced[before.index()] = true;
        }
        let utid = self.start_thread(tables, machine, pid, ts);
        let upid = tables.process.push(process_row(pid, self.machine_row(machine)));
        let home = self.home(machine);
        self.pids.insert((home, pid), upid);
        self.associate(tables, utid, upid);
        tables.process.start_ts[upid.index()] = ts;
        if let Some((name, source)) = name {
            tables.process.name[upid.index()] = Some(name);
            self.name_thread(tables, utid, name, source);
        }
        if let Some(parent) = parent_tid {
            let parent = self.thread(tables, machine, parent);
            match tables.thread.upid[parent.index()] {
                Some(parent) => tables.process.parent_upid[upid.index()] = Some(parent),
                None => self.children.entry(parent).or_default().push(upid),
            }
        }
        upid
    }

    /// Notes that two threads belong to the same process.
    pub(crate) fn associate_threads(&mut self, tables: &mut Tables, first: Row, second: Row) {
        let upid = |utid: Row| tables.thread.upid[utid.index()];
        match (upid(first), upid(second)) {
            (Some(upid), None) => self.associate(tables, second, upid),
            (None, Some(upid)) => self.associate(tables, first, upid),
            (None, None) => {
                self.same_process.entry(first).or_default().push(second);
                self.same_process.entry(second).or_default().push(first);
            }
            (Some(_), Some(_)) => {}
        }
    }

    pub(crate) fn end_thread(&mut self, tables: &mut Tables, machine: u32, tid: i64, ts: i64) {
        let Some(utid) = self.find(tables, machine, tid, None) else { return };
        tables.thread.end_ts[utid.index()] = Some(ts);
        let home = self.home(machine);
        if let Some(list) = self.tids.get_mut(&(home, tid)) {
            list.retain(|entry| *entry != utid);
        }
        let Some(upid) = tables.thread.upid[utid.index()] else { return };
        if tables.process.pid[upid.index()] == tid {
            tables.process.end_ts[upid.index()] = Some(ts);
            self.pids.remove(&(home, tid));
        }
    }

    pub(crate) fn name_thread(&mut self, tables: &mut Tables, utid: Row, name: Symbol, source: NameSource) {
        let index = utid.index();
        if source >= self.name_sources[index] && !tables.thread.is_idle[index] {
            self.name_sources[index] = source;
            tables.thread.name[index] = Some(name);
        }
    }

    /// Names a thread, and its process if it is the main thread.
    pub(crate) fn name_thread_and_process(&mut self, tables: &mut Tables, utid: Row, name: Symbol, source: NameSource) {
        self.name_thread(tables, utid, name, source);
        let Some(upid) = tables.thread.upid[utid.index()] else { return };
        if tables.process.pid[upid.index()] == tables.thread.tid[utid.index()] {
            tables.process.name[upid.index()] = Some(name);
        }
    }

    /// Adds arguments of a process.
    pub(crate) fn add_arguments(&mut self, upid: Row, args: impl IntoIterator<Item = Arg>) {
        self.arguments.entry(upid).or_default().extend(args);
    }

    /// Writes the arguments of all processes.
    pub(crate) fn finish(&mut self, tables: &mut Tables) {
        let mut all: Vec<(Row, Vec<Arg>)> = core::mem::take(&mut self.arguments).into_iter().collect();
        all.sort_unstable_by_key(|(upid, _)| *upid);
        for (upid, mut args) in all {
            tables.process.arg_set_id[upid.index()] = tables.args.add(&mut args);
        }
    }
}

fn process_row(pid: i64, machine_id: Option<Row>) -> ProcessRow {
    ProcessRow {
        pid,
        name: None,
        start_ts: None,
        end_ts: None,
        parent_upid: None,
        uid: None,
        cmdline: None,
        arg_set_id: None,
        machine_id,
    }
}
