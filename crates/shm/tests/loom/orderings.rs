//! Results of the models without each half of each ordering of the spec: the model that fails, or
//! the reason why none does.
//!
//! The code keeps unneeded orderings because the spec asks for them, and they cost nothing on
//! machines where exchanges are ordered anyway. If a model begins to need one, its test here fails,
//! and the entry must be moved to the needed ones.

use std::panic::{AssertUnwindSafe, catch_unwind};

use esatto_shm::orderings::{
    Access::{self, *},
    Half::{self, *},
    Weakened,
};

use crate::MODELS;

enum Verdict {
    /// This model fails without the ordering.
    Needed(&'static str),
    /// The proof does not need the ordering, for this reason.
    Spare(&'static str),
}
use Verdict::{Needed, Spare};

macro_rules! orderings {
    ($($name:ident: $access:expr, $half:expr => $verdict:expr;)*) => {
        const ORDERINGS: &[(Access, Half)] = &[$(($access, $half)),*];

        $(
            #[test]
            fn $name() {
                check($access, $half, $verdict);
            }
        )*
    };
}

orderings! {
    partitioning_acquires: Partition, Acquire => Spare("the exchange that acquires a chunk follows, and acquires too");
    partitioning_releases: Partition, Release => Spare("nothing was stored that belongs to the page");
    acquiring_a_chunk_acquires: AcquireForWriting, Acquire => Needed("one_writer::a_freed_chunk_comes_with_its_header_cleared");
    acquiring_a_chunk_releases: AcquireForWriting, Release => Spare("the header is stored later, and what announces it releases it");
    storing_a_header_releases: StoreHeader, Release => Spare("a scrape takes a count of 2 and more, which only an announcement stores");
    announcing_releases: Announce, Release => Needed("scraping::sees_only_finished_fragments");
    completing_acquires: Complete, Acquire => Spare("its writer looks at nothing in the chunk any more");
    completing_releases: Complete, Release => Needed("one_writer::hand_over_publishes_the_payload");
    taking_acquires: AcquireForReading, Acquire => Needed("one_writer::hand_over_publishes_the_payload");
    taking_releases: AcquireForReading, Release => Spare("the service has stored nothing yet");
    clearing_a_header_releases: ClearHeader, Release => Spare("the exchange that frees the chunk follows, and releases too");
    freeing_acquires: Free, Acquire => Spare("the service looks at nothing in the chunk any more");
    freeing_releases: Free, Release => Needed("one_writer::a_freed_page_comes_with_its_header_cleared");
    scraping_a_page_acquires: LoadPageWord, Acquire => Needed("scraping::sees_all_of_a_complete_chunk");
    scraping_a_count_acquires: LoadPackets, Acquire => Needed("scraping::sees_only_finished_fragments");
}

#[test]
fn all_are_here_once() {
    for access in Access::ALL {
        for half in [Acquire, Release] {
            let rows = ORDERINGS.iter().filter(|row| **row == (access, half)).count();
            assert_eq!(rows, usize::from(half.is_specified(access)), "{access:?} {half:?}");
        }
    }
}

/// Direct patches, reuse and two writers all need the same few orderings.
#[test]
fn models_that_do_not_rest_on_atomicity_alone_fail_without_some_ordering() {
    // For these models, the exchange itself is the proof, with any ordering.
    const ATOMICITY: [&str; 7] = [
        "one_writer::freeing_the_last_chunk_unpartitions_in_the_same_step",
        "two_writers::never_get_the_same_chunk",
        "two_writers::complete_and_free_on_one_page_without_losing_a_state",
        "scraping::never_sees_the_chunk_of_before",
        "direct_patches::are_not_scraped_half_done",
        "hostile_pages::are_left_as_the_producer_made_them",
        "hostile_pages::do_not_harm_the_neighbour",
    ];
    for (name, model) in MODELS.iter().filter(|(name, _)| !ATOMICITY.contains(name)) {
        assert!(ORDERINGS.iter().any(|(access, half)| fails_without(*access, *half, model)), "{name}");
    }
}

fn fails_without(access: Access, half: Half, model: &fn()) -> bool {
    let _weakened = Weakened::new(access, half);
    catch_unwind(AssertUnwindSafe(model)).is_err()
}

fn check(access: Access, half: Half, verdict: Verdict) {
    match verdict {
        Needed(by) => {
            let (_, model) = MODELS.iter().find(|(name, _)| *name == by).expect("the name of a model");
            assert!(fails_without(access, half, model), "{by} holds without {access:?} {half:?}");
        }
        Spare(why) => {
            for (name, model) in MODELS {
                assert!(!fails_without(access, half, model), "{name} needs {access:?} {half:?}, though {why}");
            }
        }
    }
}
