//! A session of the service in this process streams into a file, and the program ends without
//! stopping it. The file contains everything that was recorded, a little or a lot.

#![allow(missing_docs, reason = "tests")]

use std::time::{Duration, Instant};

use esatto::schema::{DataSourceConfig, TraceConfig, TraceReader, trace_config};
use esatto::{Backend, DataSource, Session, Setup, Source, Tracing};

struct Large;

impl DataSource for Large {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

static SOURCE: Source<Large> = Source::new("test.large");

/// More than is handed to a file at a time.
const PACKETS: usize = 3000;
const PACKET_BYTES: usize = 4000;

#[test]
fn all_of_a_session_is_in_its_file_when_tracing_is_shut_down() {
    let path = std::env::temp_dir().join(format!("esatto-end-{}.pftrace", std::process::id()));
    let tracing = Tracing::builder().in_process().start().expect("connects");
    SOURCE.register().expect("registers");
    let session = Session::start(Backend::InProcess, config(path.to_str().expect("a path in UTF-8"))).expect("starts");
    let text = "x".repeat(PACKET_BYTES);
    for number in 0..PACKETS {
        SOURCE.trace(|context| {
            context.packet(|packet| {
                packet.for_testing().str(&text);
            });
        });
        if number % 30 == 29 {
            // The memory that is shared with the service holds 60.
            tracing.flush(Duration::from_secs(10));
        }
    }
    esatto::shutdown();
    drop(session);
    // A separate thread writes the last part.
    let begin = Instant::now();
    let mut count = 0;
    while count < PACKETS && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
        let bytes = std::fs::read(&path).expect("the file is there");
        count = TraceReader::new(&bytes).packet().filter(|packet| packet.for_testing().is_some()).count();
    }
    std::fs::remove_file(&path).expect("the file is there");
    assert_eq!(count, PACKETS);
}

fn config(path: &str) -> TraceConfig {
    let config = DataSourceConfig { name: Some("test.large".into()), ..Default::default() };
    TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(32 << 10), ..Default::default() }],
        data_sources: vec![trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }],
        write_into_file: Some(true),
        output_path: Some(path.into()),
        file_write_period_ms: Some(3_600_000),
        ..Default::default()
    }
}
