//! [`ProcessTree`]: the processes and threads that the trace has, and the others' descriptions.

use esatto_schema::ProcessTreeWriter;

use super::cmdline::arguments;
use super::forked::Forked;
use super::options::Options;
use super::seen_threads::SeenThreads;
use super::slice::Slice;
use super::stat::{Origin, Times};
use super::status::Status;
use super::{MAX_STAT_BYTES, MAX_STATUS_BYTES};
use crate::data_source::Monotonic;
use crate::proc_folder::{FileBuffer, Numbers, ProcFolder};

/// Reads processes and threads that the trace does not have yet, and writes them.
pub(crate) struct ProcessTree {
    options: Options,
    ns_per_tick: u64,
    pub(crate) seen: SeenThreads,
    pub(super) forked: Forked,
    // The content that was read last: the files that a `Found` is about.
    process_status: FileBuffer,
    cmdline: FileBuffer,
    stat: FileBuffer,
    thread_status: FileBuffer,
    name: Vec<u8>,
}

/// A process or a thread, or both, to be written. Its files are in the buffers of the
/// [`ProcessTree`] until the next one is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    process: Option<i32>,
    thread: Option<FoundThread>,
}

#[derive(Clone, Copy, Debug)]
struct FoundThread {
    tid: i32,
    tgid: i32,
    has_status: bool,
}

/// All processes with their threads, read in slices.
pub(crate) struct FullScan {
    processes: Numbers,
    threads: Option<ThreadsOfProcess>,
}

struct ThreadsOfProcess {
    tgid: i32,
    /// True if their names or ids in namespaces are wanted.
    with_status: bool,
    tids: Numbers,
}

/// Longest command line that is written. The rest is left out.
const MAX_CMDLINE_BYTES: usize = 64 * 1024;

impl ProcessTree {
    /// `last_id` is the last id that the kernel gave, if that is known.
    pub(crate) fn new(options: Options, ns_per_tick: u64, last_id: Option<i32>) -> Self {
        Self {
            options,
            ns_per_tick,
            seen: SeenThreads::default(),
            forked: Forked::new(last_id, ns_per_tick),
            process_status: FileBuffer::new(MAX_STATUS_BYTES),
            cmdline: FileBuffer::new(MAX_CMDLINE_BYTES),
            stat: FileBuffer::new(MAX_STAT_BYTES),
            thread_status: FileBuffer::new(MAX_STATUS_BYTES),
            name: Vec::new(),
        }
    }

    /// Reads a process or thread by its id, and the process of the thread. Returns `None` if the
    /// trace has both, or the thread has ended.
    pub(crate) fn find(&mut self, proc: &ProcFolder, id: i32, slice: &mut Slice) -> Option<Found> {
        if id <= 0 || self.seen.contains(id) {
            return None;
        }
        slice.spend(1);
        let status = Status::parse(proc.read(id, b"status", &mut self.thread_status)?);
        let (tgid, tid) = (status.tgid, status.pid);
        if tgid <= 0 || tid <= 0 {
            return None;
        }
        let process = if tgid == tid {
            core::mem::swap(&mut self.process_status, &mut self.thread_status);
            Some(tgid)
        } else if self.seen.contains(tgid) {
            None
        } else {
            slice.spend(1);
            proc.read(tgid, b"status", &mut self.process_status).map(|_| tgid)
        };
        let process = process.filter(|&pid| self.complete_process(proc, pid, slice));
        let thread = (tgid != tid).then_some(FoundThread { tid, tgid, has_status: true });
        if thread.is_some() {
            self.seen.insert(tid);
        }
        (process.is_some() || thread.is_some()).then_some(Found { process, thread })
    }

    /// Reads the other files of the process whose status was read. Returns false if that is a
    /// thread's: the id was given to another one meanwhile.
    fn complete_process(&mut self, proc: &ProcFolder, pid: i32, slice: &mut Slice) -> bool {
        if Status::parse(self.process_status.bytes()).tgid != pid {
            return false;
        }
        self.cmdline.clear();
        self.stat.clear();
        let may_be_new = self.forked.may_be_new(pid);
        if self.options.age || may_be_new {
            slice.spend(1);
            let _ = proc.read(pid, b"stat", &mut self.stat);
        }
        if may_be_new && !self.reads_new_process(proc, pid, slice) {
            return false;
        }
        slice.spend(1);
        let _ = proc.read(pid, b"cmdline", &mut self.cmdline);
        if may_be_new && self.cmdline.bytes().is_empty() {
            // Its arguments come a moment after its program.
            let status = Status::parse(self.process_status.bytes());
            let origin = Origin::parse(self.stat.bytes()).filter(|origin| self.forked.is_young(origin));
            if origin.is_some() && status.is_kthread != Some(true) {
                self.forked.add(pid);
            }
        }
        self.seen.insert(pid);
        true
    }

    /// Notes a process that has not executed a program yet. If it has done so since its status was
    /// read, reads that again. Returns false if it is not there any more.
    fn reads_new_process(&mut self, proc: &ProcFolder, pid: i32, slice: &mut Slice) -> bool {
        let Some(origin) = Origin::parse(self.stat.bytes()) else { return true };
        if self.forked.is_forked(&origin) {
            self.forked.add(pid);
        } else if Status::parse(self.process_status.bytes()).name(&mut self.name) != origin.name {
            slice.spend(1);
            let status = proc.read(pid, b"status", &mut self.process_status).map(Status::parse);
            return status.is_some_and(|status| status.tgid == pid);
        }
        true
    }

