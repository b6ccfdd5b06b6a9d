//! Entry points for fuzzers: streams of foreign bytes that become commits, patches and reads. Not
//! part of the API.

use crate::api::{CallId, ClientId, ConsumerCall, Input, MemoryKind, Now, Outputs, Peer, ProducerCall, ServiceConfig};
use crate::buffer::{CentralBuffer, Chunk, FillPolicy, Identity, Patch, ProducerId, WriterId};
use crate::service::Service;
use crate::shared_buffer::ChunkHeader;
use esatto_schema as proto;

/// Drives a central buffer by a script of bytes: chunks of any content, repetitions, patches,
/// reads, clones, ids that are used again.
///
/// # Panics
///
/// If the buffer's books do not balance; that is what a fuzzer looks for.
pub fn fuzz_buffer(script: &[u8]) {
    let mut script = Script(script);
    let options = script.byte();
    let policy = if options & 1 == 0 { FillPolicy::Ring } else { FillPolicy::Discard };
    let Ok(mut buffer) = CentralBuffer::new(if options & 2 == 0 { 4 } else { 64 }, policy) else { return };
    let mut payload = Vec::new();
    while !script.0.is_empty() {
        match script.byte() % 8 {
            0..=3 => {
                let who = script.byte();
                let producer = ProducerId(u16::from(who & 1) + 1);
                let packets = script.u16();
                let header = ChunkHeader {
                    writer_id: u16::from(who >> 1 & 3),
                    // Mostly a few ids around the wrap.
                    chunk_id: u32::from(script.byte() & 0x1f).wrapping_sub(8) << if who & 0x80 == 0 { 0 } else { 26 },
                    count: packets & 0x3ff,
                    flags: (packets >> 10 & 7) as u8,
                };
                let len = usize::from(script.u16()) % if who & 0x40 == 0 { 600 } else { 70_000 };
                let fill = script.byte();
                payload.clear();
                payload.extend_from_slice(script.take(len.min(64)));
                payload.resize(len, fill);
                let (complete, identity) = (who & 0x20 == 0, Identity::default());
                if complete && who & 0x08 != 0 {
                    buffer.copy_from(producer, identity, header, &payload.as_slice(), &mut Vec::new());
                } else {
                    buffer.copy(&Chunk { producer, identity, header, complete, payload: &payload });
                }
            }
            4 => {
                let who = script.byte();
                let chunk_id = u32::from(script.byte() & 0x1f).wrapping_sub(8);
                let patch = Patch { offset: script.u16().into(), data: [script.byte(); 4] };
                let (producer, writer) = (ProducerId(u16::from(who & 1) + 1), WriterId(u16::from(who >> 1 & 3)));
                match who >> 6 {
                    0 | 1 => {
                        buffer.patch(producer, writer, chunk_id, core::iter::once(patch), who & 8 != 0);
                    }
                    2 => buffer.renew_writer(producer, writer),
                    _ => buffer.retire_producer(producer),
                }
            }
            5 => {
                if let Some(mut clone) = buffer.try_clone() {
                    read(&mut clone, usize::MAX);
                }
            }
            6 => read(&mut buffer, usize::from(script.byte())),
            _ => read(&mut buffer, usize::MAX),
        }
        buffer.assert_consistent();
    }
}

fn read(buffer: &mut CentralBuffer, limit: usize) {
    buffer.begin_read();
    for _ in 0..limit {
        let Some(packet) = buffer.next_packet() else { return };
        assert!(packet.size_bytes() > 0, "an empty packet is returned");
        let _ = crate::read::packet_check::check(packet.slices());
    }
}

/// Feeds bytes as one CommitData request of a producer without shared memory into a running
/// session, and reads it.
pub fn fuzz_commit(request: &[u8]) {
    let mut rig = Rig::new();
    rig.producer(ProducerCall::CommitData(proto::CommitDataRequestReader::new(request)));
    rig.producer(ProducerCall::CommitData(proto::CommitDataRequestReader::new(request)));
    rig.consumer(ConsumerCall::ReadBuffers);
    rig.consumer(ConsumerCall::GetTraceStats);
}

