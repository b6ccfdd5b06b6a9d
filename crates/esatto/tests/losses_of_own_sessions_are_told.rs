//! A session inside the program loses no ordinary load. If it loses events, a notice and a count
//! tell.

#![allow(missing_docs, reason = "tests")]

use std::process::Command;

use esatto::{Backend, Session, SessionConfig, Tracing};

esatto::categories! {
    static APP = "app";
}

/// In a program of its own: the memory in KiB of the load below.
const MEMORY: &str = "ESATTO_TEST_MEMORY_KB";

const THREADS: usize = 4;
const SLICES: usize = 25_000;

/// Runs the load in a program of its own. Returns its output and its messages.
fn run(memory_kb: u32) -> (String, String) {
    let this = std::env::current_exe().expect("a path");
    let mut command = Command::new(this);
    command.args(["load", "--exact", "--nocapture"]).env(MEMORY, memory_kb.to_string());
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// The load that the other tests run; without the variable, nothing.
#[test]
fn load() {
    let Ok(memory_kb) = std::env::var(MEMORY) else { return };
    let memory_kb = memory_kb.parse().expect("a number");
    let page_kb = if memory_kb == 0 { 0 } else { 4 };
    let builder = Tracing::builder().in_process().shared_memory(memory_kb, page_kb);
    let _tracing = builder.categories(CATEGORIES).start().expect("starts");
    let path = std::env::temp_dir().join(format!("esatto-load-{}", std::process::id()));
    for is_file in [true, false] {
        let config = SessionConfig::new().categories(["app"]);
        let config = if is_file { config.write_into(&path) } else { config };
        let session = Session::start(Backend::InProcess, config).expect("starts");
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| (0..SLICES).for_each(|number| drop(esatto::slice!(APP, "work", number))));
            }
        });
        drop(session.stop().expect("stops"));
        println!("gaps: {}", esatto::losses().gaps);
    }
    std::fs::remove_file(path).expect("there is a file");
}

#[test]
fn ordinary_loads_lose_nothing() {
    let (output, messages) = run(0);
    assert!(output.contains("gaps: 0") && !messages.contains("lacks events"), "{output}{messages}");
}

#[test]
fn losses_are_told_and_counted() {
    let (output, messages) = run(16);
    let told = messages.matches("esatto: a session inside this process lacks events: ").count();
    // One line for each session, but equal lines only once.
    assert!((1..=2).contains(&told), "{messages}");
    assert!(!output.contains("gaps: 0") && messages.contains("`SessionConfig::stall` lets them wait"), "{output}");
}
