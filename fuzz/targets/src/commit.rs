//! Commits by value.

use esatto_schema as proto;
use esatto_service::{
    CallId, ClientId, ConsumerCall, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall, Service,
    ServiceConfig, SystemFacts,
};

const PRODUCER: ClientId = ClientId(1);
const CONSUMER: ClientId = ClientId(2);

/// A CommitData request of a producer without shared memory, committed twice into a running
/// session, which is then read.
pub fn service_commit(request: &[u8]) {
    let mut session = Session::start();
    session.producer(ProducerCall::CommitData(proto::CommitDataRequestReader::new(request)));
    session.producer(ProducerCall::CommitData(proto::CommitDataRequestReader::new(request)));
    session.consumer(ConsumerCall::ReadBuffers(proto::ReadBuffersRequestReader::default()));
    session.consumer(ConsumerCall::GetTraceStats(proto::GetTraceStatsRequestReader::default()));
}

/// A service with a producer and a consumer whose session runs.
struct Session {
    service: Service,
    out: Outputs,
    requests: u64,
}

impl Session {
    fn start() -> Self {
        let config = ServiceConfig { uid: 0, version: String::new(), system: SystemFacts::default(), seed: [1; 32] };
        let mut session = Self { service: Service::new(config), out: Outputs::new(), requests: 0 };
        let peer = Peer { uid: 0, pid: None, machine_id: 0 };
        session.feed(Input::ProducerConnected { client: PRODUCER, peer, memory: MemoryKind::Emulated });
        session.feed(Input::ConsumerConnected { client: CONSUMER, peer });
        session.producer(ProducerCall::InitializeConnection(proto::InitializeConnectionRequestReader::default()));
        session.producer(ProducerCall::GetAsyncCommand(proto::GetAsyncCommandRequestReader::default()));
        // data_source_descriptor { name: "d" }
        let descriptor = [0x0a, 3, 0x0a, 1, b'd'];
        session.producer(ProducerCall::RegisterDataSource(proto::RegisterDataSourceRequestReader::new(&descriptor)));
        // trace_config { buffers { size_kb: 64 } data_sources { config { name: "d" } } }
        let config = [0x0a, 11, 0x0a, 2, 0x08, 64, 0x12, 5, 0x0a, 3, 0x0a, 1, b'd'];
        session.consumer(ConsumerCall::EnableTracing(proto::EnableTracingRequestReader::new(&config)));
        session
    }

    fn producer(&mut self, method: ProducerCall<'_>) {
        let call = self.call(PRODUCER);
        self.feed(Input::ProducerCall { call, method, offered: None });
    }

    fn consumer(&mut self, method: ConsumerCall<'_>) {
        let call = self.call(CONSUMER);
        self.feed(Input::ConsumerCall { call, method, file_attached: false });
    }

    fn call(&mut self, client: ClientId) -> CallId {
        self.requests += 1;
        CallId { client, request: self.requests }
    }

    fn feed(&mut self, input: Input<'_>) {
        let now = Now::default();
        self.service.handle(&now, input, &mut self.out);
        while let Some(output) = self.out.pop() {
            if let Output::AwaitReady(client) = output {
                self.service.handle(&now, Input::Ready(client), &mut self.out);
            }
        }
    }
}
