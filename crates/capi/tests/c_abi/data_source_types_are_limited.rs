use crate::run::{Run, Stage};

#[test]
fn a_program_can_register_all_types_and_no_more() {
    esatto_tests::skip(|| Run::new("types.c", Stage::V58, |_| ()).map(drop));
}
