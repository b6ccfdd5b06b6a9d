//! `docs/spec/track-event.md` §22.

use esatto::Category;
use esatto::schema::DataSourceDescriptorReader;
use esatto_tests::sdk::Recorder;
use esatto_tests::wait_until;

use super::text;

esatto::categories! {
    static NET = "net", "Connections";
    static DISK = "disk", tags: ["slow", "io"];
    static BOTH = [NET, DISK];
}
static LATE: Category = Category::new("late");
static SAME: Category = Category::new("net");

use esatto_tests::sdk::Scenario;
esatto_tests::scenario!([ours, theirs] Scenario::new(record));

fn record(recorder: &Recorder) {
    let _tracing = recorder.connect(CATEGORIES);
    assert_eq!(listed(recorder), ["disk: [slow, io]", "net (Connections): []"]);
    // Groups and categories made at run time are used, but not listed.
    esatto::instant!(BOTH, "event");
    esatto::instant!(category: Category::dynamic("made up"), "event");
    esatto::instant!(SAME, "event");
    esatto::instant!(LATE, "event");
    wait_until("the list is renewed", || (listed(recorder).len() == 3).then_some(()));
    assert_eq!(listed(recorder), ["disk: [slow, io]", "late: []", "net (Connections): []"]);
}

fn listed(recorder: &Recorder) -> Vec<String> {
    let mut all = Vec::new();
    for descriptor in recorder.harness().state().descriptors {
        let descriptor = DataSourceDescriptorReader::new(&descriptor);
        let categories = descriptor.track_event_descriptor();
        for category in categories.into_iter().flat_map(|d| d.available_categories().collect::<Vec<_>>()) {
            let tags: Vec<_> = category.tags().map(|tag| text(Some(tag))).collect();
            let description = category.description().map(|d| format!(" ({})", text(Some(d)))).unwrap_or_default();
            all.push(format!("{}{description}: [{}]", text(category.name()), tags.join(", ")));
        }
    }
    all.sort();
    all
}
