//! Models of the SDK (crate `esatto`) under loom: instances that start, stop and follow each other while threads trace, flush and end.
//!
//! ```text
//! RUSTFLAGS="--cfg esatto_loom" cargo test -p esatto-shm --test loom_sdk --release
//! ```
//!
//! The SDK as a whole cannot be a model. So those of its files that are to be checked are compiled here, unchanged and under the names that they have there,
//! with loom's types: the table of instances and its words, the state of threads, the lock of that state, the list of threads,
//! and the writers of custom data sources. Below them are the real arbiter and the real shared memory (as far as they are
//! models, see `tests/loom`). What stands in for the rest, in [`stand_ins`], is one category, a sequence that writes events of one byte, a
//! data source, and a service that takes chunks.
//!
//! Two or three threads; preemption bound 2 (`LOOM_MAX_PREEMPTIONS` overrides it, as `cargo xtask soak loom` does; most of three threads have one less). There is one slot, so that it is used
//! again. Nobody asserts anything before all threads have [ended](sys::threads::end): loom cannot clean up behind those that have not. What each ordering and each rule is for is not said in the models but tested: see [`needed`].
//!
//! Out of scope: forks, and the end of the control thread.

#![cfg(esatto_loom)]

mod beginning;
mod biased;
mod clearing;
mod ending;
mod flushing;
mod needed;
mod reuse;
mod sources;
mod stand_ins;
mod starting;
mod staying;
mod stopping;

#[path = "../../../esatto/src/order.rs"]
mod order;
#[path = "../../../esatto/src/sync.rs"]
#[allow(dead_code, unused_imports, reason = "the SDK uses all of it")]
mod sync;

#[path = "../../../esatto/src/instance"]
#[allow(dead_code, reason = "the SDK uses all of it")]
mod instance {
    mod recording;
    mod slots;

    pub(crate) use crate::stand_ins::{Instance, TRACK_EVENTS};
    pub(crate) use recording::Recording;
    pub(crate) use slots::{MAX_INSTANCES, Slots, Stamp, Ticket, generation, last_epoch, seen_generation};

    pub(crate) fn stamp(slot: usize) -> Stamp {
        TRACK_EVENTS.stamp(slot)
    }

    pub(crate) fn get(slot: usize) -> (Stamp, Option<std::sync::Arc<Instance>>) {
        TRACK_EVENTS.get(slot)
    }

    pub(crate) fn set_up_after(epoch: u32) -> u32 {
        TRACK_EVENTS.set_up_after(epoch)
    }
}

#[path = "../../../esatto/src/thread"]
#[allow(dead_code, reason = "the SDK uses all of it")]
mod thread {
    mod state;

    pub(crate) use crate::stand_ins::{record_begun, still_there};
    pub(crate) use state::{Entry, Thread};
}

#[path = "../../../esatto/src/sys"]
#[allow(dead_code, reason = "the SDK uses all of it")]
mod sys {
    pub(crate) mod biased;
    mod sync;
    pub(crate) mod threads;
}

mod sequence {
    pub(crate) use crate::stand_ins::Sequence;
}

#[path = "../../../esatto/src/begun.rs"]
#[allow(dead_code, unreachable_pub, reason = "the SDK uses all of it")]
mod begun;
mod category {
    pub(crate) use crate::stand_ins::Category;
}
mod event {
    pub(crate) use crate::stand_ins::{Arg, Site};
}

#[path = "../../../esatto/src/data_source"]
#[allow(dead_code, reason = "the SDK uses all of it")]
mod data_source {
    #[path = "../../../shm/tests/loom_sdk/source.rs"]
    mod source;
    mod writers;

    pub(crate) use source::{DataSource, Source};
    pub(crate) use writers::Writers;

    /// What a trace point gets.
    pub(crate) struct Context<'w, T: DataSource>(&'w mut writers::Writer<T>);

    impl<'w, T: DataSource> Context<'w, T> {
        const fn new(writer: &'w mut writers::Writer<T>) -> Self {
            Self(writer)
        }

        pub(crate) fn write(&mut self, event: u8) {
            assert!(self.0.packets.write(event), "there is memory");
        }
    }
}

/// Names models, runs each as a test and keeps the list for [`needed`].
macro_rules! models {
    ($($module:ident::$name:ident),* $(,)?) => {
        /// Every model and its name.
        const MODELS: &[(&str, fn())] = &[$((concat!(stringify!($module), "::", stringify!($name)), $module::$name)),*];

        mod models {
            $(
                #[test]
                fn $name() {
                    super::$module::$name();
                }
            )*
        }
    };
}

models![
    biased::nobody_is_inside_together,
    biased::nobody_is_inside_together_of_three,
    biased::nobody_is_inside_while_the_owner_stays,
    biased::nobody_is_inside_together_when_the_systems_barrier_is_lost,
    starting::who_sees_that_an_instance_records_finds_it,
    starting::a_slot_that_somebody_looks_at_is_free_all_the_same,
    stopping::an_event_is_there_whole_or_not_at_all_and_every_chunk_comes_back,
    stopping::every_chunk_comes_back_from_two_threads,
    stopping::what_happened_before_is_there,
    reuse::an_event_is_not_in_a_successor_that_does_not_want_it,
    reuse::an_event_is_not_in_a_predecessor_whose_successor_wants_it,
    beginning::the_rest_goes_where_the_begin_went,
    clearing::what_comes_after_begins_anew,
    flushing::covers_what_happened_before,
    flushing::covers_what_happened_before_on_a_thread_that_ends,
    flushing::by_two_at_once_ends_and_loses_nothing,
    ending::loses_nothing_beside_a_flush,
    ending::loses_nothing_beside_a_stop,
    ending::is_over_when_the_thread_has_ended,
    staying::keeps_flushes_out,
    staying::ends_with_the_thread_at_the_latest,
    sources::an_instance_that_has_not_started_gets_nothing,
    sources::a_thread_that_has_heard_of_an_end_has_no_writer_of_it,
    sources::a_late_stop_does_not_close_the_next_instance,
];

/// As [`check`], for models of three threads that do as much: a preemption more takes them twenty times as long.
fn check_three(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(builder.preemption_bound.map_or(2, |bound| bound.saturating_sub(1)));
    builder.max_branches = 10_000;
    builder.check(model);
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}
