//! Sends captured bytes of Perfetto's `traced_relay` and its producer to our daemon over TCP. The
//! trace has their packets.

use crate::guest::{host, loopback_address};
use esatto_protozero::Owned as _;
use esatto_schema::IPCFrame;
use esatto_tests::{Harness, Implementation, Peer, skip, tp};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

fn capture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures/relay").join(file)
}

/// The frames of one direction of a conversation, each with its header.
pub(crate) fn frames(file: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(capture(file)).expect("a capture");
    let mut rest = &bytes[..];
    let mut frames = Vec::new();
    while let Some((header, _)) = rest.split_first_chunk::<4>() {
        let (frame, tail) = rest.split_at(4 + u32::from_le_bytes(*header) as usize);
        frames.push(frame.to_vec());
        rest = tail;
    }
    frames
}

struct Conversation(TcpStream);

impl Conversation {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("the service listens");
        stream.set_read_timeout(Some(esatto_tests::DEADLINE)).expect("a timeout");
        Self(stream)
    }

    fn send(&mut self, frames: &[Vec<u8>]) {
        self.0.write_all(&frames.concat()).expect("the service takes it");
    }

    fn receive(&mut self) -> IPCFrame {
        let mut header = [0; 4];
        self.0.read_exact(&mut header).expect("a header");
        let mut payload = vec![0; u32::from_le_bytes(header) as usize];
        self.0.read_exact(&mut payload).expect("a frame");
        IPCFrame::decode(&payload).expect("an IPCFrame")
    }

    /// Waits for the last reply to a request.
    fn await_reply(&mut self, request_id: u64) {
        while self.receive().request_id != Some(request_id) {}
    }

    /// Waits for a command: one of the replies to GetAsyncCommand.
    fn await_command(&mut self, is_it: impl Fn(&esatto_schema::GetAsyncCommandResponseReader<'_>) -> bool) {
        loop {
            let frame = self.receive();
            let Some(reply) = frame.msg_invoke_method_reply.filter(|_| frame.request_id == Some(COMMANDS)) else {
                continue;
            };
            let body = reply.reply_proto.unwrap_or_default();
            if is_it(&esatto_schema::GetAsyncCommandResponseReader::new(&body)) {
                return;
            }
        }
    }
}

/// The request id of GetAsyncCommand, and of Sync, in the capture.
const COMMANDS: u64 = 3;
const SYNC: u64 = 5;

/// The frames at which the producer waited for the service: after Sync for the start, after
/// RegisterTraceWriter for the flush, then for the stop.
const BEFORE_START: usize = 6;
const BEFORE_FLUSH: usize = 8;
const BEFORE_STOP: usize = 10;

#[test]
fn and_leaves_the_same_trace() {
    skip(|| {
        Peer::TraceProcessor.require()?;
        let harness = Harness::new();
        let address = loopback_address();
        let _service = host(&harness, Implementation::Ours, &address);
        let mut relay = Conversation::connect(&address);
        let said = frames("control.c2s.bin");
        relay.send(&said);
        let last = IPCFrame::decode(&said[said.len() - 1][4..]).expect("a frame").request_id.expect("a call");
        relay.await_reply(last);

        let mut producer = Conversation::connect(&address);
        let said = frames("producer.c2s.bin");
        let (registration, rest) = said.split_at(BEFORE_START);
        producer.send(registration);
        producer.await_reply(SYNC);
        let config = std::fs::read_to_string(capture("config.pbtx")).expect("a config");
        let mut recording = harness.record(Implementation::Ours, "trace", &config);
        producer.await_command(|command| command.start_data_source().is_some());
        producer.send(&rest[..BEFORE_FLUSH - BEFORE_START]);
        producer.await_command(|command| command.flush().is_some());
        producer.send(&rest[BEFORE_FLUSH - BEFORE_START..BEFORE_STOP - BEFORE_START]);
        producer.await_command(|command| command.stop_data_source().is_some());
        producer.send(&rest[BEFORE_STOP - BEFORE_START..]);
        let trace = recording.finish();

        let facts = |trace: &Path| {
            let mut rows =
                tp::query(trace, "select raw_id, sysname, release, num_cpus from machine where raw_id != 0;");
            let machine = rows.remove(0);
            (machine, remote_packets(trace))
        };
        assert_eq!(facts(&trace), facts(&capture("trace.pftrace")));
        tp::assert_clean(&trace);
        Ok(())
    });
}

/// Packets from the other machine: the producer's texts, and the number of clock readings.
fn remote_packets(trace: &Path) -> Vec<String> {
    let bytes = std::fs::read(trace).expect("a trace");
    let packets =
        esatto_schema::TraceReader::new(&bytes).packet().filter(|packet| packet.machine_id() == Some(1_011_363_979));
    packets
        .map(|packet| match (packet.for_testing(), packet.remote_clock_sync()) {
            (Some(event), _) => format!("{:?} of {:?}", event.str().map(String::from_utf8_lossy), packet.trusted_pid()),
            (_, Some(sync)) => format!("{} readings", sync.synced_clocks().count()),
            _ => "machine".to_owned(),
        })
        .collect()
}
