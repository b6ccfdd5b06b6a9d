//! Models under loom: instances start, stop and follow each other while threads trace, flush and
//! end.
//!
//! ```text
//! RUSTFLAGS="--cfg esatto_loom" cargo test -p esatto-instances --test loom --release
//! ```
//!
//! The models run this crate above the real arbiter and the real shared memory (as far as those are
//! models, see `crates/shm/tests/loom`). Four things stand in for the SDK and the service: one
//! category, a [sequence](sequence) that writes events of one byte, a [data source](custom_source),
//! and a [service](control) that takes chunks.
//!
//! A model has two or three threads. Its preemption bound is 2, or 3 where that is cheap, and one
//! less in most models of three threads. `LOOM_MAX_PREEMPTIONS` overrides the bound, as `cargo
//! xtask soak loom` does. There is one slot, so that instances follow each other in it. A model
//! asserts nothing before all its threads have called
//! [`end_thread`](esatto_instances::ThreadTable), because loom cannot clean up after threads that
//! have not ended. The models do not say what each ordering and each rule is for: [`requirements`]
//! tests it.
//!
//! Out of scope: forks, and the end of the control thread.

#![cfg(esatto_loom)]

mod biased_lock;
mod clearing_state;
mod control;
mod custom_source;
mod custom_sources;
mod flushing;
mod open_slices;
mod requirements;
mod sequence;
mod slot_reuse;
mod starting;
mod stopping;
mod thread_end;
mod trace_points_of_several_calls;

/// Names models, runs each as a test and keeps the list for [`requirements`].
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
    biased_lock::two_threads_never_have_the_value_together,
    biased_lock::three_threads_never_have_the_value_together,
    biased_lock::an_owner_that_stays_inside_keeps_the_value,
    biased_lock::a_lost_barrier_keeps_threads_apart,
    starting::an_instance_that_is_seen_to_record_gets_the_event,
    starting::a_slot_that_a_thread_reads_can_be_filled_again,
    stopping::a_stop_leaves_whole_events_and_returns_every_chunk,
    stopping::a_stop_returns_the_chunks_of_two_threads,
    stopping::a_stop_covers_earlier_events,
    slot_reuse::a_new_instance_gets_no_event_it_does_not_record,
    slot_reuse::an_old_instance_gets_no_event_of_its_successor,
    open_slices::the_end_of_a_slice_goes_where_its_begin_went,
    clearing_state::events_after_a_clear_start_over,
    flushing::a_flush_covers_earlier_events,
    flushing::a_flush_covers_threads_that_end,
    flushing::two_flushes_at_once_lose_nothing,
    thread_end::a_thread_that_ends_during_a_flush_loses_nothing,
    thread_end::a_thread_that_ends_during_a_stop_loses_nothing,
    thread_end::a_thread_that_has_ended_has_returned_its_chunk,
    trace_points_of_several_calls::a_flush_leaves_them_alone,
    trace_points_of_several_calls::the_end_of_the_thread_ends_them,
    custom_sources::an_instance_that_has_not_started_gets_nothing,
    custom_sources::a_thread_that_knows_of_an_end_has_no_writer_left,
    custom_sources::a_late_stop_does_not_close_the_next_instance,
];

/// Checks a model of three threads that all do as much as one of two. A preemption more takes such
/// a model twenty times as long.
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