/// Feeds bytes as calls of a producer and a consumer: a method number, a length, a request, and so
/// on.
pub fn fuzz_calls(script: &[u8]) {
    let mut rig = Rig::new();
    let mut script = Script(script);
    while !script.0.is_empty() {
        let method = u32::from(script.byte());
        let len = usize::from(script.u16()) % 4096;
        let request = script.take(len);
        rig.now.monotonic_ns += 1_000_000;
        rig.now.boottime_ns += 1_000_000;
        if method & 0x80 == 0 {
            let method = proto::producer_port::Method::ALL[method as usize % proto::producer_port::Method::ALL.len()];
            if let Ok(call) = ProducerCall::parse(method, request) {
                rig.producer(call);
            }
        } else {
            let method = proto::consumer_port::Method::ALL[method as usize % proto::consumer_port::Method::ALL.len()];
            if let Ok(call) = ConsumerCall::parse(method, request) {
                rig.consumer(call);
            }
        }
    }
}

/// A service with a producer and a consumer whose session runs.
struct Rig {
    service: Service,
    now: Now,
    out: Outputs,
    requests: u64,
}

const PRODUCER: ClientId = ClientId(1);
const CONSUMER: ClientId = ClientId(2);

impl Rig {
    fn new() -> Self {
        let system = crate::api::SystemFacts::default();
        let config = ServiceConfig { uid: 0, version: String::new(), system, seed: [1; 32] };
        let (service, now) = (Service::new(config), Now::default());
        let mut rig = Self { service, now, out: Outputs::new(), requests: 0 };
        let peer = Peer { uid: 0, pid: None, machine_id: 0 };
        rig.feed(Input::ProducerConnected { client: PRODUCER, peer, memory: MemoryKind::Emulated });
        rig.feed(Input::ConsumerConnected { client: CONSUMER, peer });
        let hello = proto::InitializeConnectionRequestReader::new(&[]);
        rig.producer(ProducerCall::InitializeConnection { request: hello, offered: None });
        rig.producer(ProducerCall::GetAsyncCommand);
        // data_source_descriptor { name: "d" }
        let descriptor = [0x0a, 3, 0x0a, 1, b'd'];
        rig.producer(ProducerCall::RegisterDataSource(proto::RegisterDataSourceRequestReader::new(&descriptor)));
        // trace_config { buffers { size_kb: 64 } data_sources { config { name: "d" } } }
        let config = [0x0a, 11, 0x0a, 2, 0x08, 64, 0x12, 5, 0x0a, 3, 0x0a, 1, b'd'];
        rig.consumer(ConsumerCall::EnableTracing(proto::EnableTracingRequestReader::new(&config)));
        rig
    }

    fn producer(&mut self, method: ProducerCall<'_>) {
        let call = self.call(PRODUCER);
        self.feed(Input::ProducerCall { call, method });
    }

    fn consumer(&mut self, method: ConsumerCall<'_>) {
        let call = self.call(CONSUMER);
        self.feed(Input::ConsumerCall { call, method, file_attached: self.requests % 2 == 0 });
    }

    fn call(&mut self, client: ClientId) -> CallId {
        self.requests += 1;
        CallId { client, request: self.requests }
    }

    fn feed(&mut self, input: Input<'_>) {
        self.service.handle(&self.now, input, &mut self.out);
        for _ in 0..1000 {
            let Some(output) = self.out.pop() else { break };
            let answer = match output {
                crate::api::Output::AwaitReady(client) => Input::Ready(client),
                crate::api::Output::CreateFile { file, .. } => Input::FileOpened { file, result: Ok(()) },
                crate::api::Output::WriteFile { file, .. } => Input::FileWritten { file, result: Ok(()) },
                crate::api::Output::CopyFile { to, .. } => Input::FileCopied { file: to, result: Ok(()) },
                crate::api::Output::SetPriority { change, .. } => Input::PrioritySet { change, result: Ok(()) },
                _ => continue,
            };
            self.service.handle(&self.now, answer, &mut self.out);
        }
    }
}

/// Bytes to take from; zeros when they are used up.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_script_breaks_a_buffer(script in proptest::collection::vec(any::<u8>(), 0..2000)) {
            super::fuzz_buffer(&script);
        }

        #[test]
        fn no_bytes_break_a_commit(request in proptest::collection::vec(any::<u8>(), 0..500)) {
            super::fuzz_commit(&request);
        }

        #[test]
        fn no_calls_break_the_service(script in proptest::collection::vec(any::<u8>(), 0..500)) {
            super::fuzz_calls(&script);
        }
    }
}
