//! Kernel events that are values of counters.

use super::context::Context;
use super::kernel_event::{self as event, Event, Place};
use super::kernel_state::{ThreadCounter, ThreadCounters};
use super::tracks::{Dimension, TrackSpec};
use crate::tables::Row;

/// Kinds of memory that `rss_stat` counts.
const RSS_MEMBERS: [&str; 5] = ["rss.file", "rss.anon", "swap", "rss.shmem", "unreclaimable"];
/// Kinds of `mm_event_record`.
const MM_EVENTS: [&str; 7] = ["min_flt", "maj_flt", "read_io", "compaction", "reclaim", "swp_flt", "kern_alloc"];

impl Context {
    /// Imports an event that is a value of a counter. Returns false if it is none.
    pub(super) fn import_kernel_counter(&mut self, place: Place, id: u32, event: Event<'_>) -> bool {
        let Place { ts, machine, .. } = place;
        match id {
            event::CPU_FREQUENCY => {
                let cpu = event.small(2);
                self.list_cpu(machine, cpu);
                self.cpu_counter(machine, "cpu_frequency", "cpufreq", cpu, ts, f64::from(event.small(1)));
            }
            event::CPU_IDLE => {
                let cpu = event.small(2);
                self.list_cpu(machine, cpu);
                self.cpu_counter(machine, "cpu_idle", "cpuidle", cpu, ts, f64::from(event.small(1)));
            }
            event::CPU_FREQUENCY_LIMITS => {
                let cpu = event.small(3);
                self.list_cpu(machine, cpu);
                for (kind, word, id) in [("cpu_max_frequency_limit", "Max", 2), ("cpu_min_frequency_limit", "Min", 1)] {
                    let name = format!("Cpu {cpu} {word} Freq Limit");
                    self.cpu_counter(machine, kind, &name, cpu, ts, f64::from(event.small(id)));
                }
            }
            event::SCHED_CPU_UTIL_CFS => {
                let cpu = event.small(4);
                for (kind, word, id) in
                    [("cpu_utilization", "Util", 6), ("cpu_capacity", "Cap", 2), ("cpu_nr_running", "Nr Running", 11)]
                {
                    self.cpu_counter(machine, kind, &format!("Cpu {cpu} {word}"), cpu, ts, event.uint(id) as f64);
                }
            }
            event::CLOCK_SET_RATE => self.clock_frequency(machine, &event.text(1), ts, event.uint(2) as f64),
            event::CLOCK_ENABLE | event::CLOCK_DISABLE => {
                let clock = event.text(1);
                let dimensions = [Dimension::Text("linux_device", &clock)];
                let name = format!("{clock} State");
                self.kernel_counter(place, ("clock_state", &name), &dimensions, event.uint(2) as f64);
            }
            event::GPU_FREQUENCY => {
                let name = Some(self.symbol("gpufreq"));
                let machine = self.processes.machine_row(machine);
                let dimensions = [Dimension::Number("gpu", i64::from(event.small(1)))];
                let unit = Some("MHz");
                let spec = TrackSpec { machine, unit, ..TrackSpec::counter("gpu_frequency", name, &dimensions) };
                let (track, _) = self.tracks.intern(&mut self.tables, &spec);
                self.add_counter(track, ts, f64::from(event.small(2)));
            }
            event::GPU_MEM_TOTAL => self.gpu_memory(place, event),
            event::THERMAL_TEMPERATURE => {
                let zone = event.text(4);
                let name = format!("{zone} Temperature");
                let dimensions = [Dimension::Text("thermal_zone", &zone)];
                self.kernel_counter(place, ("thermal_temperature", &name), &dimensions, event.int(2) as f64);
            }
            event::CDEV_UPDATE => {
                let device = event.text(2);
                let name = format!("{device} Cooling Device");
                let dimensions = [Dimension::Text("linux_device", &device)];
                self.kernel_counter(place, ("cooling_device_counter", &name), &dimensions, event.uint(1) as f64);
            }
            event::DEVFREQ_FREQUENCY => {
                let device = event.text(1);
                let name = match device.find("devfreq_") {
                    Some(at) => device[at..].to_owned(),
                    None => format!("devfreq_{device}"),
                };
                let dimensions = [Dimension::Text("linux_device", &device)];
                self.kernel_counter(place, ("linux_device_frequency", &name), &dimensions, event.uint(2) as f64);
            }
            event::RSS_STAT => {
                let memory = event.field(3).zip(event.field(4)).map(|(own, id)| (own.as_bool(), id.as_u64()));
                self.rss_stat(place, event.int(1), event.int(2), memory);
            }
            event::RSS_STAT_THROTTLED => {
                let memory = Some((event.small(1) != 0, event.uint(3)));
                self.rss_stat(place, event.int(2), event.int(4), memory);
            }
            event::DMABUF_RSS_STAT => {
                let utid = self.processes.thread(&mut self.tables, machine, place.tid);
                self.add_thread_counter(ts, utid, ThreadCounter::Memory("dmabuf_rss"), event.uint(1) as f64);
            }
            event::OOM_SCORE_ADJ_UPDATE => {
                let utid = self.processes.thread(&mut self.tables, machine, event.int(3));
                // Some tracers write negative values wrongly: only the lower 16 bits are right.
                #[allow(clippy::cast_possible_truncation, reason = "the lower bits")]
                let score = event.int(2) as i16;
                self.add_thread_counter(ts, utid, ThreadCounter::OomScoreAdj, f64::from(score));
            }
            event::MM_EVENT_RECORD => {
                let utid = self.processes.thread(&mut self.tables, machine, place.tid);
                let Some(&kind) = MM_EVENTS.get(event.small(4) as usize) else {
                    self.stats.count("mm_unknown_type");
                    return true;
                };
                for (metric, id) in [("count", 2), ("max_lat", 3), ("avg_lat", 1)] {
                    let counter = ThreadCounter::MmEvent(kind, metric);
                    self.add_thread_counter(ts, utid, counter, f64::from(event.small(id)));
                }
            }
            _ => return false,
        }
        true
    }

