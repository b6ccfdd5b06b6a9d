//! Test setup: an arbiter whose commits are recorded, and a service's view of the same memory.

use std::{
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use esatto_protozero::Message;
use esatto_shm::{
    Arbiter, ChunkInfo, CommitRequest, ExhaustedPolicy, Fragment, Fragments, Memory, Notify, Options, Outgoing, Packet,
    PrivateRegion, Region, ServiceRegion, TraceWriter,
    abi::{CHUNK_HEADER_SIZE, ChunkHeader, PageSize, PageWord},
};

/// Recorder of the arbiter's notifications and calls, with reactions that a test can set.
#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) outgoing: Mutex<Vec<Outgoing>>,
    pub(crate) wakes: AtomicUsize,
    pub(crate) delays: Mutex<Vec<Duration>>,
    pub(crate) stalls: Mutex<Vec<Duration>>,
    pub(crate) on_connection_thread: AtomicBool,
    arbiter: OnceLock<Weak<Arbiter>>,
    /// If set, takes chunks at once, as a service does.
    pub(crate) service: Mutex<Option<ServiceRegion>>,
    pub(crate) taken: Mutex<Vec<Taken>>,
    /// If set, called for every stall.
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

impl Recorder {
    /// Sends the pending commits. Threads that do so at the same time keep the order of the calls.
    pub(crate) fn send_pending(&self) {
        let Some(arbiter) = self.arbiter.get().and_then(Weak::upgrade) else { return };
        let mut sent = self.outgoing.lock().unwrap();
        while let Some(outgoing) = arbiter.poll_outgoing() {
            if let Outgoing::Commit(request) = &outgoing {
                self.take(request);
            }
            sent.push(outgoing);
        }
    }

    fn take(&self, request: &CommitRequest) {
        let Some(service) = &*self.service.lock().unwrap() else { return };
        for entry in &request.moves {
            let mut payload = Vec::new();
            let info = service.take_chunk(entry.page, entry.chunk, &mut payload).unwrap();
            self.taken.lock().unwrap().push(Taken { info, payload });
        }
    }
}

impl Notify for Recorder {
    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    fn wake_after(&self, delay: Duration) {
        self.delays.lock().unwrap().push(delay);
    }

    fn send_on_connection_thread(&self) -> bool {
        let is_here = self.on_connection_thread.load(Ordering::Relaxed);
        if is_here {
            self.send_pending();
        }
        is_here
    }

    fn stall(&self, duration: Duration) {
        self.stalls.lock().unwrap().push(duration);
        if let Some(hook) = &mut *self.while_stalled.lock().unwrap() {
            hook();
        }
    }
}

pub(crate) struct Rig {
    pub(crate) arbiter: Arc<Arbiter>,
    pub(crate) recorder: Arc<Recorder>,
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
        let recorder = Arc::new(Recorder::default());
        let arbiter = Arbiter::with_options(memory.clone(), page_size, recorder.clone(), options).unwrap();
        recorder.arbiter.set(Arc::downgrade(&arbiter)).unwrap();
        let service = ServiceRegion::new(memory, page_size).unwrap();
        Self { arbiter, recorder, region, service }
    }

    /// Makes commits free their chunks at once.
    pub(crate) fn with_service(self) -> Self {
        *self.recorder.service.lock().unwrap() = Some(self.service.clone());
        self
    }

    pub(crate) fn writer(&self) -> TraceWriter {
        self.arbiter.create_writer(1, ExhaustedPolicy::Drop)
    }

    /// Sends the pending commits.
    pub(crate) fn send_pending(&self) {
        self.recorder.send_pending();
    }

    /// Acknowledges a flush, and sends the pending commits.
    pub(crate) fn acknowledge_flush(&self, flush_request_id: u64) {
        self.arbiter.acknowledge_flush(flush_request_id);
        self.send_pending();
    }

    /// Sends the pending commits and returns the requests since the last call.
    pub(crate) fn commits(&self) -> Vec<CommitRequest> {
        self.send_pending();
        let outgoing = std::mem::take(&mut *self.recorder.outgoing.lock().unwrap());
        outgoing
            .into_iter()
            .filter_map(|outgoing| match outgoing {
                Outgoing::Commit(request) => Some(request),
                _ => None,
            })
            .collect()
    }

    /// Returns everything pending, which must be one request.
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

    /// Returns the header of the only chunk of a page.
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

/// Writes the capture's test packet: a timestamp and `TestEvent.str`.
pub(crate) fn test_packet(writer: &mut TraceWriter, timestamp: u64, text: &str) {
    let mut packet = writer.new_packet();
    test_fields(&mut packet, timestamp, text);
}

pub(crate) fn test_fields(packet: &mut Packet<'_>, timestamp: u64, text: &str) {
    let mut message = packet.message();
    message.varint(8, timestamp);
    message.begin(900).string(1, text);
}

/// Writes the capture's nested packet: 100-byte strings in `TestEvent.payload`.
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

/// Writes a packet of exactly `len` bytes, at least 2.
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

/// Writes a first packet, so that the writer adds no fields to later packets. It takes 4 bytes.
pub(crate) fn first_packet(writer: &mut TraceWriter) {
    writer.new_packet();
}
