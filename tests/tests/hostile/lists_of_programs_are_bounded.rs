//! A program that offers very long names, or very many, does not keep users from listing the
//! others.

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::Proto;
use esatto_tests::{Harness, Implementation, esatto_bin};

/// Registers a data source with these categories.
fn offer(harness: &Harness, name: &str, categories: impl Iterator<Item = Proto>) -> RawProducer {
    let mut producer = RawProducer::connect(harness, name);
    let events = categories.fold(Proto::new(), |events, category| events.message(1, &category));
    producer.register(&Proto::new().bytes(1, "track_event").int(2, 1).message(6, &events));
    producer
}

fn list(harness: &Harness, options: &[&str]) -> String {
    let output = harness.command(esatto_bin()).arg("list").args(options).output().expect("it runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    stdout.into_owned()
}

#[test]
fn a_long_description_is_cut() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let long = "d".repeat(100_000);
    let _greedy = offer(&harness, "greedy", [Proto::new().bytes(1, "long").bytes(2, &long)].into_iter());
    let _other = offer(&harness, "other", (0..100).map(|number| Proto::new().bytes(1, format!("c{number}"))));
    let text = list(&harness, &[]);
    assert!(text.lines().all(|line| line.chars().count() < 500) && text.contains("d…"), "{text}");
    assert!(text.contains("c99  other") || text.contains("c99 "), "{text}");
    assert!(list(&harness, &["--json"]).contains(&long));
}

#[test]
fn many_categories_are_listed_within_seconds() {
    let harness = Harness::new();
    let _service = harness.service(Implementation::Ours);
    let names = (0..10_000).map(|number| Proto::new().bytes(1, format!("{number:x}")));
    let _greedy = offer(&harness, "greedy", names);
    assert!(list(&harness, &[]).contains("270f"));
}
