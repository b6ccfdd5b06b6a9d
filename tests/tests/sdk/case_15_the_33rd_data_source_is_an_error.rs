use std::collections::BTreeSet;

use esatto::schema::{DataSourceConfig, TraceConfig, trace_config};
use esatto::{DataSource, Setup, Source};
use esatto_tests::sdk::{Recorder, Trace};

use super::texts;

struct Nothing;

impl DataSource for Nothing {
    type Config = ();
    type ThreadState = ();
    type IncrementalState = ();

    fn setup(_: &Setup<'_, ()>) -> Self {
        Self
    }
}

/// One more than there may be.
const SOURCES: usize = 33;

fn name(number: usize) -> String {
    format!("com.example.many.{number}")
}

esatto_tests::scenario!(record, check);

/// All of the 32 others are known to the service, beside that of track events, and record at the
/// same time.
fn record(recorder: &Recorder) {
    let _tracing = recorder.builder().start().expect("the control thread starts");
    let sources: Vec<&'static Source<Nothing>> =
        (0..SOURCES).map(|number| &*Box::leak(Box::new(Source::new(name(number).leak())))).collect();
    let (last, others) = sources.split_last().expect("there are some");
    for source in others {
        source.register().expect("registers");
    }
    let error = last.register().expect_err("is one too many");
    assert_eq!(
        error.to_string(),
        "the data source `com.example.many.32` cannot be registered: the process already has 32, which is the limit"
    );
    for source in others {
        recorder.wait_for_data_source(source.name());
    }
    let entry = |number| {
        let config = DataSourceConfig { name: Some(name(number).into()), ..Default::default() };
        trace_config::DataSource { config: Some(Box::new(config)), ..Default::default() }
    };
    let session = recorder.start(TraceConfig {
        buffers: vec![trace_config::BufferConfig { size_kb: Some(4096), ..Default::default() }],
        data_sources: (0..SOURCES).map(entry).collect(),
        ..Default::default()
    });
    for source in &sources {
        source.trace(|context| {
            context.packet(|packet| {
                packet.for_testing().str(source.name());
            });
        });
    }
    recorder.finish(session);
}

fn check(trace: &Trace) {
    let recorded: BTreeSet<String> = texts(trace).into_iter().collect();
    assert_eq!(recorded, (0..SOURCES - 1).map(name).collect());
}
