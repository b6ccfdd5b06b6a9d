//! A session inside the process whose patterns match no category is explained when it stops.

#![allow(missing_docs, reason = "tests")]

use std::sync::mpsc;

use esatto::{Backend, Category, Session, SessionConfig, Tracing};

esatto::categories! {
    static NET = "net";
    static SLOW = "disk.slow", tags: ["slow"];
}

#[test]
fn unmatched_patterns_are_explained() {
    let (say, said) = mpsc::channel();
    let builder = Tracing::builder().notices(move |line| say.send(line.to_owned()).expect("heard"));
    let _tracing = builder.in_process().categories(CATEGORIES).start().expect("starts");
    let record = |backend: Backend, config: SessionConfig| {
        let session = Session::start(backend, config).expect("starts");
        esatto::instant!(NET, "recorded");
        esatto::instant!(category: Category::dynamic("made.late"), "recorded");
        session.stop().expect("stops");
        said.try_iter().collect::<Vec<_>>()
    };
    let what = "a session inside this process has recorded no track event: no category matches";
    let config = SessionConfig::new;
    let expected = format!("{what} `ent`; did you mean `net`? Known are: net, disk.slow");
    assert_eq!(record(Backend::InProcess, config().categories(["ent"])), [expected]);
    assert!(record(Backend::InProcess, config().categories(["ent"])).is_empty(), "once");
    let expected = format!("{what} `memory` or `gpu*`; known are: net, disk.slow");
    assert_eq!(record(Backend::Any, config().categories(["memory", "gpu*"])), [expected]);
    let other = |missing| format!("a session inside this process: no category matches {missing}");
    for (config, expected) in [
        (config().categories(["net", "nte"]), other("`nte`; did you mean `net`? Known are: net, disk.slow")),
        (
            config().categories(["disk.slwo"]).tags(["slow"]),
            other("`disk.slwo`; did you mean `disk.slow`? Known are: net, disk.slow"),
        ),
        (
            config().categories(["disk*", "other*"]),
            "a session inside this process has recorded no track event: categories with the tag `slow` are recorded \
             only on request (disk.slow); ask with `SessionConfig::tags`"
                .to_owned(),
        ),
        (
            config().tags(["slo"]),
            "a session inside this process: no category has the tag `slo`; known: slow".to_owned(),
        ),
        (
            config().edit(|config| {
                let source = config.data_sources[0].config.as_mut().expect("a source");
                let events = source.track_event_config.as_mut().expect("track events");
                events.enabled_categories = vec!["net".into(), "gpu".into()];
            }),
            other("`gpu`; known are: net, disk.slow"),
        ),
    ] {
        assert_eq!(record(Backend::InProcess, config), [expected]);
    }
    for config in [
        config(),
        config().categories(["made.*", "made.late"]),
        config().categories(["net"]).tags(["slow", "debug", "other*"]),
        config().without_categories(["ent"]),
    ] {
        let text = format!("{config:?}");
        assert!(record(Backend::InProcess, config).is_empty(), "{text}");
    }
}
