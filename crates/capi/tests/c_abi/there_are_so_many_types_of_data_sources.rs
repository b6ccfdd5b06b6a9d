use crate::run::{Run, Stage};

#[test]
fn and_no_more() {
    esatto_tests::skip(|| Run::new("types.c", Stage::V58, |_| ()).map(drop));
}
