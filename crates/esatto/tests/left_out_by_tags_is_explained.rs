//! A session inside the process that records nothing, because a tag leaves out all categories,
//! says so when it stops.

#![allow(missing_docs, reason = "tests")]

use std::sync::mpsc;

use esatto::{Backend, Session, SessionConfig, Tracing};

esatto::categories! {
    static DISK = "disk.blocks", tags: ["slow"];
    static LINES = "lines", tags: ["other", "debug"];
}

#[test]
fn left_out_by_tags_is_explained() {
    let (say, said) = mpsc::channel();
    let builder = Tracing::builder().notices(move |line| say.send(line.to_owned()).expect("heard"));
    let _tracing = builder.in_process().categories(CATEGORIES).start().expect("starts");
    let record = |config: SessionConfig| {
        let session = Session::start(Backend::InProcess, config).expect("starts");
        esatto::instant!(DISK, "recorded");
        esatto::instant!(LINES, "recorded");
        session.stop().expect("stops");
        said.try_iter().collect::<Vec<_>>()
    };
    let what = "a session inside this process has recorded no track event: categories with the tag";
    let config = SessionConfig::new;
    let only = "are recorded only on request";
    let ask = "ask with `SessionConfig::tags`";
    assert_eq!(record(config()), [format!("{what} `debug` or `slow` {only} (disk.blocks, lines); {ask}")]);
    assert!(record(config()).is_empty(), "once");
    assert_eq!(record(config().categories(["li*"])), [format!("{what} `debug` {only} (lines); {ask}")]);
    assert!(record(config().tags(["slow"])).is_empty());
    assert!(record(config().categories(["lines"])).is_empty());
}
