//! Kernel events that are slices and instants.

use super::context::Context;
use super::kernel_event::{self as event, Event, Place};
use super::slices::{Begin, PENDING};
use super::tracks::Dimension;
use crate::string_table::Symbol;
use crate::tables::{Arg, ArgValue, Row};

const SOFTIRQS: [&str; 10] =
    ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "BLOCK_IOPOLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];
/// First version of Linux whose allocator of contiguous memory has an event at its end.
const CMA_WITH_END: (u32, u32) = (5, 10);
/// First version of Linux in which two events replace that one.
const CMA_WITH_TWO_ENDS: (u32, u32) = (6, 1);
/// I2C buses that are distinguished.
const I2C_BUSES: u32 = 256;

/// Kinds of tracks of processors, with the word of their names.
const IRQ: (&str, &str) = ("cpu_irq", "Irq Cpu");
const SOFTIRQ: (&str, &str) = ("cpu_softirq", "SoftIrq Cpu");
const HRTIMER: (&str, &str) = ("cpu_hrtimer", "Hrtimer Cpu");
const HOTPLUG: (&str, &str) = ("cpu_hotplug", "CPU Hotplug");
pub(super) const NAPI: (&str, &str) = ("cpu_napi_gro", "Napi Gro Cpu");

impl Context {
    /// Imports an event that begins or ends a slice, or is an instant. Returns false if it does
    /// not.
    pub(super) fn import_kernel_slice(&mut self, place: Place, id: u32, event: Event<'_>) -> bool {
        match id {
            event::IRQ_HANDLER_ENTRY => {
                let name = format!("IRQ ({})", event.text(2));
                self.begin_on_cpu(place, IRQ, "irq", &name, &mut Vec::new());
            }
            event::IRQ_HANDLER_EXIT => {
                let ret = if event.int(2) == 1 { "handled" } else { "unhandled" };
                let arg = self.text_arg("ret", ret);
                self.end_on_cpu(place, IRQ, Some("irq"), &[arg]);
            }
            event::LOCAL_TIMER_ENTRY => self.begin_on_cpu(place, IRQ, "irq", "IRQ (LocalTimer)", &mut Vec::new()),
            event::LOCAL_TIMER_EXIT => self.end_on_cpu(place, IRQ, Some("irq"), &[]),
            event::SOFTIRQ_ENTRY => match SOFTIRQS.get(event.small(1) as usize) {
                Some(name) => self.begin_on_cpu(place, SOFTIRQ, "irq", name, &mut Vec::new()),
                None => self.stats.count("ftrace_softirq_unknown"),
            },
            event::SOFTIRQ_EXIT => {
                let arg = self.arg("vec", ArgValue::Int(i64::from(event.small(1))));
                self.end_on_cpu(place, SOFTIRQ, Some("irq"), &[arg]);
            }
            event::HRTIMER_EXPIRE_ENTRY => {
                let name = self.function_name(place, event.uint(3));
                let name = self.tables.strings.owned(name);
                self.begin_on_cpu(place, HRTIMER, "hrtimer", &name, &mut Vec::new());
            }
            event::HRTIMER_EXPIRE_EXIT => self.end_on_cpu(place, HRTIMER, Some("hrtimer"), &[]),
            event::CPUHP_ENTER | event::CPUHP_MULTI_ENTER => {
                let idx = event.int(3);
                let mut args = vec![
                    self.arg("action_cpu", ArgValue::Uint(u64::from(place.cpu))),
                    self.arg("cpuhp_idx", ArgValue::Int(idx)),
                ];
                let place = Place { cpu: event.small(1), ..place };
                self.begin_on_cpu(place, HOTPLUG, "cpu", &format!("cpuhp({idx})"), &mut args);
            }
            event::CPUHP_EXIT => self.end_on_cpu(Place { cpu: event.small(1), ..place }, HOTPLUG, None, &[]),
            event::SIGNAL_GENERATE => self.signal(place, event.int(4), "signal_generate", event.int(6)),
            event::SIGNAL_DELIVER => self.signal(place, place.tid, "signal_deliver", event.int(3)),
            event::MARK_VICTIM => {
                let track = self.track_of_tid(place.machine, event.int(1));
                self.add_kernel_slice(place.ts, track, 0, None, "mem.oom_kill", &mut Vec::new());
            }
            event::WORKQUEUE_EXECUTE_START => {
                let name = self.function_name(place, event.uint(2));
                let track = self.track_of_tid(place.machine, place.tid);
                let category = Some(self.symbol("workqueue"));
                let mut args = vec![self.arg("cpu", ArgValue::Int(i64::from(place.cpu)))];
                let args = self.tables.args.add(&mut args);
                let begin = Begin { track, ts: place.ts, dur: PENDING, category, name: Some(name), args };
                self.slices.begin(&mut self.tables, &mut self.stats, begin);
            }
            event::WORKQUEUE_EXECUTE_END => {
                let track = self.track_of_tid(place.machine, place.tid);
                self.end_kernel_slice(place.ts, track, Some("workqueue"), None, &[]);
            }
            event::MM_VMSCAN_DIRECT_RECLAIM_BEGIN => {
                let mut args = vec![
                    self.arg("direct_reclaim_order", ArgValue::Int(event.int(1))),
                    self.arg("direct_reclaim_may_writepage", ArgValue::Int(event.int(2))),
                    self.arg("direct_reclaim_gfp_flags", ArgValue::Uint(u64::from(event.small(3)))),
                ];
                self.begin_on_thread(place, "mm_vmscan_direct_reclaim", &mut args);
            }
            event::MM_VMSCAN_DIRECT_RECLAIM_END => {
                let arg = self.arg("direct_reclaim_nr_reclaimed", ArgValue::Uint(event.uint(1)));
                self.end_on_thread(place, None, &[arg]);
            }
            event::MM_SHRINK_SLAB_START => {
                let function = self.function_name(place, event.uint(8));
                let mut args = vec![
                    self.arg("shrink_name", ArgValue::Text(Some(function))),
                    self.arg("total_scan", ArgValue::Uint(event.uint(9))),
                    self.arg("priority", ArgValue::Int(event.int(11))),
                ];
                self.begin_on_thread(place, "mm_vmscan_shrink_slab", &mut args);
            }
            event::MM_SHRINK_SLAB_END => {
                let arg = self.arg("freed", ArgValue::Int(event.int(2)));
                self.end_on_thread(place, None, &[arg]);
            }
            event::FUNCGRAPH_ENTRY => {
                let (track, name) = (self.function_track(place), self.function_name(place, event.uint(2)));
                let begin = Begin { track, ts: place.ts, dur: PENDING, category: None, name: Some(name), args: None };
                self.slices.begin(&mut self.tables, &mut self.stats, begin);
            }
            event::FUNCGRAPH_EXIT => {
                let (track, name) = (self.function_track(place), self.function_name(place, event.uint(3)));
                self.slices.end(&mut self.tables, &mut self.stats, track, place.ts, Some(name), None);
            }
            event::KPROBE_EVENT => self.kprobe(place, event),
            event::BLOCK_IO_START => {
                let track = self.block_device(place, event);
                let mut args = vec![self.arg("sector", ArgValue::Uint(event.uint(2)))];
                self.add_kernel_slice(place.ts, track, PENDING, None, "block_io", &mut args);
            }
            event::BLOCK_IO_DONE => {
                let track = self.block_device(place, event);
                let arg = self.arg("sector", ArgValue::Uint(event.uint(2)));
                self.end_kernel_slice(place.ts, track, None, Some("block_io"), &[arg]);
            }
            event::I2C_READ | event::I2C_WRITE => self.i2c_message(place, event),
            event::I2C_RESULT => self.i2c_result(place, event),
            event::CMA_ALLOC_START
            | event::CMA_ALLOC_INFO
            | event::CMA_ALLOC_FINISH
            | event::MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO => self.contiguous_memory(place, id, event),
            _ => return false,
        }
        true
    }

