//! A program with more categories than a message to the service holds is recorded, and stays
//! connected.

use std::sync::OnceLock;

use esatto::Category;
use esatto_tests::sdk::{Recorder, Scenario, Trace};

esatto::categories! {
    static APP = "app";
}

/// With their descriptions, these need some 400 KB; the names alone 150 KB.
const NUMBER: usize = 4000;

esatto_tests::scenario!(Scenario::new(record).check(check));

fn categories() -> &'static [&'static Category] {
    static ALL: OnceLock<Vec<&'static Category>> = OnceLock::new();
    ALL.get_or_init(|| {
        let category = |number| {
            let name = format!("category.of.a.plugin.{number:06}").leak();
            let description =
                format!("{number}: what this category is for, in some more words than others need").leak();
            &*Box::leak(Box::new(Category::new(name).with_description(description)))
        };
        (0..NUMBER).map(category).chain([&APP]).collect()
    })
}

fn record(recorder: &Recorder) {
    let _tracing = recorder.builder().categories(categories()).start().expect("starts");
    recorder.wait_for_data_source("track_event");
    let session = recorder.start(esatto::track_events(32 * 1024));
    for n in 0..100_u32 {
        esatto::instant!(APP, "event", n = n);
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let [found] = trace.query(["select count() as n from slice where name = 'event' and category = 'app'"]);
    assert_eq!(found[0].int("n"), 100);
}
