//! Names of kernel events and of their fields, which are looked up once.

use hashbrown::HashMap;

use crate::string_table::{Strings, Symbol};

/// Names in events of the scheduler.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchedulerNames {
    pub(super) sched_switch: Symbol,
    /// Names of the arguments of a switch.
    pub(super) of_switch: [Symbol; 7],
    pub(super) sched_waking: Symbol,
    /// Names of the arguments of a wake-up.
    pub(super) of_waking: [Symbol; 4],
}

/// Names of kernel events, as far as they were needed.
#[derive(Debug, Default)]
pub(crate) struct KernelNames {
    scheduler: Option<SchedulerNames>,
    events: HashMap<u32, Symbol>,
    fields: HashMap<(u32, u32), Symbol>,
}

impl KernelNames {
    pub(super) fn scheduler(&mut self, strings: &mut Strings) -> SchedulerNames {
        *self.scheduler.get_or_insert_with(|| {
            let of_switch = ["prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"];
            SchedulerNames {
                sched_switch: strings.add_str("sched_switch"),
                of_switch: of_switch.map(|name| strings.add_str(name)),
                sched_waking: strings.add_str("sched_waking"),
                of_waking: ["comm", "pid", "prio", "target_cpu"].map(|name| strings.add_str(name)),
            }
        })
    }

    /// Returns the name of an event with this number.
    pub(super) fn event(&mut self, id: u32, name: &str, strings: &mut Strings) -> Symbol {
        *self.events.entry(id).or_insert_with(|| strings.add_str(name))
    }

    /// Returns the name of a field of an event.
    pub(super) fn field(&mut self, event: u32, field: u32, name: &str, strings: &mut Strings) -> Symbol {
        *self.fields.entry((event, field)).or_insert_with(|| strings.add_str(name))
    }
}
