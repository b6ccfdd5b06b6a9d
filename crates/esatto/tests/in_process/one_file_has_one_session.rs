use std::sync::LazyLock;

use esatto::{Backend, ErrorKind, Session, SessionConfig};
use esatto_trace::Trace;

use super::TRACING;

esatto::categories! { static ONE_FILE = "one_file"; }

#[test]
fn until_it_stops() {
    LazyLock::force(&TRACING);
    let path = std::env::temp_dir().join(format!("esatto-one-file-{}", std::process::id()));
    let config = || SessionConfig::new().categories(["one_file"]).write_into(&path);
    let start = || Session::start(Backend::InProcess, config());
    let names = || {
        let trace = Trace::read(std::fs::File::open(&path).expect("it is there"));
        trace.events.into_iter().filter_map(|event| event.name).collect::<Vec<_>>()
    };
    let first = start().expect("starts");
    esatto::instant!(ONE_FILE, "of the first");
    let error = start().expect_err("the first one writes it");
    assert_eq!(error.kind(), ErrorKind::State);
    let file = path.display();
    let expected =
        format!("another session of this process is writing {file}: name another file, or stop that session first");
    assert_eq!(error.to_string(), expected);
    first.stop_recording().wait().expect("stops");
    assert_eq!(names(), ["of the first"]);
    let second = start().expect("the first one has stopped");
    esatto::instant!(ONE_FILE, "of the second");
    drop(first);
    assert!(start().is_err(), "the second one writes it");
    drop(second);
    assert_eq!(names(), ["of the second"]);
    let third = start().expect("the second one has ended");
    third.stop().expect("stops");
    std::fs::remove_file(&path).expect("it is there");
}