    /// Returns the processes that have executed a program since they were described, to be
    /// described again. Without a time, all forked processes are looked at.
    pub(super) fn forget_executed(&mut self, now: Option<Monotonic>, proc: &ProcFolder) -> Vec<i32> {
        let executed = self.forked.take_executed(now, proc, &mut self.stat);
        executed.iter().for_each(|&pid| self.seen.remove(pid));
        executed
    }

    /// Writes what was found last.
    pub(crate) fn write(&mut self, found: Found, tree: &mut ProcessTreeWriter<'_>) {
        if let Some(pid) = found.process {
            self.write_process(pid, tree);
            if self.options.main_threads {
                let status = Status::parse(self.process_status.bytes());
                let main = FoundThread { tid: pid, tgid: pid, has_status: true };
                write_thread(main, &status, self.options.thread_names, &mut self.name, tree);
            }
        }
        if let Some(thread) = found.thread {
            let text = if thread.has_status { self.thread_status.bytes() } else { &[] };
            write_thread(thread, &Status::parse(text), self.options.thread_names, &mut self.name, tree);
        }
    }

    fn write_process(&mut self, pid: i32, tree: &mut ProcessTreeWriter<'_>) {
        let status = Status::parse(self.process_status.bytes());
        let mut process = tree.processes();
        process.pid(pid).ppid(status.ppid).uid(status.uid as i32);
        for id in status.nested_ids() {
            process.nspid(id);
        }
        let mut has_arguments = false;
        for argument in arguments(self.cmdline.bytes()) {
            process.cmdline(argument);
            has_arguments = true;
        }
        if !has_arguments {
            // Threads of the kernel, and processes that have ended.
            process.cmdline(status.name(&mut self.name)).cmdline_is_comm(true);
        }
        if let Some(times) = Times::parse(self.stat.bytes()).filter(|_| self.options.age) {
            process.process_start_from_boot(times.start.saturating_mul(self.ns_per_tick));
        }
        if let Some(is_kthread) = status.is_kthread {
            process.is_kthread(is_kthread);
        }
    }
}

impl FullScan {
    /// Begins a scan. Returns `None` if the folder cannot be read.
    pub(crate) fn begin(proc: &ProcFolder) -> Option<Self> {
        Some(Self { processes: proc.processes()?, threads: None })
    }

    /// Reads on until there is something to write. Returns `None` at the end of the slice or of the
    /// scan.
    pub(crate) fn find_next(&mut self, proc: &ProcFolder, tree: &mut ProcessTree, slice: &mut Slice) -> Option<Found> {
        while !slice.is_over() {
            if let Some(found) = self.next_thread(proc, tree, slice) {
                return Some(found);
            }
            if slice.is_over() {
                break;
            }
            let Some(id) = self.processes.next() else {
                slice.finish_scan();
                break;
            };
            if let Some(found) = self.next_process(id, proc, tree, slice) {
                return Some(found);
            }
        }
        None
    }

    fn next_thread(&mut self, proc: &ProcFolder, tree: &mut ProcessTree, slice: &mut Slice) -> Option<Found> {
        let threads = self.threads.as_mut()?;
        let tgid = threads.tgid;
        while !slice.is_over() {
            let Some(tid) = threads.tids.next() else {
                self.threads = None;
                break;
            };
            let Some(tid) = i32::try_from(tid).ok().filter(|&tid| tid != tgid && !tree.seen.contains(tid)) else {
                continue;
            };
            slice.spend(1);
            if threads.with_status {
                let status = proc.read(tid, b"status", &mut tree.thread_status).map(Status::parse);
                if status.is_none_or(|status| status.tgid != tgid) {
                    continue;
                }
            }
            tree.seen.insert(tid);
            let thread = FoundThread { tid, tgid, has_status: threads.with_status };
            return Some(Found { process: None, thread: Some(thread) });
        }
        None
    }

    /// Reads a process, and prepares its threads.
    fn next_process(&mut self, id: u32, proc: &ProcFolder, tree: &mut ProcessTree, slice: &mut Slice) -> Option<Found> {
        let pid = i32::try_from(id).ok()?;
        slice.spend(1);
        let status = Status::parse(proc.read(pid, b"status", &mut tree.process_status)?);
        let is_namespaced = status.nested_ids().next().is_some();
        if status.threads != 1 {
            slice.spend(1);
            let with_status = tree.options.thread_names || is_namespaced;
            self.threads = proc.threads(pid).map(|tids| ThreadsOfProcess { tgid: pid, with_status, tids });
        }
        // An event of the kernel may have named it since the scan began.
        let is_new = !tree.seen.contains(pid) && tree.complete_process(proc, pid, slice);
        is_new.then_some(Found { process: Some(pid), thread: None })
    }
}

fn write_thread(
    thread: FoundThread,
    status: &Status<'_>,
    with_name: bool,
    scratch: &mut Vec<u8>,
    tree: &mut ProcessTreeWriter<'_>,
) {
    let mut message = tree.threads();
    message.tid(thread.tid).tgid(thread.tgid);
    for id in status.nested_ids() {
        message.nstid(id);
    }
    if with_name && thread.has_status {
        message.name(status.name(scratch));
    }
}
