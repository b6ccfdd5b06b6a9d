//! SIGTERM flushes and stops all sessions before the program `traced` ends: the last data of the
//! producers are in the traces, and consumers that wait get an answer. A second signal does not
//! wait. SIGHUP changes nothing.

use crate::harness::{DEADLINE, Folder, Producer, barrier, config, enable, packet, read, slices};
use esatto_ipc::{Address, BlockingClient, RequestId};
use esatto_protozero::Owned as _;
use esatto_schema::{CommitDataRequest, EnableTracingResponseReader, TraceConfig};
use rustix::process::{Pid, Signal};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

struct Traced {
    child: Child,
    folder: Folder,
}

impl Traced {
    fn start() -> Self {
        let folder = Folder::create();
        let log = std::fs::File::create(folder.path("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_traced"));
        command
            .env("PERFETTO_PRODUCER_SOCK_NAME", folder.path("p"))
            .env("PERFETTO_CONSUMER_SOCK_NAME", folder.path("c"));
        let child = command.stdin(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, folder }
    }

    fn consumer(&self) -> BlockingClient {
        let start = Instant::now();
        loop {
            match BlockingClient::connect(&Address::Path(self.folder.path("c")), "ConsumerPort", DEADLINE) {
                Ok(consumer) => return consumer,
                Err(e) => assert!(start.elapsed() < DEADLINE, "{e}"),
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Begins a session and connects a producer that records in it.
    fn record(&self, config: TraceConfig) -> (BlockingClient, RequestId, Producer) {
        let mut consumer = self.consumer();
        let end = consumer.send("EnableTracing", &enable(config), None).unwrap();
        barrier(&mut consumer);
        let mut producer = Producer::connect(&Address::Path(self.folder.path("p")));
        producer.await_start();
        (consumer, end, producer)
    }

    fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.path("log")).unwrap()).into_owned()
    }

    fn assert_ends(&mut self) {
        let start = Instant::now();
        while start.elapsed() < DEADLINE {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}\n{}", self.log());
                assert!(self.log().ends_with("Stopped\n"), "{}", self.log());
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("it does not end:\n{}", self.log());
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Answers the flush as a program does that has data left.
fn flush(producer: &mut Producer, text_len: usize) {
    let flush = loop {
        if let Some(flush) = producer.command().flush {
            break flush;
        }
    };
    assert_eq!(flush.flags.map(|flags| flags & 0xf), Some(2), "the reason is the end of the trace");
    producer.commit(&packet(text_len));
    let done = CommitDataRequest { flush_request_id: flush.request_id, ..CommitDataRequest::default() };
    producer.client.send("CommitData", &done.encode(), None).unwrap();
}

fn error_of(consumer: &mut BlockingClient, end: RequestId) -> String {
    let reply = consumer.wait_reply(end, Some(DEADLINE)).unwrap();
    let error = EnableTracingResponseReader::new(&reply.body).error().unwrap_or_default();
    String::from_utf8_lossy(error).into_owned()
}

fn has_packet(trace: &[u8], len: usize) -> bool {
    trace.windows(len).any(|part| part.iter().all(|&byte| byte == b'x'))
}

#[test]
fn a_waiting_consumer_reads_the_last_data() {
    let mut traced = Traced::start();
    let (mut consumer, end, mut producer) = traced.record(config());
    let mut late = traced.consumer();
    traced.signal(Signal::TERM);
    flush(&mut producer, 100);
    assert_eq!(error_of(&mut consumer, end), "");
    let refused = late.send("EnableTracing", &enable(config()), None).unwrap();
    assert_eq!(error_of(&mut late, refused), "the service is being stopped");
    let packets = read(&mut consumer);
    assert!(packets.iter().any(|packet| has_packet(packet, 100)), "{} packets", packets.len());
    consumer.call("FreeBuffers", &[], Some(DEADLINE)).unwrap();
    traced.assert_ends();
}

#[test]
fn a_file_has_the_last_data() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut traced = Traced::start();
        let file = traced.folder.path("trace");
        let config = TraceConfig {
            write_into_file: Some(true),
            file_write_period_ms: Some(3_600_000),
            output_path: Some(file.to_str().unwrap().into()),
            ..config()
        };
        let (mut consumer, end, mut producer) = traced.record(config);
        traced.signal(signal);
        flush(&mut producer, 100);
        assert_eq!(error_of(&mut consumer, end), "");
        assert!(has_packet(&std::fs::read(file).unwrap(), 100));
        traced.assert_ends();
    }
}

#[test]
fn a_silent_producer_is_named_and_not_waited_for_longer() {
    let mut traced = Traced::start();
    let (mut consumer, end, _producer) = traced.record(config());
    traced.signal(Signal::TERM);
    assert_eq!(error_of(&mut consumer, end), "", "after the time-out the consumer gets its answer");
    drop(consumer);
    traced.assert_ends();
    assert!(traced.log().contains("was not acknowledged in time by producer \"test\""), "{}", traced.log());
}

#[test]
fn a_consumer_that_does_not_read_is_not_waited_for_longer() {
    let mut traced = Traced::start();
    let (_consumer, _end, producer) = traced.record(config());
    drop(producer);
    traced.signal(Signal::TERM);
    traced.assert_ends();
    assert!(traced.log().contains("stopping took longer than 3 s"), "{}", traced.log());
}

#[test]
fn a_silent_producer_takes_no_time_from_a_consumer_that_reads() {
    const PACKETS: usize = 400;
    let mut traced = Traced::start();
    let (mut consumer, end, mut producer) = traced.record(config());
    for _ in 0..PACKETS {
        producer.commit(&packet(20_000));
    }
    traced.signal(Signal::TERM);
    // The producer answers neither the flush nor the stop, so the session ends late.
    assert_eq!(error_of(&mut consumer, end), "");
    let reading = consumer.send("ReadBuffers", &[], None).unwrap();
    let mut bytes = 0;
    loop {
        let reply = consumer.wait_reply(reading, Some(DEADLINE)).unwrap();
        bytes += slices(&reply.body).iter().map(Vec::len).sum::<usize>();
        if !reply.has_more {
            break;
        }
        // Three seconds for all.
        std::thread::sleep(std::time::Duration::from_millis(3000 * 128 / 1024 / 8));
    }
    assert!(bytes > PACKETS * 20_000, "{bytes} bytes");
    consumer.call("FreeBuffers", &[], Some(DEADLINE)).unwrap();
    traced.assert_ends();
}

#[test]
fn a_second_signal_does_not_wait() {
    let mut traced = Traced::start();
    let (_consumer, _end, _producer) = traced.record(config());
    traced.signal(Signal::TERM);
    traced.signal(Signal::INT);
    traced.assert_ends();
    assert!(traced.log().contains("stopping at once"), "{}", traced.log());
}

#[test]
fn a_hangup_is_ignored() {
    let mut traced = Traced::start();
    let (mut consumer, end, mut producer) = traced.record(config());
    traced.signal(Signal::HUP);
    barrier(&mut consumer);
    traced.signal(Signal::TERM);
    flush(&mut producer, 10);
    assert_eq!(error_of(&mut consumer, end), "");
    drop(consumer);
    traced.assert_ends();
}
