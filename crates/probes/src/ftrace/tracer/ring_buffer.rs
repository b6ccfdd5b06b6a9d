//! The ring buffer of a [`Tracer`]: its clock, its size, its watermark, and its content.

use super::super::ftrace_request::FtraceRequest;
use super::super::tracefs;
use super::{Failures, Machine, TraceClock, Tracer, buffer_kb, page_kb};

/// Buffers of a CPU on machines with much and with little memory.
const LARGE_BUFFER_KB: u32 = 8192;
const SMALL_BUFFER_KB: u32 = 2048;
/// Memory from which on a machine gets large buffers. It is less than 8 GiB, because firmware and
/// kernel take a part.
const MUCH_MEMORY_BYTES: u64 = 7 << 30;

impl Tracer {
    /// Sets the clock. Returns true if the kernel has cleared the buffers for it.
    pub(super) fn set_clock(&mut self, request: &FtraceRequest) -> bool {
        let Ok(line) = self.tracefs.read_line("trace_clock") else { return false };
        let mut current = "boot";
        let mut available = Vec::new();
        for word in line.split_ascii_whitespace() {
            let name = word.trim_matches(['[', ']']);
            if name.len() < word.len() {
                current = name;
            }
            available.push(name);
        }
        let raw = request.wants_monotonic_raw.then_some("mono_raw");
        let mut wishes = raw.into_iter().chain(["boot", "global", "local"]);
        let wish = wishes.find(|wish| available.contains(wish)).unwrap_or(current);
        let (mut clock, mut is_cleared) = (current, false);
        // Another clock clears the buffer.
        if wish != current && !self.preserves_buffer && !self.is_shared {
            match self.changes.set("trace_clock", wish, current) {
                Ok(()) => (clock, is_cleared) = (wish, true),
                Err(error) => log::warn!("{error}"),
            }
        }
        self.clock = match clock {
            "boot" => TraceClock::Boot,
            "global" => TraceClock::Other(2),
            "local" => TraceClock::Other(3),
            "mono_raw" => TraceClock::Other(4),
            _ => TraceClock::Other(1),
        };
        is_cleared
    }

    pub(super) fn set_buffer_size(&mut self, request: &FtraceRequest, machine: &Machine, failures: &mut Failures) {
        if self.preserves_buffer {
            self.requested_pages = self.pages_per_cpu();
            return;
        }
        let default_kb = if machine.memory_bytes >= MUCH_MEMORY_BYTES { LARGE_BUFFER_KB } else { SMALL_BUFFER_KB };
        let kb = match request.buffer_size_kb {
            Some(kb) if request.is_size_lower_bound => kb.max(default_kb),
            Some(kb) => kb,
            None => default_kb,
        };
        let page_kb = page_kb(&self.table);
        self.requested_pages = (kb / page_kb).max(1);
        let kb = self.requested_pages.saturating_mul(page_kb);
        let files = match buffer_kb(&self.tracefs, "buffer_size_kb") {
            Some(_) => vec!["buffer_size_kb".to_owned()],
            // The CPUs have different ones.
            None => self.tracefs.cpus().iter().map(|cpu| format!("per_cpu/cpu{cpu}/buffer_size_kb")).collect(),
        };
        for file in files {
            let original = buffer_kb(&self.tracefs, &file).unwrap_or(0);
            if original == kb || original > kb && self.is_shared {
                continue;
            }
            let Err(error) = self.changes.set(&file, &kb.to_string(), &original.to_string()) else { continue };
            // A buffer of the usual size loses less than the few KiB that the kernel begins with.
            // One that is larger already may be that of another program.
            let default = default_kb.min(kb);
            let is_grown =
                original < default && self.changes.set(&file, &default.to_string(), &original.to_string()).is_ok();
            let has = if is_grown { default } else { original };
            let reason = format!("{error}: the kernel's buffer of each CPU has {has} KiB instead");
            log::warn!("{reason}");
            failures.buffer_size.get_or_insert(reason);
        }
    }

    pub(super) fn set_buffer_percent(&mut self) {
        let active = self.sources.values().filter(|source| source.is_active);
        let percent = active.map(|source| source.drain_percent).filter(|percent| *percent != 0).min();
        let Some(percent) = percent else {
            self.changes.undo("buffer_percent");
            return;
        };
        // Kernels before 5.0 do not have it: then only time counts.
        let Ok(original) = self.tracefs.read_line("buffer_percent") else { return };
        if let Err(error) = self.changes.set("buffer_percent", &percent.to_string(), &original) {
            log::debug!("{error}");
        }
    }

    pub(super) fn switch_tracing(&mut self, state: &str) {
        let is_so = self.tracefs.read_line("tracing_on").is_ok_and(|now| now == state);
        if is_so {
            return;
        }
        if let Err(error) = self.changes.set("tracing_on", state, &self.tracing_on) {
            log::warn!("{error}");
        }
    }

    /// Clears the buffers of all CPUs. `are_online_cleared` tells that a new clock has cleared
    /// those of the CPUs that are online: either takes the kernel some 30 ms, in which it waits for
    /// all CPUs.
    pub(super) fn clear_trace(&self, machine: &Machine, are_online_cleared: bool) {
        if !are_online_cleared {
            if let Err(error) = self.tracefs.write("trace", "") {
                log::debug!("{error}");
            }
        }
        // The kernel clears only the buffers of CPUs that are online.
        let online = tracefs::read(&machine.online_cpus).unwrap_or_default();
        let Some(online) = parse_cpu_list(&online) else { return };
        for cpu in self.tracefs.cpus() {
            if !online.iter().any(|range| range.contains(&cpu)) {
                // It may be unknown to the kernel by now.
                let _ = self.tracefs.write(&format!("per_cpu/cpu{cpu}/trace"), "");
            }
        }
    }
}

/// Returns the numbers of a list such as `0-3,8`. `None` if it is none.
fn parse_cpu_list(list: &[u8]) -> Option<Vec<core::ops::RangeInclusive<u32>>> {
    let list = core::str::from_utf8(list).ok()?.trim();
    list.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect()
}
