//! The events of a [`Tracer`]: switched on and off, made from probes and triggers, and filtered.

use super::super::event_selection::{KPROBE_GROUP, KRETPROBE_GROUP, SelectedEvent};
use super::super::event_set::EventSet;
use super::super::ftrace_request::{FtraceRequest, KprobeRequest};
use super::super::kprobe::{Kprobe, KprobeKind};
use super::{Failures, Switch, Tracer, TracerSource};

/// Longest filter that the kernel takes: a page, with its end.
const MAX_FILTER_BYTES: usize = 4095;
/// Calls of a function that return events may be waiting for.
const MAX_ACTIVE_CALLS: u32 = 1024;

/// Events that the system makes of others, with the command that makes them.
const SYNTHETIC_TRIGGERS: [(&str, &str, &str); 2] = [
    (
        "rss_stat_throttled",
        "events/kmem/rss_stat/trigger",
        "hist:keys=mm_id,member:bucket=size/0x80000:onchange($bucket).rss_stat_throttled(mm_id,curr,member,size)",
    ),
    (
        "suspend_resume_minimal",
        "events/power/suspend_resume/trigger",
        "hist:keys=start:size=128:onmatch(power.suspend_resume).trace(suspend_resume_minimal,start) \
         if action == 'syscore_resume'",
    ),
];

impl Tracer {
    /// Switches on an event, and adds it to `events`.
    pub(super) fn switch_on(
        &mut self,
        event: &SelectedEvent,
        request: &FtraceRequest,
        events: &mut EventSet,
        failures: &mut Failures,
    ) {
        let SelectedEvent { group, name, is_named } = event;
        let path = format!("{group}/{name}");
        let tracefs = &self.tracefs;
        let id = self.table.look_up(group, name, || tracefs.read(&format!("events/{path}/format")).ok());
        let Some(id) = id else {
            if *is_named {
                failures.unknown.push(path);
            }
            return;
        };
        if request.disables_generic_events && self.table.is_generic(id) {
            failures.failed.push(path);
            return;
        }
        // Events of the tracers have no switch.
        if group != "ftrace" && !self.switched_on.contains_key(&id) {
            let enable = format!("events/{path}/enable");
            if !self.tracefs.read(&enable).is_ok_and(|state| state.starts_with(b"1")) {
                self.add_trigger(group, name);
                let switched = match self.changes.switch_on(&enable) {
                    Ok(()) => Ok(Switch::Enable),
                    Err(_) => {
                        let command = format!("{group}:{name}\n");
                        let switched = self.changes.append("set_event", &command, &format!("!{command}"));
                        switched.map(|()| Switch::SetEvent)
                    }
                };
                match switched {
                    Ok(switch) => drop(self.switched_on.insert(id, switch)),
                    Err(error) => {
                        log::debug!("cannot switch on {path}: {error}");
                        failures.failed.push(path);
                        return;
                    }
                }
            }
        }
        events.insert(id);
    }

    pub(super) fn switch_off(&mut self, event: u16, switch: Switch) {
        let Some((group, name)) = self.table.name_of(event) else { return };
        match switch {
            Switch::Enable => {
                self.changes.undo(&format!("events/{group}/{name}/enable"));
            }
            Switch::SetEvent => self.changes.undo_command("set_event", &format!("!{group}:{name}\n")),
        }
        if let Some((trigger, undo)) = trigger_of(group, name) {
            self.changes.undo_command(trigger, &undo);
        }
    }

    /// Lets the kernel make a synthetic event.
    pub(super) fn add_trigger(&mut self, group: &str, name: &str) {
        let synthetic = SYNTHETIC_TRIGGERS.iter().find(|(event, ..)| group == "synthetic" && *event == name);
        let Some((_, file, command)) = synthetic else { return };
        let has_it =
            self.tracefs.read(file).is_ok_and(|triggers| triggers.windows(name.len()).any(|at| at == name.as_bytes()));
        if has_it {
            return;
        }
        if let Err(error) = self.changes.append(file, &format!("{command}\n"), &format!("!{command}\n")) {
            log::warn!("{error}");
        }
    }

