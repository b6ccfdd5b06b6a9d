//! The last statistics of a trace are those of its end, after the final flush. So a reader of the
//! trace sees losses that came after the first statistics.

use crate::harness::{DEADLINE, Harness, Running, client, enable, offer_silent, record_silent, wait_until};
use esatto_ipc::{BlockingClient, RequestId};
use esatto_protozero::Owned as _;
use esatto_schema::{FlushRequest, ReadBuffersResponse, TraceConfig, TraceReader, TraceStatsReader};
use rustix::process::Signal;
use std::path::Path;

/// A session with a producer that does not answer a flush: its data are lost.
struct Recording {
    traced: Running,
    _producer: BlockingClient,
    consumer: BlockingClient,
    end: RequestId,
    harness: Harness,
}

fn record(file: Option<&str>) -> Recording {
    let harness = Harness::new();
    let traced = Running::start(&harness, &mut harness.traced());
    let producer = offer_silent(&harness);
    let mut consumer = client(&harness.consumer(), "ConsumerPort");
    let config = TraceConfig {
        flush_timeout_ms: Some(100),
        write_into_file: file.map(|_| true),
        // No flush before the writes: only the last flush fails.
        write_flush_mode: file.map(|_| esatto_schema::trace_config::WriteFlushMode(2)),
        file_write_period_ms: Some(100),
        output_path: file.map(|file| harness.path(file).to_str().unwrap().into()),
        ..record_silent()
    };
    let end = enable(&mut consumer, config);
    wait_until("the session", || traced.log().contains("started").then_some(()));
    Recording { traced, _producer: producer, consumer, end, harness }
}

impl Recording {
    fn flush(&mut self) {
        let reply = self.consumer.call("Flush", &FlushRequest::default().encode(), Some(DEADLINE)).unwrap();
        assert!(!reply.success, "the producer does not answer");
    }

    fn disable(&mut self) {
        self.consumer.call("DisableTracing", &[], Some(DEADLINE)).unwrap();
        self.consumer.wait_reply(self.end, Some(DEADLINE)).unwrap();
    }

    /// Reads what is there. Returns the failed flushes of each statistics packet.
    fn read(&mut self) -> Vec<u64> {
        let request = self.consumer.send("ReadBuffers", &[], None).unwrap();
        let mut failed = Vec::new();
        loop {
            let reply = self.consumer.wait_reply(request, Some(DEADLINE)).unwrap();
            let response: ReadBuffersResponse = reply.decode().unwrap();
            for slice in response.slices {
                let packet = slice.data.unwrap_or_default();
                failed.extend(esatto_schema::TracePacketReader::new(&packet).trace_stats().map(failed_flushes));
            }
            if !reply.has_more {
                return failed;
            }
        }
    }
}

fn failed_flushes(stats: TraceStatsReader<'_>) -> u64 {
    stats.flushes_failed().unwrap_or(0)
}

fn stats_in(file: &Path) -> Vec<u64> {
    let trace = std::fs::read(file).unwrap();
    TraceReader::new(&trace).packet().filter_map(|packet| packet.trace_stats()).map(failed_flushes).collect()
}

#[test]
fn of_a_consumer_that_reads_while_the_session_runs() {
    let mut recording = record(None);
    assert_eq!(recording.read(), [0], "the first statistics");
    recording.flush();
    recording.disable();
    assert_eq!(recording.read(), [1], "the statistics of the end");
    recording.traced.stop();
}

#[test]
fn of_a_file_that_the_service_writes() {
    let by_disable = |recording: &mut Recording| {
        recording.flush();
        recording.disable();
    };
    let by_free = |recording: &mut Recording| {
        recording.flush();
        recording.consumer.call("FreeBuffers", &[], Some(DEADLINE)).unwrap();
    };
    let by_signal = |recording: &mut Recording| {
        recording.traced.signal(Signal::TERM);
        assert!(recording.traced.wait().success());
    };
    let ends: [&dyn Fn(&mut Recording); 3] = [&by_disable, &by_free, &by_signal];
    for end in ends {
        let mut recording = record(Some("trace"));
        let file = recording.harness.path("trace");
        wait_until("the first statistics", || (!stats_in(&file).is_empty()).then_some(()));
        assert_eq!(stats_in(&file), [0]);
        end(&mut recording);
        wait_until("the statistics of the end", || (stats_in(&file).last() == Some(&1)).then_some(()));
    }
}
