//! Programs that trace more than the buffer holds, or faster than the file takes data.

use std::fs::File;
use std::io::Read as _;
use std::process::Command;
use std::thread;
use std::time::Duration;

use esatto::{Backend, Session, SessionConfig, Tracing};
use esatto_trace::{EventType, Trace};

use crate::APP;
use crate::harness::{Folder, names};

const THREADS: usize = 2;

/// The program: each thread records so many slices with a text of so many bytes.
pub(crate) fn flood() {
    let number = |name| std::env::var(name).expect("it is set").parse::<usize>().expect("a number");
    let (slices, bytes) = (number("TEST_SLICES"), number("TEST_BYTES"));
    let _file = esatto::trace_from_env().expect("starts");
    let text = "x".repeat(bytes);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for n in 0..slices {
                    let _slice = esatto::slice!(APP, "work", n = n, text = text.as_str());
                }
            });
        }
    });
}

/// The program: as [`flood`], but threads do not wait. Then a few more events.
pub(crate) fn flood_without_waiting() {
    let _tracing = Tracing::builder().in_process().shared_memory(4096, 4).start().expect("starts");
    let config = SessionConfig::new().buffer_size_kb(64).write_into("lossy");
    let session = Session::start(Backend::InProcess, config).expect("starts");
    for n in 0..20_000_u64 {
        let _slice = esatto::slice!(APP, "work", n = n);
    }
    for _ in 0..10 {
        // Each time longer than the service waits before it writes.
        thread::sleep(Duration::from_millis(100));
        esatto::instant!(APP, "later");
    }
    session.stop().expect("complete");
}

/// Returns the slices in a trace that lacks nothing.
fn slices(bytes: &[u8]) -> usize {
    let trace = Trace::read(bytes);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    let of_kind = |kind| trace.events.iter().filter(|event| event.event_type == kind).count();
    assert_eq!(of_kind(EventType::SliceBegin), of_kind(EventType::SliceEnd));
    of_kind(EventType::SliceBegin)
}

#[test]
fn a_program_that_is_faster_than_its_file_waits_for_it() {
    // Large texts, of which many chunks make one packet, and small ones.
    for (name, buffer_kb, count, bytes) in
        [("large", "4096", 200, 100_000), ("small", "1024", 20_000, 30), ("tiny", "64", 20_000, 30)]
    {
        let folder = Folder::new(name);
        let (count_text, bytes) = (format!("{count}"), format!("{bytes}"));
        let env = [("ESATTO_TRACE_BUFFER_KB", buffer_kb), ("TEST_SLICES", &count_text), ("TEST_BYTES", &bytes)];
        assert_eq!(folder.run("floods", &env), "");
        let trace = std::fs::read(folder.path("t")).expect("a trace");
        assert_eq!(slices(&trace), THREADS * count, "{name}");
    }
}

#[test]
fn a_slow_file_gets_everything() {
    let folder = Folder::new("slow-file");
    let made = Command::new("mkfifo").arg(folder.path("t")).status().expect("mkfifo");
    assert!(made.success());
    let path = folder.path("t");
    let reader = thread::spawn(move || {
        let mut pipe = File::open(path).expect("a writer");
        let (mut trace, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            match pipe.read(&mut piece).expect("readable") {
                0 => return trace,
                len => trace.extend_from_slice(&piece[..len]),
            }
            thread::sleep(Duration::from_millis(1));
        }
    });
    let env = [("ESATTO_TRACE_BUFFER_KB", "2048"), ("TEST_SLICES", "80"), ("TEST_BYTES", "100000")];
    assert_eq!(folder.run("floods", &env), "");
    assert_eq!(slices(&reader.join().expect("no panic")), THREADS * 80);
}

#[test]
fn events_after_a_loss_are_readable() {
    let folder = Folder::new("after-a-loss");
    folder.run("floods-without-waiting", &[("ESATTO_TRACE", "off")]);
    let names = names(&folder.path("lossy"));
    assert!(names.iter().any(|name| name == "later"), "{names:?}");
}

#[test]
fn a_loss_is_reported_at_the_end() {
    let folder = Folder::new("reported-loss");
    // One event does not fit.
    let env = [("ESATTO_TRACE_BUFFER_KB", "64"), ("TEST_SLICES", "3"), ("TEST_BYTES", "3000000")];
    let said = folder.run("floods", &env);
    assert!(said.starts_with("esatto: t lacks events: "), "{said}");
    assert!(said.contains("did not fit into the buffer"), "{said}");
}
