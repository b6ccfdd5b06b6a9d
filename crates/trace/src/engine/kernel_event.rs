//! Kernel events: access to their fields, and the numbers of those that become more than a row.

use std::borrow::Cow;

use esatto_protozero::{Field, Fields};

use crate::string_table::Symbol;

/// Place and time of a kernel event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) ts: i64,
    pub(crate) machine: u32,
    pub(crate) cpu: u32,
    /// The thread that was running.
    pub(crate) tid: i64,
    /// Name of the function of the kernel that the event names.
    pub(crate) function: Option<Symbol>,
}

/// The fields of an event, by number; the last value of a field counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'e>(pub(crate) &'e [u8]);

impl<'e> Event<'e> {
    pub(crate) fn field(self, id: u32) -> Option<Field<'e>> {
        Fields::new(self.0).filter(|f| f.id == id).last()
    }

    pub(crate) fn int(self, id: u32) -> i64 {
        self.field(id).map_or(0, |f| f.as_i64())
    }

    pub(crate) fn uint(self, id: u32) -> u64 {
        self.field(id).map_or(0, |f| f.as_u64())
    }

    pub(crate) fn small(self, id: u32) -> u32 {
        self.field(id).map_or(0, |f| f.as_u32())
    }

    pub(crate) fn bytes(self, id: u32) -> &'e [u8] {
        self.field(id).map_or(&[][..], |f| f.as_bytes())
    }

    pub(crate) fn text(self, id: u32) -> Cow<'e, str> {
        String::from_utf8_lossy(self.bytes(id))
    }
}

/// Fields of `FtraceEvent` that are no event.
pub(crate) const TIMESTAMP: u32 = 1;
pub(crate) const PID: u32 = 2;
pub(crate) const COMMON_FLAGS: u32 = 5;

/// Declares numbers of events, and lists them with their names for the test.
macro_rules! events {
    ($($name:ident = $id:literal,)*) => {
        $(pub(crate) const $name: u32 = $id;)*

        #[cfg(test)]
        const NAMES: &[(u32, &str)] = &[$(($id, stringify!($name))),*];
    };
}

events! {
    PRINT = 3,
    SCHED_SWITCH = 4,
    CPU_FREQUENCY = 11,
    CPU_FREQUENCY_LIMITS = 12,
    CPU_IDLE = 13,
    CLOCK_ENABLE = 14,
    CLOCK_DISABLE = 15,
    CLOCK_SET_RATE = 16,
    SCHED_BLOCKED_REASON = 18,
    SCHED_WAKING = 20,
    SOFTIRQ_ENTRY = 24,
    SOFTIRQ_EXIT = 25,
    I2C_READ = 27,
    I2C_WRITE = 28,
    I2C_RESULT = 29,
    IRQ_HANDLER_ENTRY = 36,
    IRQ_HANDLER_EXIT = 37,
    MM_VMSCAN_DIRECT_RECLAIM_BEGIN = 46,
    MM_VMSCAN_DIRECT_RECLAIM_END = 47,
    WORKQUEUE_EXECUTE_END = 57,
    WORKQUEUE_EXECUTE_START = 58,
    WORKQUEUE_QUEUE_WORK = 59,
    SUSPEND_RESUME = 113,
    SCHED_WAKEUP_NEW = 114,
    TASK_NEWTASK = 235,
    TASK_RENAME = 236,
    SCHED_PROCESS_FREE = 240,
    RSS_STAT = 313,
    SIGNAL_DELIVER = 324,
    SIGNAL_GENERATE = 325,
    OOM_SCORE_ADJ_UPDATE = 326,
    GENERIC = 327,
    MM_EVENT_RECORD = 328,
    SYS_ENTER = 329,
    SYS_EXIT = 330,
    GPU_FREQUENCY = 332,
    MARK_VICTIM = 334,
    GPU_MEM_TOTAL = 340,
    THERMAL_TEMPERATURE = 341,
    CDEV_UPDATE = 342,
    CPUHP_EXIT = 343,
    CPUHP_MULTI_ENTER = 344,
    CPUHP_ENTER = 345,
    RSS_STAT_THROTTLED = 359,
    NETIF_RECEIVE_SKB = 360,
    NET_DEV_XMIT = 361,
    INET_SOCK_SET_STATE = 362,
    TCP_RETRANSMIT_SKB = 363,
    NAPI_GRO_RECEIVE_ENTRY = 365,
    NAPI_GRO_RECEIVE_EXIT = 366,
    KFREE_SKB = 367,
    WAKEUP_SOURCE_ACTIVATE = 404,
    WAKEUP_SOURCE_DEACTIVATE = 405,
    SCHED_CPU_UTIL_CFS = 421,
    FUNCGRAPH_ENTRY = 437,
    FUNCGRAPH_EXIT = 438,
    MM_SHRINK_SLAB_START = 443,
    MM_SHRINK_SLAB_END = 444,
    CMA_ALLOC_START = 465,
    CMA_ALLOC_INFO = 466,
    SUSPEND_RESUME_MINIMAL = 481,
    RPM_STATUS = 489,
    DEVICE_PM_CALLBACK_START = 504,
    DEVICE_PM_CALLBACK_END = 505,
    DEVFREQ_FREQUENCY = 541,
    KPROBE_EVENT = 542,
    BLOCK_IO_START = 546,
    BLOCK_IO_DONE = 547,
    HRTIMER_EXPIRE_ENTRY = 553,
    HRTIMER_EXPIRE_EXIT = 554,
    LOCAL_TIMER_ENTRY = 559,
    LOCAL_TIMER_EXIT = 560,
    CMA_ALLOC_FINISH = 576,
    MM_ALLOC_CONTIG_MIGRATE_RANGE_INFO = 577,
    DMABUF_RSS_STAT = 579,
}

/// Returns the field of an event that names a function of the kernel by its number in the interned
/// data of the sequence.
pub(crate) fn function_field(event: u32) -> Option<u32> {
    Some(match event {
        SCHED_BLOCKED_REASON | WORKQUEUE_EXECUTE_START | WORKQUEUE_QUEUE_WORK | FUNCGRAPH_ENTRY => 2,
        FUNCGRAPH_EXIT | HRTIMER_EXPIRE_ENTRY => 3,
        MM_SHRINK_SLAB_START => 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::descriptors::messages;
    use super::NAMES;

    #[test]
    fn numbers_and_names_of_events_are_those_of_the_schema() {
        let events = &messages()["FtraceEvent"];
        for (id, name) in NAMES {
            assert_eq!(events[id].name, name.to_lowercase(), "{id}");
        }
    }

    #[test]
    fn functions_are_in_fields_of_that_meaning() {
        let events = &messages()["FtraceEvent"];
        for (id, _) in NAMES {
            if let Some(field) = super::function_field(*id) {
                let name = &messages()[&events[id].message][&field].name;
                assert!(matches!(&**name, "caller" | "function" | "func" | "shrink"), "{id}: {name}");
            }
        }
    }
}
