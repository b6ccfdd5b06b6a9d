//! An arbiter whose commits are recorded, and a service's view of the same memory.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use esatto_protozero::Message;
use esatto_shm::{
    Arbiter, ChunkInfo, CommitRequest, CommitSink, ExhaustedPolicy, Fragment, Fragments, Memory, Options, Packet,
    PrivateRegion, Region, ServiceRegion, TraceWriter,
    abi::{CHUNK_HEADER_SIZE, ChunkHeader, PageSize, PageWord},
};

#[derive(Debug)]
pub(crate) enum Event {
    Register(u16, u16),
    Unregister(u16),
    Commit(CommitRequest),
}

/// What a sink saw, and what the test wants it to do.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) wakes: AtomicUsize,
    pub(crate) delays: Mutex<Vec<Duration>>,
    pub(crate) stalls: Mutex<Vec<Duration>>,
    pub(crate) aborts: AtomicUsize,
    pub(crate) on_connection_thread: AtomicBool,
    /// Takes chunks as a service would, at once.
    pub(crate) service: Mutex<Option<ServiceRegion>>,
    pub(crate) taken: Mutex<Vec<Taken>>,
    /// Called for every stall.
    pub(crate) while_stalled: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

/// A chunk that the service copied.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) info: ChunkInfo,
    pub(crate) payload: Vec<u8>,
}

impl Taken {
    pub(crate) fn fragments(&self) -> Vec<Fragment<'_>> {
        Fragments::new(&self.payload, self.info.count).collect()
    }

    pub(crate) fn sizes(&self) -> Vec<usize> {
        sizes(&self.payload, self.info.count)
    }
}

impl CommitSink for Recorder {
    fn commit(&self, request: CommitRequest) {
        if let Some(service) = &*self.service.lock().unwrap() {
            for entry in &request.moves {
                let mut payload = Vec::new();
                let info = service.take_chunk(entry.page, entry.chunk, &mut payload).unwrap();
                self.taken.lock().unwrap().push(Taken { info, payload });
            }
        }
        self.events.lock().unwrap().push(Event::Commit(request));
    }

    fn register_writer(&self, writer_id: u16, target_buffer: u16) {
        self.events.lock().unwrap().push(Event::Register(writer_id, target_buffer));
    }

