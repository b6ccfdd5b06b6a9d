use crate::build::{file, run};

#[test]
fn and_its_parent_goes_on() {
    let path = file("fork.pftrace");
    run("fork.c", "fork", &[], &[&path]);
    let trace = std::fs::read(path).expect("the program wrote a trace");
    let has = |text: &[u8]| trace.windows(text.len()).any(|window| window == text);
    assert!(has(b"before") && has(b"after") && !has(b"of the child"));
}