    pub(super) fn kernel_counter(
        &mut self,
        place: Place,
        (kind, name): (&'static str, &str),
        dimensions: &[Dimension<'_>],
        value: f64,
    ) -> Row {
        let track = self.kernel_track(place.machine, (kind, Some(name)), dimensions, true);
        self.add_counter(track, place.ts, value)
    }

    pub(crate) fn cpu_counter(&mut self, machine: u32, kind: &'static str, name: &str, cpu: u32, ts: i64, value: f64) {
        let track = self.kernel_track(machine, (kind, Some(name)), &[Dimension::Cpu(cpu)], true);
        self.add_counter(track, ts, value);
    }

    pub(crate) fn clock_frequency(&mut self, machine: u32, device: &str, ts: i64, value: f64) {
        let name = format!("{device} Frequency");
        let dimensions = [Dimension::Text("linux_device", device)];
        let track = self.kernel_track(machine, ("clock_frequency", Some(&name)), &dimensions, true);
        self.add_counter(track, ts, value);
    }

    fn gpu_memory(&mut self, place: Place, event: Event<'_>) {
        let pid = i64::from(event.small(2));
        let name = Some(self.symbol("GPU Memory"));
        let machine = self.processes.machine_row(place.machine);
        let unit = Some("bytes");
        let mut spec = TrackSpec { machine, unit, ..TrackSpec::counter("gpu_memory", name, &[]) };
        let dimensions;
        if pid != 0 {
            // The kernel may report a process that has ended.
            if self.processes.known_thread(&self.tables, place.machine, pid).is_none() {
                return;
            }
            let utid = self.processes.thread_of(&mut self.tables, place.machine, pid, pid);
            let Some(upid) = self.tables.thread.upid[utid.index()] else { return };
            dimensions = [Dimension::Process(upid)];
            (spec.kind, spec.dimensions) = ("process_gpu_memory", &dimensions);
        }
        let (track, _) = self.tracks.intern(&mut self.tables, &spec);
        self.add_counter(track, place.ts, event.uint(3) as f64);
    }

    /// Imports the size of a kind of memory of a process. `memory` says whether that is the process
    /// of the thread that ran, and identifies the memory.
    fn rss_stat(&mut self, place: Place, member: i64, size: i64, memory: Option<(bool, u64)>) {
        let member = usize::try_from(member).ok().and_then(|member| RSS_MEMBERS.get(member).copied());
        if size < 0 {
            self.stats.count("rss_stat_negative_size");
            return;
        }
        let utid = match memory {
            None => Some(self.processes.thread(&mut self.tables, place.machine, place.tid)),
            Some((is_own, id)) => self.thread_of_memory(place, is_own, id),
        };
        match utid {
            Some(utid) => {
                let counter = ThreadCounter::Memory(member.unwrap_or("unknown"));
                self.add_thread_counter(place.ts, utid, counter, size as f64);
            }
            None => self.stats.count("rss_stat_unknown_thread_for_mm_id"),
        }
    }

    fn thread_of_memory(&mut self, place: Place, is_own: bool, id: u64) -> Option<Row> {
        let key = (place.machine, id);
        if is_own {
            let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
            self.thread_counters.memories.insert(key, utid);
            return Some(utid);
        }
        let owner = *self.thread_counters.memories.get(&key)?;
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        // The thread that ran gets other memory at the moment, or the owner has ended.
        if owner == utid || !self.processes.is_alive(&self.tables, owner) {
            self.thread_counters.memories.remove(&key);
            return None;
        }
        Some(owner)
    }

    fn add_thread_counter(&mut self, ts: i64, utid: Row, counter: ThreadCounter, value: f64) {
        let counters = &mut self.thread_counters;
        let key = (self.tracks.file, utid, counter);
        let number = *counters.index.entry(key).or_insert_with(|| {
            counters.keys.push(key);
            // Each has a row of the table of threads, so the number fits.
            u32::try_from(counters.keys.len() - 1).unwrap_or(u32::MAX)
        });
        // `finish_thread_counters` sets the track.
        let row = self.add_counter(Row::new(0), ts, value);
        self.thread_counters.values.push((row, number));
    }

    /// Sets the tracks of the counters of which only a thread was known.
    pub(super) fn finish_thread_counters(&mut self) {
        let ThreadCounters { keys, values, .. } = core::mem::take(&mut self.thread_counters);
        let track = |(file, utid, counter)| {
            self.tracks.file = file;
            self.thread_counter_track(utid, counter)
        };
        let tracks: Vec<Row> = keys.into_iter().map(track).collect();
        for (row, number) in values {
            if let Some(track) = tracks.get(number as usize) {
                self.tables.counter.track_id[row.index()] = *track;
            }
        }
    }

    fn thread_counter_track(&mut self, utid: Row, counter: ThreadCounter) -> Row {
        let owner = match self.tables.thread.upid[utid.index()] {
            Some(upid) => Dimension::Process(upid),
            None => Dimension::Thread(utid),
        };
        let machine = self.tables.thread.machine_id[utid.index()];
        let is_process = matches!(owner, Dimension::Process(_));
        let (kinds, name, further) = match counter {
            ThreadCounter::Memory(key) => {
                let further = vec![Dimension::Text("process_memory_key", key)];
                (["process_memory", "process_memory_thread_fallback"], format!("mem.{key}"), further)
            }
            ThreadCounter::MmEvent(kind, metric) => {
                let further = vec![Dimension::Text("mm_event_type", kind), Dimension::Text("mm_event_metric", metric)];
                (["mm_event", "mm_event_thread_fallback"], format!("mem.mm.{kind}.{metric}"), further)
            }
            ThreadCounter::OomScoreAdj => {
                (["oom_score_adj", "oom_score_adj_thread_fallback"], "oom_score_adj".to_owned(), Vec::new())
            }
        };
        let dimensions: Vec<Dimension<'_>> = [owner].into_iter().chain(further).collect();
        let name = Some(self.symbol(&name));
        let kind = kinds[usize::from(!is_process)];
        let spec = TrackSpec { machine, ..TrackSpec::counter(kind, name, &dimensions) };
        self.tracks.intern(&mut self.tables, &spec).0
    }
}