    /// Makes the events of a kernel probe.
    pub(super) fn add_kprobe(
        &mut self,
        probe: &KprobeRequest,
        events: &mut EventSet,
        kprobes: &mut Vec<Kprobe>,
        failures: &mut Failures,
    ) {
        let name = &probe.name;
        let entry_kind = if probe.at_return { KprobeKind::Begin } else { KprobeKind::Instant };
        let return_kind = if probe.at_entry { KprobeKind::End } else { KprobeKind::Instant };
        let entry = (KPROBE_GROUP, format!("p:{KPROBE_GROUP}/{name} {name}\n"), entry_kind);
        let back = (KRETPROBE_GROUP, format!("r{MAX_ACTIVE_CALLS}:{KRETPROBE_GROUP}/{name} {name}\n"), return_kind);
        let parts = [probe.at_entry.then_some(entry), probe.at_return.then_some(back)];
        for (group, command, kind) in parts.into_iter().flatten() {
            let path = format!("{group}/{name}");
            // Another data source may have made it.
            if !self.tracefs.has(&format!("events/{path}")) {
                if let Err(error) = self.changes.append("kprobe_events", &command, &format!("-:{path}\n")) {
                    failures.notes.push(error.to_string());
                    failures.failed.push(path);
                    continue;
                }
                // The kernel gives ids of removed events to new ones.
                self.table.forget(group, name);
            }
            let event = SelectedEvent { group: group.to_owned(), name: name.clone(), is_named: true };
            let mut switched = EventSet::default();
            self.switch_on(&event, &FtraceRequest::default(), &mut switched, failures);
            kprobes.extend(switched.iter().map(|id| Kprobe { id, name: name.clone(), kind }));
            events.extend(&switched);
        }
    }

    /// Lets the kernel record only the system calls that a data source wants.
    pub(super) fn set_syscall_filter(&mut self, failures: &mut Failures) {
        let tracefs = &self.tracefs;
        for event in ["sys_enter", "sys_exit"] {
            let format = || tracefs.read(&format!("events/raw_syscalls/{event}/format")).ok();
            let wants = |source: &&TracerSource, id: u16| source.events.contains(id);
            let is_used = self.sources.values().any(|source| source.syscalls.is_some());
            let file = format!("events/raw_syscalls/{event}/filter");
            if !is_used && !self.changes.has(&file) {
                continue;
            }
            let Some(id) = self.table.look_up("raw_syscalls", event, format) else { continue };
            let users: Vec<_> = self.sources.values().filter(|source| wants(source, id)).collect();
            let mut numbers: Vec<u16> =
                users.iter().flat_map(|source| source.syscalls.iter().flatten().copied()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            let terms: Vec<_> = numbers.iter().map(|number| format!("id == {number}")).collect();
            let filter = terms.join(" || ");
            if numbers.is_empty()
                || users.iter().any(|source| source.syscalls.is_none())
                || filter.len() > MAX_FILTER_BYTES
            {
                // All of them; encoders filter too.
                self.changes.undo(&file);
                continue;
            }
            let is_ours = self.changes.has(&file);
            if !is_ours && self.tracefs.read_line(&file).is_ok_and(|filter| !matches!(filter.as_str(), "none" | "")) {
                failures.notes.push(format!(
                    "{} is a filter of another program: system calls that it leaves out are missing",
                    self.tracefs.path(&file).display()
                ));
                continue;
            }
            if let Err(error) = self.changes.set(&file, &filter, "0") {
                failures.notes.push(error.to_string());
            }
        }
    }
}

/// Returns file and command that remove the trigger of a synthetic event.
fn trigger_of(group: &str, name: &str) -> Option<(&'static str, String)> {
    let synthetic = SYNTHETIC_TRIGGERS.iter().find(|(event, ..)| group == "synthetic" && *event == name);
    synthetic.map(|(_, file, command)| (*file, format!("!{command}\n")))
}
