//! The cases of `docs/spec/c-abi.md` §19. Each has a program in C, `tests/c/case_NN_….c`, which
//! makes checks, and a check of the files that it leaves.

mod data_sources;
mod serialization;
mod track_events;

use esatto_tests::{Harness, Skip};

use crate::run::{Run, Stage};

/// Makes each case a module with a test for each stage.
macro_rules! cases {
    ($($name:ident: $judge:expr, on [$($stage:ident)+];)*) => {
        pub(crate) const CASES: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            use super::*;
            $(cases!(@ $stage $name $judge);)+
        })*
    };
    (@ v58 $name:ident $judge:expr) => { cases!(# v58 V58 $name $judge); };
    (@ v59 $name:ident $judge:expr) => { cases!(# v59 V59 $name $judge); };
    (@ fixed $name:ident $judge:expr) => { cases!(# fixed Fixed $name $judge); };
    (@ ours $name:ident $judge:expr) => { cases!(# ours Ours $name $judge); };
    (@ theirs $name:ident $judge:expr) => { cases!(# theirs Theirs $name $judge); };
    (# $test:ident $stage:ident $name:ident $judge:expr) => {
        #[test]
        fn $test() {
            esatto_tests::skip(|| run(stringify!($name), Stage::$stage, $judge));
        }
    };
}

cases! {
    case_01_decoder: Judge::ITSELF, on [v58 v59];
    case_02_serialization: Judge::of(serialization::every_message_is_what_another_parser_reads), on [v58 v59];
    case_03_turns: Judge::of(data_sources::one_session_had_its_own_turn), on [v58 v59];
    case_04_packets: Judge::of(data_sources::packets_are_whole), on [v58 v59 ours theirs];
    case_05_break: Judge::of(data_sources::nothing_else_is_lost), on [v58 v59];
    case_06_flush: Judge::of(data_sources::both_are_there), on [v58 v59 theirs];
    case_07_drops: Judge::of(data_sources::a_loss_is_told), on [v58 v59];
    case_08_life_cycle: Judge::of(data_sources::each_instance_recorded), on [v58 v59 ours theirs];
    case_09_postponed_stop: Judge::of(data_sources::what_came_meanwhile_is_there), on [v58 v59 ours theirs];
    case_10_postponed_flush: Judge::of(data_sources::everything_is_there), on [v58 v59 theirs];
    case_11_state_of_threads: Judge::ITSELF, on [v58 v59];
    case_12_clears: Judge::ITSELF, on [v58 v59];
    case_13_instance_lock: Judge::ITSELF, on [v58 v59];
    case_14_timestamps: Judge::ITSELF, on [v58 v59];
    case_15_descriptor: Judge::MEANWHILE, on [v58 v59 ours theirs];
    case_16_before_init: Judge::of(track_events::only_what_came_later), on [v58 fixed];
    case_17_triggers: Judge::ITSELF, on [v58 v59 ours theirs];
    case_18_which_categories: Judge::of(track_events::each_session_has_what_it_wants), on [v58 v59];
    case_19_category_callbacks: Judge::ITSELF, on [v58 v59];
    case_20_instants: Judge::of(track_events::instants), on [v58 v59 ours theirs];
    case_21_dynamic_categories: Judge::of(track_events::dynamic_categories), on [v58 v59 theirs];
    case_22_interning: Judge::of(track_events::names_are_announced_once), on [v58 v59];
    case_23_debug_args: Judge::of(track_events::annotations), on [v58 v59];
    case_24_tracks: Judge::of(track_events::tracks), on [v58 v59 fixed ours theirs];
    case_25_scoped_slices: Judge::of(track_events::slices), on [v58 v59];
    case_26_proto_fields: Judge::of(track_events::fields), on [v58 v59];
    case_27_nested_tracks: Judge::of(track_events::nested_tracks), on [v58 v59 theirs];
    case_28_correlation_ids: Judge::of(track_events::correlation_ids), on [v58 v59];
    case_29_low_level: Judge::of(track_events::by_hand), on [v58 v59 ours theirs];
    case_30_flags: Judge::ITSELF, on [v58 v59 fixed];
    case_31_stop_of_a_locked_instance: Judge::ITSELF, on [v58 v59 ours theirs];
    case_32_descriptors_after_losses: Judge::of(track_events::tracks_after_losses), on [v58 ours theirs];
}

/// The checks of a case in addition to those of its program.
#[derive(Clone, Copy)]
struct Judge {
    meanwhile: fn(&Harness, Stage),
    after: fn(&Run) -> Result<(), Skip>,
}

impl Judge {
    /// None.
    const ITSELF: Self = Self { meanwhile: |_, _| (), after: |_| Ok(()) };
    /// While the program runs.
    const MEANWHILE: Self = Self { meanwhile: data_sources::the_service_has_the_descriptors, ..Self::ITSELF };

    const fn of(after: fn(&Run) -> Result<(), Skip>) -> Self {
        Self { after, ..Self::ITSELF }
    }
}

fn run(name: &str, stage: Stage, judge: Judge) -> Result<(), Skip> {
    let run = Run::new(&format!("{name}.c"), stage, |harness| (judge.meanwhile)(harness, stage))?;
    (judge.after)(&run)
}

/// Compares the rows of the section, the list above and the programs.
#[test]
fn every_case_of_the_specification_has_a_program() {
    let spec = include_str!("../../../../../docs/spec/c-abi.md");
    let section = spec.split("\n## 19 ").nth(1).expect("there is a section 19");
    let number = |line: &str| line.split_once(". ").and_then(|(number, _)| number.parse().ok());
    let rows: Vec<u32> = section.lines().filter_map(number).collect();
    assert_eq!(rows, (1..=32).collect::<Vec<_>>(), "the number of cases in the list above");
    let number = |case: &str| case["case_".len()..][..2].parse().expect("a number");
    assert_eq!(CASES.iter().map(|case| number(case)).collect::<Vec<u32>>(), rows);

    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c");
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("an entry").file_name());
    let mut programs: Vec<_> = files.filter_map(|file| file.into_string().ok()).collect();
    programs.retain(|name| name.starts_with("case_"));
    programs.sort();
    assert_eq!(programs, CASES.iter().map(|case| format!("{case}.c")).collect::<Vec<_>>());
}
