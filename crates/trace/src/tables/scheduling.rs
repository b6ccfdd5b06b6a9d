//! Tables of scheduling.

use super::columns::table;
use super::{Coded, Narrow, Near, Rare, Row, Sparse};
use crate::string_table::Symbol;

table! {
    /// Intervals in which a processor ran a thread. Idle threads are among them.
    SchedTable of SchedRow as "sched" {
        /// Its begin.
        ts: Near,
        /// Its duration; -1 if it did not end.
        dur: Near,
        /// The processor: its number, and 4096 times the row of its machine.
        cpu: Coded<u32>,
        /// The thread.
        utid: Narrow,
        /// The state of the thread after it, in letters.
        end_state: Coded<Option<Symbol>>,
        /// The priority of the thread.
        priority: Coded<i32>,
    }
}

table! {
    /// States of threads over time.
    ThreadStateTable of ThreadStateRow as "thread_state" {
        /// Its begin.
        ts: Near,
        /// Its duration; -1 if it did not end.
        dur: Near,
        /// The processor, as in `sched`, if the thread was running.
        cpu: Coded<Option<u32>>,
        /// The thread.
        utid: Narrow,
        /// The state: `Running`, or letters.
        state: Coded<Option<Symbol>>,
        /// True if the thread waited for a device.
        io_wait: Sparse<bool>,
        /// The function of the kernel in which the thread waited.
        blocked_function: Sparse<Symbol>,
        /// The thread that woke it.
        waker_utid: Rare<Row>,
        /// The state of that thread at that moment.
        waker_id: Rare<Row>,
        /// True if an interrupt woke it.
        irq_context: Rare<bool>,
    }
}

table! {
    /// Wake-ups of threads that were running or runnable.
    SpuriousWakeupTable of SpuriousWakeupRow as "spurious_sched_wakeup" {
        /// Its time.
        ts: Near,
        /// The state of the thread that woke.
        thread_state_id: Vec<Option<Row>>,
        /// True if an interrupt woke it.
        irq_context: Vec<Option<bool>>,
        /// The thread.
        utid: Vec<Row>,
        /// The thread that woke it.
        waker_utid: Vec<Option<Row>>,
    }
}
