//! Import of the process tree, and of statistics of processes.

use esatto_protozero::Fields;
use esatto_schema::{process_stats, process_tree};

use super::context::Context;
use super::processes::NameSource;
use super::tracks::{Dimension, TrackSpec};
use crate::tables::{ArgValue, FileDescriptorRow, Row};

/// The process that starts the kernel's own threads.
const KTHREADD: i64 = 2;
const BYTES_OF_KILOBYTE: f64 = 1024.0;

/// Kinds of counters of processes: the type of their tracks, the dimension that tells them apart,
/// and the beginning of their names.
const MEMORY: Kind = Kind("process_memory", "process_memory_key", "mem.");
const SMAPS: Kind = Kind("smaps", "smaps_key", "mem.smaps.");
const RUNTIME: Kind = Kind("proc_stat_runtime", "proc_stat_runtime_key", "runtime.");
const CHROME: Kind = Kind("chrome_process_stats", "key", "chrome.");

struct Kind(&'static str, &'static str, &'static str);

/// Returns the counter of a field of `ProcessStats.Process`: its kind, its key, and the factor of
/// its values.
fn counter_of(id: u32) -> Option<(Kind, &'static str, f64)> {
    use process_stats::process::field;
    let (kind, key) = match id {
        field::VM_SIZE_KB => (MEMORY, "virt"),
        field::VM_RSS_KB => (MEMORY, "rss"),
        field::RSS_ANON_KB => (MEMORY, "rss.anon"),
        field::RSS_FILE_KB => (MEMORY, "rss.file"),
        field::RSS_SHMEM_KB => (MEMORY, "rss.shmem"),
        field::VM_SWAP_KB => (MEMORY, "swap"),
        field::VM_LOCKED_KB => (MEMORY, "locked"),
        field::VM_HWM_KB => (MEMORY, "rss.watermark"),
        field::DMABUF_RSS_KB => (MEMORY, "dmabuf_rss"),
        field::SMR_RSS_KB => (SMAPS, "rss"),
        field::SMR_PSS_KB => (SMAPS, "pss"),
        field::SMR_PSS_ANON_KB => (SMAPS, "pss.anon"),
        field::SMR_PSS_FILE_KB => (SMAPS, "pss.file"),
        // The trace processor writes it so.
        field::SMR_PSS_SHMEM_KB => (SMAPS, "pss.smem"),
        field::SMR_SWAP_PSS_KB => (SMAPS, "swap.pss"),
        field::CHROME_PRIVATE_FOOTPRINT_KB => (CHROME, "private_footprint_kb"),
        field::CHROME_PEAK_RESIDENT_SET_KB => (CHROME, "peak_resident_set_kb"),
        field::RUNTIME_USER_MODE => return Some((RUNTIME, "user_ns", 1.0)),
        field::RUNTIME_KERNEL_MODE => return Some((RUNTIME, "kernel_ns", 1.0)),
        _ => return None,
    };
    Some((kind, key, BYTES_OF_KILOBYTE))
}

impl Context {
    /// Imports a `ProcessTree`.
    pub(crate) fn import_process_tree(&mut self, machine: u32, bytes: &[u8]) {
        use process_tree::{field, thread::field as thread_field};
        for f in Fields::new(bytes) {
            match f.id {
                field::PROCESSES => self.import_process(machine, f.as_bytes()),
                field::THREADS => {
                    let (mut tid, mut pid, mut name, mut ids) = (None, None, None, Vec::new());
                    for f in Fields::new(f.as_bytes()) {
                        match f.id {
                            thread_field::TID => tid = Some(i64::from(f.as_i32())),
                            thread_field::TGID => pid = Some(i64::from(f.as_i32())),
                            thread_field::NAME => name = Some(self.tables.strings.add(f.as_bytes())),
                            thread_field::NSTID => ids.push(i64::from(f.as_i32())),
                            _ => {}
                        }
                    }
                    let (Some(tid), Some(pid)) = (tid, pid) else { continue };
                    let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
                    if let Some(name) = name {
                        self.processes.name_thread(&mut self.tables, utid, name, NameSource::ProcessTree);
                    }
                    if !ids.is_empty() && !self.processes.namespaces.add_thread((machine, pid), tid, &ids) {
                        self.stats.count("namespaced_thread_missing_process");
                    }
                }
                _ => {}
            }
        }
    }

    fn import_process(&mut self, machine: u32, bytes: &[u8]) {
        use process_tree::process::field;
        let (mut pid, mut parent, mut uid, mut start, mut is_kthread) = (None, 0, None, None, None);
        let (mut cmdline, mut ids): (Vec<&[u8]>, Vec<i64>) = (Vec::new(), Vec::new());
        for f in Fields::new(bytes) {
            match f.id {
                field::PID => pid = Some(i64::from(f.as_i32())),
                field::PPID => parent = i64::from(f.as_i32()),
                field::UID => uid = u32::try_from(f.as_i32()).ok(),
                field::CMDLINE => cmdline.push(f.as_bytes()),
                field::PROCESS_START_FROM_BOOT => start = i64::try_from(f.as_u64()).ok(),
                field::NSPID => ids.push(i64::from(f.as_i32())),
                field::IS_KTHREAD => is_kthread = Some(f.as_bool()),
                _ => {}
            }
        }
        let (Some(pid), Some(&first)) = (pid, cmdline.first()) else { return };
        if let Some(&own) = ids.last() {
            self.processes.namespaces.add_process((machine, pid), own, ids.len() - 1);
        }
        let mut first = first;
        let mut line = cmdline.join(&b' ');
        if parent == KTHREADD && first.starts_with(b"kworker/") {
            // The rest tells what the thread does at the moment.
            if let Some(end) = first.iter().position(|byte| matches!(byte, b'-' | b'+')) {
                first = &first[..end];
                line = first.to_vec();
            }
        }
        if cmdline.len() == 1 {
            // The program has set its title, which is one text.
            let end = first.iter().position(|byte| *byte == b' ');
            first = &first[..end.unwrap_or(first.len())];
        }
        let name = self.tables.strings.add(first);
        let line = self.tables.strings.add(&line);
        let parent = self.processes.process(&mut self.tables, machine, parent);
        let mut upid = self.processes.process(&mut self.tables, machine, pid);
        if self.tables.process.parent_upid[upid.index()].is_some_and(|known| known != parent) {
            // The trace processor takes a process with another parent for another process.
            upid = self.processes.start_process(&mut self.tables, machine, pid, None, None, None);
        }
        let words = cmdline.iter().map(|word| self.tables.strings.add(word)).collect();
        self.processes.cmdlines.insert(upid, words);
        let table = &mut self.tables.process;
        let index = upid.index();
        table.parent_upid[index] = Some(parent);
        table.name[index] = Some(name);
        table.cmdline[index] = Some(line);
        table.uid[index] = uid.or(table.uid[index]);
        table.start_ts[index] = table.start_ts[index].or(start);
        if let Some(is_kthread) = is_kthread {
            let arg = self.arg("is_kthread", ArgValue::Bool(is_kthread));
            self.processes.add_arguments(upid, [arg]);
        }
    }

    /// Imports the descriptor of a thread or of a process that is no track.
    pub(crate) fn import_old_descriptor(&mut self, machine: u32, id: u32, bytes: &[u8]) {
        use esatto_schema::{process_descriptor, thread_descriptor, trace_packet::field as packet_field};
        let find = |id: u32| Fields::new(bytes).filter(|f| f.id == id).last();
        if id == packet_field::THREAD_DESCRIPTOR {
            use thread_descriptor::field;
            let (Some(pid), Some(tid)) = (find(field::PID), find(field::TID)) else { return };
            let (pid, tid) = (i64::from(pid.as_i32()), tid.as_i64());
            let utid = self.processes.thread_of(&mut self.tables, machine, tid, pid);
            if let Some(name) = find(field::THREAD_NAME) {
                let name = self.tables.strings.add(name.as_bytes());
                self.processes.name_thread(&mut self.tables, utid, name, NameSource::Descriptor);
            }
        } else {
            use process_descriptor::field;
            let Some(pid) = find(field::PID) else { return };
            let upid = self.processes.process(&mut self.tables, machine, i64::from(pid.as_i32()));
            if let Some(name) = find(field::PROCESS_NAME) {
                let name = self.tables.strings.add(name.as_bytes());
                let known = &mut self.tables.process.name[upid.index()];
                *known = known.or(Some(name));
            }
        }
    }

    /// Imports a `ProcessStats`.
    pub(crate) fn import_process_stats(&mut self, ts: i64, machine: u32, bytes: &[u8]) {
        use process_stats::process::field;
        for process in Fields::new(bytes).filter(|f| f.id == process_stats::field::PROCESSES) {
            let bytes = process.as_bytes();
            let pid = Fields::new(bytes).find(|f| f.id == field::PID);
            let pid = pid.map_or(0, |pid| i64::from(pid.as_i32()));
            for f in Fields::new(bytes) {
                match f.id {
                    field::PID => {}
                    field::THREADS => {
                        let tid =
                            Fields::new(f.as_bytes()).filter(|f| f.id == process_stats::thread::field::TID).last();
                        let tid = tid.map_or(0, |tid| i64::from(tid.as_i32()));
                        self.processes.thread_of(&mut self.tables, machine, tid, pid);
                    }
                    field::FDS => self.import_file_descriptor(ts, machine, pid, f.as_bytes()),
                    field::IS_PEAK_RSS_RESETTABLE => {
                        let upid = self.processes.process(&mut self.tables, machine, pid);
                        let arg = self.arg("is_peak_rss_resettable", ArgValue::Bool(f.as_bool()));
                        self.processes.add_arguments(upid, [arg]);
                    }
                    id => {
                        let upid = self.processes.process(&mut self.tables, machine, pid);
                        if let Some((track, factor)) = self.process_counter(machine, upid, id) {
                            self.add_counter(track, ts, f.as_i64() as f64 * factor);
                        }
                    }
                }
            }
        }
    }

    fn import_file_descriptor(&mut self, ts: i64, machine: u32, pid: i64, bytes: &[u8]) {
        use process_stats::fd_info::field;
        let find = |id: u32| Fields::new(bytes).filter(|f| f.id == id).last();
        let upid = self.processes.process(&mut self.tables, machine, pid);
        let fd = find(field::FD).map_or(0, |fd| fd.as_i64());
        let path = Some(self.tables.strings.add(find(field::PATH).map_or(&[][..], |path| path.as_bytes())));
        self.tables.filedescriptor.push(FileDescriptorRow { ts, upid, fd, path });
    }

    /// Returns the track of a counter of a process, and the factor of its values.
    fn process_counter(&mut self, machine: u32, upid: Row, id: u32) -> Option<(Row, f64)> {
        if let Some(&known) = self.counters.of_process.get(&(upid, id)) {
            return Some(known);
        }
        let machine = self.processes.machine_row(machine);
        let (track, factor) = match counter_of(id) {
            Some((Kind(kind, dimension, prefix), key, factor)) => {
                let name = Some(self.symbol(&format!("{prefix}{key}")));
                let dimensions = [Dimension::Process(upid), Dimension::Text(dimension, key)];
                let spec = TrackSpec { machine, ..TrackSpec::counter(kind, name, &dimensions) };
                (self.tracks.intern(&mut self.tables, &spec).0, factor)
            }
            None if id == process_stats::process::field::OOM_SCORE_ADJ => {
                let name = Some(self.symbol("oom_score_adj"));
                let dimensions = [Dimension::Process(upid)];
                let spec = TrackSpec { machine, ..TrackSpec::counter("oom_score_adj", name, &dimensions) };
                (self.tracks.intern(&mut self.tables, &spec).0, 1.0)
            }
            None => {
                self.stats.count("proc_stat_unknown_counters");
                return None;
            }
        };
        self.counters.of_process.insert((upid, id), (track, factor));
        Some((track, factor))
    }
}
