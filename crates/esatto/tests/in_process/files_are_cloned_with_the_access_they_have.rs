use std::fs::{File, OpenOptions};
use std::path::PathBuf;

use esatto::{Backend, CloneOf, Cloned, Error, Session, SessionConfig};
use esatto_trace::Trace;

use super::TRACING;

esatto::categories! {
    static CLONED = "cloned";
}

const BEFORE: &[u8] = b"what was there before";

/// A folder, until the end of the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Appends a session to a file that is opened in this way, and clones the session. Returns the
/// answer and the content of the clone.
fn clone_of(test: &str, access: &OpenOptions) -> (Result<Cloned, Error>, Vec<u8>) {
    let folder = Folder(std::env::temp_dir().join(format!("esatto-{test}-{}", std::process::id())));
    std::fs::create_dir(&folder.0).expect("a new folder");
    let (source, target) = (folder.0.join("source"), folder.0.join("target"));
    std::fs::write(&source, BEFORE).expect("a new file");
    let config = SessionConfig::new().categories(["cloned"]).name(test);
    let config = config.write_into_fd(access.open(&source).expect("it is there"));
    let session = Session::start(Backend::InProcess, config).expect("starts");
    assert!(TRACING.wait_until_enabled(&CLONED, std::time::Duration::from_secs(10)));
    esatto::instant!(CLONED, "cloned");
    let clone = Session::open(Backend::InProcess).expect("opens");
    let copy = File::options().read(true).write(true).create_new(true).open(&target).expect("a file");
    let answer = clone.clone_session_into(CloneOf::Name(test.into()), copy).wait();
    drop(clone);
    session.stop().expect("stops");
    (answer, std::fs::read(&target).expect("it is there"))
}

#[test]
fn a_file_for_reading_and_writing_is_cloned_without_earlier_content() {
    let (answer, copy) = clone_of("readable", File::options().read(true).append(true));
    answer.expect("clones");
    let trace = Trace::read(&copy[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    assert!(trace.events.iter().any(|event| event.name.as_deref() == Some("cloned")));
}

#[test]
fn a_file_for_writing_only_is_not_cloned() {
    let (answer, copy) = clone_of("unreadable", File::options().append(true));
    let error = answer.expect_err("it cannot be read").to_string();
    assert!(error.contains("opened for writing only"), "{error}");
    assert!(!copy.windows(BEFORE.len()).any(|window| window == BEFORE), "earlier content is in the clone");
}
