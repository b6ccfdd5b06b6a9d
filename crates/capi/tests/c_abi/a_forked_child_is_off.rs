use crate::run::{Run, Stage, column};

#[test]
fn the_child_is_off_and_its_parent_still_records() {
    esatto_tests::skip(|| {
        let run = Run::new("fork.c", Stage::V58, |_| ())?;
        let [slices] = run.query("trace", ["SELECT name FROM slice ORDER BY ts"])?;
        assert_eq!(column(&slices, "name"), ["before", "after"]);
        Ok(())
    });
}