    /// Returns the name of a function of the kernel, or else its address.
    fn function_name(&mut self, place: Place, address: u64) -> Symbol {
        match place.function {
            Some(name) => name,
            None if address == 0 => self.symbol("0"),
            None => self.symbol(&format!("{address:#x}")),
        }
    }

    /// Adds a slice or an instant.
    pub(super) fn add_kernel_slice(
        &mut self,
        ts: i64,
        track: Row,
        dur: i64,
        category: Option<&str>,
        name: &str,
        args: &mut Vec<Arg>,
    ) {
        let category = category.map(|category| self.symbol(category));
        let name = Some(self.symbol(name));
        let args = self.tables.args.add(args);
        self.slices.begin(&mut self.tables, &mut self.stats, Begin { track, ts, dur, category, name, args });
    }

    pub(super) fn end_kernel_slice(
        &mut self,
        ts: i64,
        track: Row,
        category: Option<&str>,
        name: Option<&str>,
        args: &[Arg],
    ) {
        let category = category.map(|category| self.symbol(category));
        let name = name.map(|name| self.symbol(name));
        if let Some(slice) = self.slices.end(&mut self.tables, &mut self.stats, track, ts, name, category) {
            self.extend_slice(slice, args);
        }
    }

    fn cpu_track(&mut self, place: Place, (kind, word): (&'static str, &str)) -> Row {
        let key = (kind, place.machine, place.cpu);
        if let Some(&track) = self.kernel_slices.cpu_tracks.get(&key) {
            return track;
        }
        self.list_cpu(place.machine, place.cpu);
        let name = format!("{word} {}", place.cpu);
        let track = self.kernel_track(place.machine, (kind, Some(&name)), &[Dimension::Cpu(place.cpu)], false);
        self.kernel_slices.cpu_tracks.insert(key, track);
        track
    }

    pub(super) fn begin_on_cpu(
        &mut self,
        place: Place,
        kind: (&'static str, &str),
        category: &str,
        name: &str,
        args: &mut Vec<Arg>,
    ) {
        let track = self.cpu_track(place, kind);
        self.add_kernel_slice(place.ts, track, PENDING, Some(category), name, args);
    }

    pub(super) fn end_on_cpu(
        &mut self,
        place: Place,
        kind: (&'static str, &str),
        category: Option<&str>,
        args: &[Arg],
    ) {
        let track = self.cpu_track(place, kind);
        self.end_kernel_slice(place.ts, track, category, None, args);
    }

    fn begin_on_thread(&mut self, place: Place, name: &str, args: &mut Vec<Arg>) {
        let track = self.track_of_tid(place.machine, place.tid);
        self.add_kernel_slice(place.ts, track, PENDING, None, name, args);
    }

    fn end_on_thread(&mut self, place: Place, name: Option<&str>, args: &[Arg]) {
        let track = self.track_of_tid(place.machine, place.tid);
        self.end_kernel_slice(place.ts, track, None, name, args);
    }

    fn signal(&mut self, place: Place, tid: i64, name: &str, number: i64) {
        let track = self.track_of_tid(place.machine, tid);
        let mut args = vec![self.arg("signal.sig", ArgValue::Int(number))];
        self.add_kernel_slice(place.ts, track, 0, None, name, &mut args);
    }

    /// Returns the track of the functions of a thread, or of a processor that is idle.
    fn function_track(&mut self, place: Place) -> Row {
        if place.tid == 0 {
            let name = format!("swapper{} -funcgraph", place.cpu);
            let dimensions = [Dimension::Cpu(place.cpu)];
            return self.kernel_track(place.machine, ("cpu_funcgraph", Some(&name)), &dimensions, false);
        }
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        let dimensions = [Dimension::Thread(utid)];
        self.kernel_track(place.machine, ("thread_funcgraph", Some("Funcgraph")), &dimensions, false)
    }

    fn kprobe(&mut self, place: Place, event: Event<'_>) {
        const BEGIN: i64 = 1;
        const END: i64 = 2;
        const INSTANT: i64 = 3;
        let name = event.text(1);
        let track = self.track_of_tid(place.machine, place.tid);
        match event.int(2) {
            BEGIN => self.add_kernel_slice(place.ts, track, PENDING, None, &name, &mut Vec::new()),
            END => self.end_kernel_slice(place.ts, track, None, Some(&name), &[]),
            INSTANT => self.add_kernel_slice(place.ts, track, 0, None, &name, &mut Vec::new()),
            _ => {}
        }
    }

    fn block_device(&mut self, place: Place, event: Event<'_>) -> Row {
        // The trace processor takes it for a track of a counter.
        let dimensions = [Dimension::Number("block_device", i64::from(event.small(1)))];
        self.kernel_track(place.machine, ("block_io", None), &dimensions, true)
    }

    fn i2c_message(&mut self, place: Place, event: Event<'_>) {
        let (bus, messages) = (event.small(1), event.small(2).saturating_add(1));
        if bus >= I2C_BUSES {
            return;
        }
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        if let Some((_, count)) = self.kernel_slices.i2c.get_mut(&utid) {
            *count = messages.max(*count);
            return;
        }
        self.kernel_slices.i2c.insert(utid, (bus, messages));
        self.begin_on_thread(place, &format!("i2c-{bus}"), &mut Vec::new());
    }

    fn i2c_result(&mut self, place: Place, event: Event<'_>) {
        let transfer = (event.small(1), event.small(2));
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        if self.kernel_slices.i2c.get(&utid) == Some(&transfer) {
            self.kernel_slices.i2c.remove(&utid);
            self.end_on_thread(place, Some(&format!("i2c-{}", transfer.0)), &[]);
        }
    }

    /// Imports an event of the allocator of contiguous memory. Its events depend on the kernel.
    fn contiguous_memory(&mut self, place: Place, id: u32, event: Event<'_>) {
        let version = self.kernel_versions.get(&place.machine).copied().unwrap_or_default();
        if version < CMA_WITH_END
            || ((id != event::CMA_ALLOC_INFO) && (id != event::CMA_ALLOC_START) && version < CMA_WITH_TWO_ENDS)
        {
            return;
        }
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        let (name, numbers) = match id {
            event::CMA_ALLOC_START => {
                self.kernel_slices.migrations.remove(&utid);
                return self.begin_on_thread(place, "mm_cma_alloc", &mut Vec::new());
            }
            event::MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO => {
                self.kernel_slices.migrations.insert(utid, [3, 4, 5].map(|id| event.uint(id)));
                return;
            }
            event::CMA_ALLOC_FINISH => {
                let [migrated, reclaimed, mapped] =
                    self.kernel_slices.migrations.get(&utid).copied().unwrap_or_default();
                let numbers = vec![
                    ("cma_pfn", event.uint(2)),
                    ("cma_req_pages", event.uint(4)),
                    ("cma_nr_migrated", migrated),
                    ("cma_nr_reclaimed", reclaimed),
                    ("cma_nr_mapped", mapped),
                ];
                (event.text(1), numbers)
            }
            _ if version >= CMA_WITH_TWO_ENDS => return,
            _ => {
                let numbers = [
                    ("cma_pfn", 10),
                    ("cma_req_pages", 2),
                    ("cma_nr_migrated", 8),
                    ("cma_nr_reclaimed", 9),
                    ("cma_nr_mapped", 7),
                    ("cma_nr_isolate_fail", 3),
                    ("cma_nr_migrate_fail", 4),
                    ("cma_nr_test_fail", 5),
                ];
                (event.text(6), numbers.map(|(key, id)| (key, event.uint(id))).to_vec())
            }
        };
        let mut args = vec![self.text_arg("cma_name", &name)];
        for (key, number) in numbers {
            args.push(self.arg(key, ArgValue::Uint(number)));
        }
        self.end_on_thread(place, None, &args);
    }
}
