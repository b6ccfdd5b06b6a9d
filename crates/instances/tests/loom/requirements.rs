//! Each ordering and each rule of this crate, taken away: the model that fails without it, or why
//! none does.
//!
//! If none does, the code keeps more than its proof needs. If a new model needs such an ordering or
//! rule, the test of it fails here; then name the model.

use std::panic::{AssertUnwindSafe, catch_unwind};

use esatto_instances::Access::{self, *};
use esatto_instances::Requirement::{self, Ordering as Of, Rule as To};
use esatto_instances::Rule::{self, *};
use esatto_instances::Without;

use crate::MODELS;

enum Verdict {
    /// This model fails without it.
    Needed(&'static str),
    /// The proof does not need it, for this reason.
    Spare(&'static str),
}
use Verdict::{Needed, Spare};

macro_rules! requirements {
    ($($name:ident: $requirement:expr => $verdict:expr;)*) => {
        const REQUIREMENTS: &[Requirement] = &[$($requirement),*];

        $(
            #[test]
            fn $name() {
                check($requirement, $verdict);
            }
        )*
    };
}

requirements! {
    loading_recording_bits_acquires: Of(LoadRecording) => Needed("starting::an_instance_that_is_seen_to_record_gets_the_event");
    changing_recording_bits_releases: Of(ChangeRecording) => Needed("slot_reuse::an_old_instance_gets_no_event_of_its_successor");
    loading_a_stamp_acquires: Of(LoadStamp) => Spare("a thread that finds another stamp than it knows locks the slot next");
    occupying_a_slot_releases: Of(OccupySlot) => Spare("the lock of the slot is freed later, and releases too");
    vacating_a_slot_releases: Of(VacateSlot) => Spare("the stamp of the next instance shows all that matters");
    clearing_state_releases: Of(ClearState) => Spare("no other store belongs to it");
    loading_the_last_epoch_acquires: Of(LoadLastEpoch) => Needed("open_slices::the_end_of_a_slice_goes_where_its_begin_went");
    raising_the_last_epoch_releases: Of(RaiseLastEpoch) => Needed("open_slices::the_end_of_a_slice_goes_where_its_begin_went");
    loading_the_ended_count_acquires: Of(LoadEndedCount) => Needed("custom_sources::a_thread_that_knows_of_an_end_has_no_writer_left");
    raising_the_ended_count_releases: Of(RaiseEndedCount) => Needed("custom_sources::a_thread_that_knows_of_an_end_has_no_writer_left");
    entering_acquires: Of(Enter) => Needed("biased_lock::two_threads_never_have_the_value_together");
    leaving_releases: Of(Leave) => Needed("biased_lock::two_threads_never_have_the_value_together");
    stepping_back_releases: Of(StepBack) => Spare("an owner that steps back has not used the value yet");
    loading_the_busy_flag_acquires: Of(LoadBusy) => Needed("biased_lock::two_threads_never_have_the_value_together");
    giving_back_releases: Of(GiveBack) => Needed("biased_lock::two_threads_never_have_the_value_together");
    the_owner_makes_a_barrier: To(OwnersBarrier) => Needed("biased_lock::two_threads_never_have_the_value_together");
    other_threads_make_a_barrier: To(OthersBarrier) => Needed("biased_lock::two_threads_never_have_the_value_together");
    telling_that_the_owner_fences_releases: Of(TellFences) => Spare("the owner's barrier before it releases too");
    loading_whether_the_owner_fences_acquires: Of(LoadFences) => Spare("no model of two tries finds an entry without barrier that it orders");
    the_system_makes_both_barriers: To(SystemsBarrier) => Spare("the values of owners that make no barriers are left alone");
    a_thread_that_finds_another_instance_asks_again: To(AskAgain) => Needed("slot_reuse::a_new_instance_gets_no_event_it_does_not_record");
    a_thread_that_begins_a_slice_tells_instances_apart: To(TellApart) => Needed("open_slices::the_end_of_a_slice_goes_where_its_begin_went");
    a_thread_that_ends_returns_its_chunks: To(ReturnChunksAtEnd) => Needed("thread_end::a_thread_that_has_ended_has_returned_its_chunk");
}

#[test]
fn every_ordering_and_rule_has_one_row() {
    let all = Access::ALL.map(Of).into_iter().chain(Rule::ALL.map(To));
    for requirement in all {
        assert_eq!(REQUIREMENTS.iter().filter(|row| **row == requirement).count(), 1, "{requirement:?}");
    }
}

/// Each model fails without some ordering or rule, with named exceptions.
#[test]
fn each_model_needs_an_ordering_or_a_rule() {
    // These depend on the steps of the code, not on its orderings.
    const EXCEPTIONS: [&str; 7] = [
        "starting::a_slot_that_a_thread_reads_can_be_filled_again",
        "clearing_state::events_after_a_clear_start_over",
        // See the test below.
        "flushing::a_flush_covers_earlier_events",
        "flushing::a_flush_covers_threads_that_end",
        "trace_points_of_several_calls::a_flush_leaves_them_alone",
        "trace_points_of_several_calls::the_end_of_the_thread_ends_them",
        "custom_sources::a_late_stop_does_not_close_the_next_instance",
    ];
    let holds = |model| !REQUIREMENTS.iter().any(|requirement| fails_without(*requirement, model));
    let hold: Vec<_> = MODELS.iter().filter(|(_, model)| holds(model)).map(|(name, _)| *name).collect();
    assert_eq!(hold, EXCEPTIONS);
}

/// A thread that is in a trace point keeps its chunk. A flush covers the events that it has
/// finished there because the service reads the chunk.
#[test]
fn a_flush_covers_threads_in_trace_points_because_services_read_chunks() {
    assert!(catch_unwind(crate::flushing::a_flush_without_scraping).is_err());
}

fn fails_without(requirement: Requirement, model: &fn()) -> bool {
    let _without = Without::new(requirement);
    catch_unwind(AssertUnwindSafe(model)).is_err()
}

fn check(requirement: Requirement, verdict: Verdict) {
    match verdict {
        Needed(by) => {
            let (_, model) = MODELS.iter().find(|(name, _)| *name == by).expect("the name of a model");
            assert!(fails_without(requirement, model), "{by} holds without {requirement:?}");
        }
        Spare(why) => {
            for (name, model) in MODELS {
                assert!(!fails_without(requirement, model), "{name} needs {requirement:?}, though {why}");
            }
        }
    }
}