    fn unregister_writer(&self, writer_id: u16) {
        self.events.lock().unwrap().push(Event::Unregister(writer_id));
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    fn wake_after(&self, delay: Duration) {
        self.delays.lock().unwrap().push(delay);
    }

    fn is_connection_thread(&self) -> bool {
        self.on_connection_thread.load(Ordering::Relaxed)
    }

    fn stall(&self, duration: Duration) {
        self.stalls.lock().unwrap().push(duration);
        if let Some(hook) = &mut *self.while_stalled.lock().unwrap() {
            hook();
        }
    }

    fn on_stalled_too_long(&self, _writer_id: u16) {
        self.aborts.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct Rig {
    pub(crate) arbiter: Arc<Arbiter>,
    pub(crate) sink: Arc<Recorder>,
    pub(crate) region: Arc<PrivateRegion>,
    pub(crate) service: ServiceRegion,
}

impl Rig {
    pub(crate) fn new(size: usize) -> Self {
        Self::with_options(size, Options::default())
    }

    pub(crate) fn with_options(size: usize, options: Options) -> Self {
        Self::with_page_size(size, PageSize::DEFAULT, options)
    }

    pub(crate) fn with_page_size(size: usize, page_size: PageSize, options: Options) -> Self {
        let region = Arc::new(PrivateRegion::new(size));
        let memory: Arc<dyn Memory> = region.clone();
        let sink = Arc::new(Recorder::default());
        let arbiter = Arbiter::with_options(memory.clone(), page_size, sink.clone(), options).unwrap();
        let service = ServiceRegion::new(memory, page_size).unwrap();
        Self { arbiter, sink, region, service }
    }

    /// From now on chunks are freed as soon as they are committed.
    pub(crate) fn with_service(self) -> Self {
        *self.sink.service.lock().unwrap() = Some(self.service.clone());
        self
    }

    pub(crate) fn writer(&self) -> TraceWriter {
        self.arbiter.create_writer(1, ExhaustedPolicy::Drop)
    }

    /// Sends what is pending and returns the requests since the last call.
    pub(crate) fn commits(&self) -> Vec<CommitRequest> {
        self.arbiter.send_pending();
        let events = std::mem::take(&mut *self.sink.events.lock().unwrap());
        events
            .into_iter()
            .filter_map(|e| match e {
                Event::Commit(request) => Some(request),
                _ => None,
            })
            .collect()
    }

    /// Everything pending in one request.
    pub(crate) fn commit(&self) -> CommitRequest {
        let mut commits = self.commits();
        assert_eq!(commits.len(), 1, "{commits:?}");
        commits.remove(0)
    }

    pub(crate) fn take(&self, page: u32, chunk: u32) -> Taken {
        let mut payload = Vec::new();
        let info = self.service.take_chunk(page, chunk, &mut payload).unwrap();
        Taken { info, payload }
    }

    /// Sends and takes everything.
    pub(crate) fn drain(&self) -> Vec<Taken> {
        self.commits()
            .iter()
            .flat_map(|c| c.moves.iter().map(|m| self.take(m.page, m.chunk)).collect::<Vec<_>>())
            .collect()
    }

    pub(crate) fn word(&self, page: usize) -> PageWord {
        PageWord(self.bytes(page * self.arbiter.page_size().bytes(), 4).try_into().map(u32::from_ne_bytes).unwrap())
    }

    /// Header of the only chunk of a page.
    pub(crate) fn header(&self, page: usize) -> ChunkHeader {
        let at = page * self.arbiter.page_size().bytes() + 8;
        ChunkHeader::from_bytes(self.bytes(at, CHUNK_HEADER_SIZE).try_into().unwrap())
    }

    pub(crate) fn payload(&self, page: usize) -> Vec<u8> {
        let page_size = self.arbiter.page_size().bytes();
        self.bytes(page * page_size + 16, page_size - 16)
    }

    pub(crate) fn bytes(&self, at: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.region.read_into(at, &mut bytes);
        bytes
    }
}

pub(crate) fn sizes(payload: &[u8], count: u16) -> Vec<usize> {
    Fragments::new(payload, count)
        .map(|f| match f {
            Fragment::Data(data) => data.len(),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// The capture's test packet: a timestamp and `TestEvent.str`.
pub(crate) fn test_packet(writer: &mut TraceWriter, timestamp: u64, text: &str) {
    let mut packet = writer.new_packet();
    test_fields(&mut packet, timestamp, text);
}

pub(crate) fn test_fields(packet: &mut Packet<'_>, timestamp: u64, text: &str) {
    let mut message = packet.message();
    message.varint(8, timestamp);
    message.begin(900).string(1, text);
}

/// The capture's nested packet: 100-byte strings in `TestEvent.payload`.
pub(crate) fn nested_packet(writer: &mut TraceWriter, timestamp: u64, strings: usize) {
    let mut packet = writer.new_packet();
    let mut message = packet.message();
    message.varint(8, timestamp);
    let mut event = message.begin(900);
    let mut payload = event.begin(5);
    for _ in 0..strings {
        payload.bytes(1, &[b'n'; 100]);
    }
}

/// A packet of exactly `len` bytes, at least 2.
pub(crate) fn raw_packet(writer: &mut TraceWriter, len: usize) {
    let mut packet = writer.new_packet();
    raw_fields(packet.message(), len);
}

pub(crate) fn raw_fields(mut message: Message<'_>, len: usize) {
    let fits = |n: usize| 1 + if n < 128 { 1 } else { 2 } + n == len;
    let n = (0..len).find(|n| fits(*n)).expect("no field of this length");
    message.bytes(1, &vec![0xab; n]);
    assert_eq!(message.len(), len);
}

/// A first packet, so that those behind it have no additions of the writer. Takes 4 bytes.
pub(crate) fn first_packet(writer: &mut TraceWriter) {
    writer.new_packet();
}
