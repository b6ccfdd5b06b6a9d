//! Each ordering and each rule of the SDK (`order.rs`), taken away: the model that fails without it, or why none does.
//!
//! The latter is what the code keeps beyond its own proof. A model that begins to need it fails here, and moves it among the needed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::MODELS;
use crate::order::Access::{self, *};
use crate::order::Promise::{self, Of, To};
use crate::order::Rule::{self, *};
use crate::order::Without;

enum Verdict {
    /// This model fails without it.
    Needed(&'static str),
    /// The proof does without it, and why.
    Spare(&'static str),
}
use Verdict::{Needed, Spare};

macro_rules! promises {
    ($($name:ident: $promise:expr => $verdict:expr;)*) => {
        const PROMISES: &[Promise] = &[$($promise),*];

        $(
            #[test]
            fn $name() {
                check($promise, $verdict);
            }
        )*
    };
}

promises! {
    seeing_who_records_acquires: Of(SeeRecording) => Needed("starting::who_sees_that_an_instance_records_finds_it");
    changing_who_records_releases: Of(ChangeRecording) => Needed("reuse::an_event_is_not_in_a_predecessor_whose_successor_wants_it");
    seeing_a_stamp_acquires: Of(SeeStamp) => Spare("who finds another stamp than he knows locks the slot before he goes on");
    occupying_a_slot_releases: Of(OccupySlot) => Spare("the lock of the slot is free again later, and releases too");
    vacating_a_slot_releases: Of(VacateSlot) => Spare("what matters is seen by the next instance's stamp");
    clearing_state_releases: Of(ClearState) => Spare("nothing was stored that belongs to it");
    seeing_the_epoch_acquires: Of(SeeEpoch) => Needed("beginning::the_rest_goes_where_the_begin_went");
    raising_the_epoch_releases: Of(RaiseEpoch) => Needed("beginning::the_rest_goes_where_the_begin_went");
    seeing_the_generation_acquires: Of(SeeGeneration) => Needed("sources::a_thread_that_has_heard_of_an_end_has_no_writer_of_it");
    raising_the_generation_releases: Of(RaiseGeneration) => Needed("sources::a_thread_that_has_heard_of_an_end_has_no_writer_of_it");
    entering_acquires: Of(Enter) => Needed("biased::nobody_is_inside_together");
    leaving_releases: Of(Leave) => Needed("biased::nobody_is_inside_together");
    stepping_back_releases: Of(StepBack) => Spare("who steps back has done nothing with the value yet");
    seeing_that_nobody_is_inside_acquires: Of(SeeBusy) => Needed("biased::nobody_is_inside_together");
    giving_back_releases: Of(GiveBack) => Needed("biased::nobody_is_inside_together");
    the_owner_makes_a_barrier: To(OwnersBarrier) => Needed("biased::nobody_is_inside_together");
    the_others_make_a_barrier: To(OthersBarrier) => Needed("biased::nobody_is_inside_together");
    telling_of_barriers_releases: Of(TellFences) => Spare("the owner's barrier in front of it releases too");
    seeing_who_makes_barriers_acquires: Of(SeeFences) => Spare("no model of two looks finds an entering without barrier that it orders");
    the_system_makes_barriers: To(SystemsBarrier) => Spare("owners that do not make barriers themselves are left alone");
    who_finds_another_instance_looks_again: To(LookAgain) => Needed("reuse::an_event_is_not_in_a_successor_that_does_not_want_it");
    who_begins_something_tells_instances_apart: To(TellApart) => Needed("beginning::the_rest_goes_where_the_begin_went");
    a_thread_that_ends_returns_its_chunks: To(EndInPerson) => Needed("ending::is_over_when_the_thread_has_ended");
}

#[test]
fn all_are_here_once() {
    let all = Access::ALL.map(Of).into_iter().chain(Rule::ALL.map(To));
    for promise in all {
        assert_eq!(PROMISES.iter().filter(|row| **row == promise).count(), 1, "{promise:?}");
    }
}

/// No model is there for nothing.
#[test]
fn models_fail_without_something() {
    // What these are about is how the code is made, in whatever order.
    const OTHERS: [&str; 7] = [
        "starting::a_slot_that_somebody_looks_at_is_free_all_the_same",
        "clearing::what_comes_after_begins_anew",
        // See below.
        "flushing::covers_what_happened_before",
        "flushing::covers_what_happened_before_on_a_thread_that_ends",
        "staying::keeps_flushes_out",
        "staying::ends_with_the_thread_at_the_latest",
        "sources::a_late_stop_does_not_close_the_next_instance",
    ];
    let holds = |model| !PROMISES.iter().any(|promise| fails_without(*promise, model));
    let hold: Vec<_> = MODELS.iter().filter(|(_, model)| holds(model)).map(|(name, _)| *name).collect();
    assert_eq!(hold, OTHERS);
}

/// A thread that is in a trace point keeps its chunk, and what it has finished there is covered because the service looks.
#[test]
fn a_flush_covers_threads_in_trace_points_because_services_look_into_chunks() {
    assert!(catch_unwind(crate::flushing::without_a_look).is_err());
}

fn fails_without(promise: Promise, model: &fn()) -> bool {
    let _without = Without::new(promise);
    catch_unwind(AssertUnwindSafe(model)).is_err()
}

fn check(promise: Promise, verdict: Verdict) {
    match verdict {
        Needed(by) => {
            let (_, model) = MODELS.iter().find(|(name, _)| *name == by).expect("the name of a model");
            assert!(fails_without(promise, model), "{by} holds without {promise:?}");
        }
        Spare(why) => {
            for (name, model) in MODELS {
                assert!(!fails_without(promise, model), "{name} needs {promise:?}, though {why}");
            }
        }
    }
}
