//! The number of data sources that a process can have. The test has its own process.

use esatto::{DataSource, Setup, Source};

struct Nothing;

impl DataSource for Nothing {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

#[test]
fn case_15_the_33rd_data_source_is_an_error() {
    static SOURCES: [Source<Nothing>; 33] = [const { Source::new("test.many") }; 33];
    for source in &SOURCES[..32] {
        source.register().expect("registers");
        source.register().expect("is registered already");
    }
    let error = SOURCES[32].register().expect_err("is one too many");
    assert_eq!(
        error.to_string(),
        "the data source `test.many` cannot be registered: the process already has 32, which is the limit"
    );
    SOURCES[32].trace(|_| panic!("it never records"));
}
