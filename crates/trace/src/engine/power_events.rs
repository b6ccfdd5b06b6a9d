//! Kernel events about sleep: of the machine, of its devices, and about what keeps it awake.

use super::context::Context;
use super::kernel_event::{self as event, Event, Place};
use super::kernel_state::Suspend;
use super::lanes::{LaneGroup, LaneUse};
use super::slices::{Begin, PENDING};
use super::tracks::Dimension;
use crate::string_table::Symbol;
use crate::tables::ArgValue;

/// State of a device that is suspended, which is the pause between two slices.
const SUSPENDED: i64 = 2;

impl Context {
    /// Imports an event about sleep. Returns false if it is none.
    pub(super) fn import_suspend_event(&mut self, place: Place, id: u32, event: Event<'_>) -> bool {
        match id {
            event::SUSPEND_RESUME => self.suspend(place, event),
            event::SUSPEND_RESUME_MINIMAL => {
                let names = ("suspend_resume_minimal", Some("Suspend/Resume Minimal"));
                let track = self.kernel_track(place.machine, names, &[], false);
                if event.small(1) == 0 {
                    self.end_kernel_slice(place.ts, track, None, None, &[]);
                } else {
                    self.add_kernel_slice(place.ts, track, PENDING, None, "Suspended", &mut Vec::new());
                }
            }
            event::DEVICE_PM_CALLBACK_START => {
                let (device, driver) = (event.text(1), event.text(2));
                let phase = callback_phase(&event.text(4), event.int(5));
                let name = self.symbol(&format!("{device} {driver}"));
                self.begin_suspend(
                    place,
                    name,
                    "Device PM Suspend Event",
                    [Some(&device), Some(&driver), Some(&phase)],
                );
            }
            event::DEVICE_PM_CALLBACK_END => {
                let name = self.symbol(&format!("{} {}", event.text(1), event.text(2)));
                self.end_suspend(place, name);
            }
            event::WAKEUP_SOURCE_ACTIVATE | event::WAKEUP_SOURCE_DEACTIVATE => {
                self.wakeup_source(place, &event.text(1), id == event::WAKEUP_SOURCE_ACTIVATE);
            }
            event::RPM_STATUS => {
                let device = event.text(1);
                let dimensions = [Dimension::Text("linux_device", &device)];
                // The trace processor takes it for a track of a counter.
                let track = self.kernel_track(place.machine, ("linux_rpm", None), &dimensions, true);
                if self.power.devices.remove(&track) {
                    self.end_kernel_slice(place.ts, track, None, None, &[]);
                }
                let name = match event.int(2) {
                    SUSPENDED => return true,
                    0 => "Active",
                    1 => "Resuming",
                    3 => "Suspending",
                    _ => "Invalid State",
                };
                self.add_kernel_slice(place.ts, track, PENDING, None, name, &mut Vec::new());
                self.power.devices.insert(track);
            }
            _ => return false,
        }
        true
    }

    fn suspend_lanes(&mut self, machine: u32) -> LaneGroup {
        let title = Some(self.symbol("Suspend/Resume Latency"));
        LaneGroup { kind: "suspend_resume", machine, title, ..LaneGroup::default() }
    }

    fn begin_suspend(&mut self, place: Place, name: Symbol, event_type: &str, texts: [Option<&str>; 3]) {
        let utid = self.processes.thread(&mut self.tables, place.machine, place.tid);
        let mut args = vec![
            self.row_arg("utid", utid),
            self.text_arg("event_type", event_type),
            self.arg("cpu", ArgValue::Uint(u64::from(place.cpu))),
        ];
        for (key, text) in ["device_name", "driver_name", "callback_phase"].into_iter().zip(texts) {
            let text = text.map(|text| self.symbol(text));
            args.push(self.arg(key, ArgValue::Text(text)));
        }
        let args = self.tables.args.add(&mut args);
        let key = self.suspend_lanes(place.machine);
        let ts = place.ts;
        let begin = |track| Begin { track, ts, dur: PENDING, category: None, name: Some(name), args };
        // Each name is a member of its own.
        self.begin_in_group(key, u64::from(name.number()), LaneUse::Begin, begin);
    }

    fn end_suspend(&mut self, place: Place, name: Symbol) {
        let key = self.suspend_lanes(place.machine);
        self.end_in_group(key, u64::from(name.number()), place.ts);
    }

    fn suspend(&mut self, place: Place, event: Event<'_>) {
        let action = event.text(1);
        let value = if action == "timekeeping_freeze" { 0 } else { event.int(2) };
        let name = self.symbol(&format!("{action}({value})"));
        let step = self.power.suspends.get(&place.machine).copied();
        if event.small(3) == 0 {
            self.end_suspend(place, name);
            match (&*action, step) {
                ("suspend_enter", _) => {
                    self.power.suspends.remove(&place.machine);
                }
                // A sleep that was given up has no end of its own.
                ("thaw_processes", Some(Suspend::Frozen(entered))) => {
                    self.end_suspend(place, entered);
                    self.power.suspends.remove(&place.machine);
                }
                _ => {}
            }
            return;
        }
        match (&*action, step) {
            ("suspend_enter", _) => {
                self.power.suspends.insert(place.machine, Suspend::Entered(name));
            }
            ("freeze_processes", Some(Suspend::Entered(entered))) => {
                self.power.suspends.insert(place.machine, Suspend::Frozen(entered));
            }
            _ => {}
        }
        self.begin_suspend(place, name, "Main Kernel Suspend Event", [None; 3]);
    }

    fn wakeup_source(&mut self, place: Place, source: &str, is_begin: bool) {
        /// Length of names that the trace processor makes here, without the zero at the end.
        const NAME_BYTES: usize = 31;
        let count = self.power.awake.entry((place.machine, source.to_owned())).or_default();
        let is_change = *count == u64::from(!is_begin);
        *count = if is_begin { count.saturating_add(1) } else { count.saturating_sub(1) };
        if !is_change {
            return;
        }
        let full = format!("Wakelock({source})");
        let name = String::from_utf8_lossy(&full.as_bytes()[..full.len().min(NAME_BYTES)]).into_owned();
        let dimensions = [Dimension::Text("wakelock_event", source)];
        let track = self.kernel_track(place.machine, ("wakesource_wakelock", Some(&name)), &dimensions, false);
        if is_begin {
            self.add_kernel_slice(place.ts, track, PENDING, None, &name, &mut Vec::new());
        } else {
            self.end_kernel_slice(place.ts, track, None, None, &[]);
        }
    }
}

/// Returns the phase of a callback of a device's power management.
fn callback_phase(operations: &str, event: i64) -> String {
    let event = match event {
        0x1 => "freeze",
        0x2 => "suspend",
        0x4 => "hibernate",
        0x8 => "quiesce",
        0x10 => "resume",
        0x20 => "thaw",
        0x40 => "restore",
        0x80 => "recover",
        _ => "(unknown PM event)",
    };
    let phase = match (operations, event) {
        ("", "suspend") => Some("prepare"),
        ("", "resume") => Some("complete"),
        _ => ["early", "late", "noirq"].into_iter().find(|phase| operations.starts_with(phase)),
    };
    phase.map_or_else(|| event.to_owned(), |phase| format!("{event}:{phase}"))
}
