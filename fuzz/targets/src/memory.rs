//! Shared memory that its producer changes while the service takes chunks out of it and scrapes it.

use esatto_ports::Rpc as _;
use esatto_ports::{consumer_port, producer_port};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use esatto_service::{
    CallId, ClientId, ConsumerCall, Input, MemoryKind, Now, Output, Outputs, Peer, ProducerCall, Service,
    ServiceConfig, SystemFacts,
};
use esatto_shm::{PrivateRegion, Region, ServiceRegion, abi::PageSize};

use crate::bytes::message;
use crate::script::Script;

const PRODUCER: ClientId = ClientId(1);
const CONSUMER: ClientId = ClientId(2);
const PAGES: usize = 4;
/// Changes of one script that are made over and over.
const MAX_CHANGES: usize = 64;

/// One thread writes numbers into the memory, over and over, as the first half of the script says.
/// The service takes chunks and scrapes, as the second half says. The packets are read.
///
/// Races are not the same every time: it may take many runs to repeat a finding. `shm_region` is
/// the same in one thread, at every load.
pub fn service_shm(bytes: &[u8]) {
    let (changes, commits) = bytes.split_at(bytes.len() / 2);
    let mut memory = vec![0; PAGES * PageSize::MIN];
    for (place, byte) in memory.iter_mut().zip(bytes.iter().cycle()) {
        *place = *byte;
    }
    let region = Arc::new(PrivateRegion::from_bytes(&memory));
    let changes = parse(changes);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| scribble(&region, &changes, &done));
        let _end = End(&done);
        serve(&region, commits);
    });
}

/// Ends the scribbling, also when the service panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Places, all multiples of 4, and numbers: half of them page words, which matter most.
fn parse(bytes: &[u8]) -> Vec<(usize, u32)> {
    let mut script = Script::new(bytes);
    let mut changes = Vec::new();
    while !script.is_empty() && changes.len() < MAX_CHANGES {
        let place = usize::from(script.u16());
        let page = place % PAGES * PageSize::MIN;
        let offset = match place >> 2 & 7 {
            0..=3 => 0,
            // Headers of the first chunk, and anything.
            4 => 8,
            5 => 12,
            _ => place >> 5 << 2 & (PageSize::MIN - 1),
        };
        let value = match script.u8() {
            // Words of pages with complete chunks.
            kind @ 0..=4 => [0x1000_0003, 0x2000_000f, 0x3000_00ff, 0x4000_3fff, 0x5fff_ffff][usize::from(kind)],
            _ => u32::from(script.u16()) << 16 | u32::from(script.u16()),
        };
        changes.push((page + offset, value));
    }
    changes
}

fn scribble(region: &PrivateRegion, changes: &[(usize, u32)], done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        for &(offset, value) in changes {
            region.atomic_u32(offset).store(value, Ordering::Relaxed);
        }
        if changes.is_empty() {
            return;
        }
    }
}

/// A session that records the producer of this memory.
fn serve(region: &Arc<PrivateRegion>, commits: &[u8]) {
    let config = ServiceConfig { uid: 0, version: "fuzzed".to_owned(), system: SystemFacts::default(), seed: [7; 32] };
    let mut service = Service::new(config);
    let mut requests = 0;
    let peer = Peer { uid: 0, pid: None, machine_id: 0 };
    let mut feed = |input: Input<'_>| {
        let mut out = Outputs::new();
        let now = Now::default();
        service.handle(&now, input, &mut out);
        while let Some(output) = out.pop() {
            match output {
                Output::CreateSharedBuffer { client, page_size_bytes, .. } => {
                    let page_size = PageSize::new(page_size_bytes).expect("the service's choice");
                    let region =
                        ServiceRegion::new(Arc::<PrivateRegion>::clone(region), page_size).expect("four pages");
                    let buffer = Some(Box::new(region) as Box<_>);
                    service.handle(&now, Input::SharedBufferCreated { client, buffer }, &mut out);
                }
                Output::AwaitReady(client) => service.handle(&now, Input::Ready(client), &mut out),
                _ => {}
            }
        }
    };
    let mut producer = |method: u32, args: &[u8], feed: &mut dyn FnMut(Input<'_>)| {
        requests += 1;
        let method = ProducerCall::read(method, args).expect("own arguments");
        feed(Input::ProducerCall { call: CallId { client: PRODUCER, request: requests }, method, offered: None });
    };
    let mut reads = 1 << 32;
    let mut consumer = |method: u32, args: &[u8], feed: &mut dyn FnMut(Input<'_>)| {
        reads += 1;
        let method = ConsumerCall::read(method, args).expect("own arguments");
        let call = CallId { client: CONSUMER, request: reads };
        feed(Input::ConsumerCall { call, method, file_attached: false });
    };
    feed(Input::ConsumerConnected { client: CONSUMER, peer });
    let source = message(1, &message(1, b"d"));
    let session = [message(1, &[0x08, 64]), message(2, &source)].concat();
    consumer(consumer_port::method::EnableTracing::METHOD, &message(1, &session), &mut feed);
    feed(Input::ProducerConnected { client: PRODUCER, peer, memory: MemoryKind::Shared });
    // smb_scraping_mode: enabled
    producer(producer_port::method::InitializeConnection::METHOD, &[0x20, 1], &mut feed);
    producer(producer_port::method::GetAsyncCommand::METHOD, &[], &mut feed);
    producer(producer_port::method::RegisterDataSource::METHOD, &message(1, &message(1, b"d")), &mut feed);
    for writer in 1..4 {
        producer(producer_port::method::RegisterTraceWriter::METHOD, &[0x08, writer, 0x10, 1], &mut feed);
    }
    for step in commits.chunks(2) {
        match step[0] % 8 {
            // Scrapes, because no producer acknowledges the flush before.
            0 => {
                consumer(consumer_port::method::Flush::METHOD, &[], &mut feed);
                producer(producer_port::method::CommitData::METHOD, &[0x18, 0xff, 0xff, 3], &mut feed);
            }
            1 => consumer(consumer_port::method::ReadBuffers::METHOD, &[], &mut feed),
            // page, chunk, target_buffer: 1
            _ => {
                let chunk = step.get(1).copied().unwrap_or(0) & 15;
                let moved = [0x08, step[0] >> 3 & 7, 0x10, chunk, 0x18, 1];
                producer(producer_port::method::CommitData::METHOD, &message(1, &moved), &mut feed);
            }
        }
    }
    feed(Input::ProducerDisconnected(PRODUCER));
    consumer(consumer_port::method::ReadBuffers::METHOD, &[], &mut feed);
    feed(Input::ConsumerDisconnected(CONSUMER));
}
