//! `esatto::producer`: endpoints of the program's own.

use std::time::Duration;

use esatto::BufferExhausted;
use esatto::producer::{Endpoint, Event, TraceWriter};
use esatto::schema::trace_config::{BufferConfig, DataSource};
use esatto::schema::{DataSourceConfig, DataSourceConfigReader, DataSourceDescriptor, TraceConfig, TracePacketWriter};
use esatto_tests::sdk::{Recorder, Trace};

mod over_the_systems_socket {
    esatto_tests::scenario!([ours, theirs] super::record, super::check);
}

fn config() -> TraceConfig {
    let source = DataSourceConfig { name: Some("com.example.driven".into()), ..Default::default() };
    TraceConfig {
        buffers: vec![BufferConfig { size_kb: Some(1024), ..Default::default() }],
        data_sources: vec![DataSource { config: Some(Box::new(source)), ..Default::default() }],
        ..Default::default()
    }
}

fn write(writer: &mut TraceWriter, text: &str) {
    let mut packet = writer.new_packet();
    packet.typed::<TracePacketWriter<'_>>().for_testing().str(text);
}

/// Commands of the service until the instance has ended.
fn drive(mut endpoint: Endpoint) -> Vec<&'static str> {
    let descriptor = DataSourceDescriptor {
        name: Some("com.example.driven".into()),
        id: Some(7),
        will_notify_on_start: Some(true),
        will_notify_on_stop: Some(true),
        ..Default::default()
    };
    endpoint.register(&descriptor);
    assert!(endpoint.create_writer(1, BufferExhausted::Drop).is_null(), "there is no memory yet");
    let mut seen = Vec::new();
    let mut writer = None;
    loop {
        for event in endpoint.wait(Some(Duration::from_secs(60))).expect("the service stays") {
            match event {
                Event::Connected => seen.push("connected"),
                Event::Setup { config, .. } => {
                    seen.push("setup");
                    let buffer = DataSourceConfigReader::new(&config).target_buffer().expect("is there");
                    writer = Some(endpoint.create_writer(buffer as u16, BufferExhausted::Stall));
                }
                Event::Start { id, .. } => {
                    seen.push("start");
                    write(writer.as_mut().expect("was set up"), "started");
                    endpoint.notify_started(id);
                }
                Event::Flush { request, .. } => {
                    if seen.last() != Some(&"flush") {
                        seen.push("flush");
                    }
                    let writer = writer.as_mut().expect("was set up");
                    write(writer, "flushed");
                    writer.flush();
                    endpoint.acknowledge_flush(request);
                }
                Event::Stop { id } => {
                    seen.push("stop");
                    let mut writer = writer.take().expect("was set up");
                    write(&mut writer, "stopped");
                    drop(writer);
                    endpoint.notify_stopped(id);
                    let (done, told) = std::sync::mpsc::channel();
                    endpoint.sync(move || done.send(()).expect("is waited for"));
                    while told.try_recv().is_err() {
                        endpoint.wait(Some(Duration::from_secs(60))).expect("the service stays");
                    }
                    return seen;
                }
                _ => {}
            }
        }
    }
}

fn record(recorder: &Recorder) {
    let endpoint = Endpoint::builder("driven").shared_memory(512, 8).connect().expect("connects");
    let driver = std::thread::spawn(move || drive(endpoint));
    recorder.wait_for_data_source("com.example.driven");
    let session = recorder.start(config());
    session.flush(None).wait().expect("flushes");
    recorder.finish(session);
    assert_eq!(driver.join().expect("does not panic"), ["connected", "setup", "start", "flush", "stop"]);
}

fn check(trace: &Trace) {
    let mut texts = super::texts(trace);
    texts.dedup();
    assert_eq!(texts, ["started", "flushed", "stopped"]);
}

mod with_memory_of_its_own {
    esatto_tests::scenario!([ours, theirs] super::early, super::check_early);
}

fn early(recorder: &Recorder) {
    let mut endpoint = Endpoint::builder("driven").offer_memory().connect().expect("connects");
    let mut writer = endpoint.arbiter().expect("is there at once").create_startup_writer(1);
    write(&mut writer, "early");
    endpoint.register(&DataSourceDescriptor { name: Some("com.example.driven".into()), ..Default::default() });
    while endpoint.wait(None).expect("the service takes the memory") != [Event::Connected] {}
    endpoint.pump().expect("registers");
    recorder.wait_for_data_source("com.example.driven");
    let waiting = std::thread::spawn(move || {
        loop {
            for event in endpoint.wait(None).expect("the service stays") {
                match event {
                    Event::Start { config, .. } => {
                        let buffer = DataSourceConfigReader::new(&config).target_buffer().expect("is there");
                        endpoint.arbiter().expect("is there").bind_reservation(1, buffer as u16);
                        write(&mut writer, "late");
                    }
                    Event::Flush { request, .. } => {
                        writer.flush();
                        endpoint.acknowledge_flush(request);
                    }
                    Event::Stop { .. } => {
                        endpoint.pump().expect("sends the rest");
                        return;
                    }
                    _ => {}
                }
            }
        }
    });
    let session = recorder.start(config());
    session.flush(None).wait().expect("flushes");
    recorder.finish(session);
    waiting.join().expect("does not panic");
}

fn check_early(trace: &Trace) {
    assert_eq!(super::texts(trace), ["early", "late"]);
}
