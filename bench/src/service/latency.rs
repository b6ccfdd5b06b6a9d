//! How long clients wait: from enabling to the first packet, for a flush of a hundred producers,
//! from stopping to the whole trace.
//!
//! One thread plays all clients. So the part measures a chain of messages, and nothing runs beside
//! the service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use esatto_ipc::{Address, BlockingClient, RequestId};
use esatto_protozero::{HeapBuffer, Owned as _};
use esatto_schema::{
    CommitDataRequest, DisableTracingRequest, EnableTracingRequest, FlushRequest, FreeBuffersRequest,
    GetAsyncCommandResponse, InitializeConnectionRequest, ReadBuffersRequest, ReadBuffersResponseReader,
    RegisterDataSourceRequest,
};
use esatto_shm::abi::PageSize;
use esatto_shm::{Arbiter, ExhaustedPolicy, MappedRegion, Memory, Outgoing, TraceWriter};

use super::participants::{self, DEADLINE, Kind, Service};
use super::{GROUP, PEER};
use crate::options::Options;
use crate::row::{Of, Row};
use crate::stats;

const SOURCE: &str = "bench.latency";
/// Of each measurement, in a round.
const REPETITIONS: usize = 20;
const FLUSHED_PRODUCERS: usize = 100;
/// Packets in the buffer when a session is stopped.
const TRACE_PACKETS: usize = 256;
const PACKET_BYTES: usize = 4000;

/// Samples of one kind of service.
type Measure = fn(&Kind) -> Result<Vec<f64>, String>;

const CASES: [(&str, Measure); 3] = [
    ("enable to first packet read", first_packets),
    ("flush of 100 producers", flushes),
    ("stop to trace of 1 MiB read", stops),
];

pub(super) fn rows(options: &Options, kinds: &[Kind]) -> Result<Vec<Row>, String> {
    let mut times = BTreeMap::<(&str, &str), Vec<f64>>::new();
    for round in 1..=options.rounds {
        eprintln!("bench: service latency, round {round} of {}", options.rounds);
        for (case, measure) in CASES {
            for kind in kinds {
                times.entry((case, kind.name)).or_default().extend(measure(kind)?);
            }
        }
    }
    let peer = kinds.get(1).map(|kind| kind.name);
    let row = |(case, _): (&'static str, _)| {
        let of =
            |kind: &str, value: fn(&[f64]) -> f64| times.get(&(case, kind)).map_or(0.0, |times| value(times) * 1e6);
        let row = |name: &str, value: fn(&[f64]) -> f64| {
            let row = Row::new(GROUP, format!("{case}, {name}"), "us", of("esatto", value));
            row.beside(PEER, peer.map(|peer| of(peer, value)))
        };
        [row("median", stats::median).reach(Of::Peer, 1.0), row("minimum", stats::min)]
    };
    Ok(CASES.into_iter().flat_map(row).collect())
}

/// Seconds from EnableTracing until the first packet of a producer that was there before is in the
/// hands of the consumer.
fn first_packets(kind: &Kind) -> Result<Vec<f64>, String> {
    let service = Service::start(kind)?;
    let mut producer = Producer::connect(&service)?;
    let mut session = Session::open(&service)?;
    repeat(|| {
        let begin = Instant::now();
        session.enable()?;
        producer.await_start()?;
        producer.write(1)?;
        if session.read()? == 0 {
            return Err(format!("{}: no packet", kind.name));
        }
        let elapsed = begin.elapsed();
        session.free()?;
        Ok(elapsed)
    })
}

/// Seconds from Flush until its reply, with producers that have nothing to commit.
fn flushes(kind: &Kind) -> Result<Vec<f64>, String> {
    let service = Service::start(kind)?;
    let mut producers = (0..FLUSHED_PRODUCERS).map(|_| Producer::connect(&service)).collect::<Result<Vec<_>, _>>()?;
    let mut session = Session::open(&service)?;
    session.enable()?;
    for producer in &mut producers {
        producer.await_start()?;
    }
    let request = FlushRequest { timeout_ms: Some(60_000), ..FlushRequest::default() }.encode();
    repeat(|| {
        let begin = Instant::now();
        let flush = session.consumer.send("Flush", &request, None).map_err(text)?;
        for producer in &mut producers {
            producer.follow_flush()?;
        }
        let reply = session.consumer.wait_reply(flush, Some(DEADLINE)).map_err(text)?;
        let elapsed = begin.elapsed();
        if reply.success { Ok(elapsed) } else { Err(format!("{}: a flush failed", kind.name)) }
    })
}

/// Seconds from DisableTracing until the whole trace is read.
fn stops(kind: &Kind) -> Result<Vec<f64>, String> {
    let service = Service::start(kind)?;
    let mut producer = Producer::connect(&service)?;
    let mut session = Session::open(&service)?;
    repeat(|| {
        let enabled = session.enable()?;
        producer.await_start()?;
        for _ in 0..TRACE_PACKETS {
            producer.write(PACKET_BYTES)?;
        }
        let begin = Instant::now();
        session.call("DisableTracing", &DisableTracingRequest::default().encode())?;
        session.consumer.wait_reply(enabled, Some(DEADLINE)).map_err(text)?;
        let found = session.read()?;
        let elapsed = begin.elapsed();
        session.free()?;
        if found != TRACE_PACKETS {
            return Err(format!("{}: {found} of {TRACE_PACKETS} packets", kind.name));
        }
        Ok(elapsed)
    })
}

/// The first one does not count: it pays for memory that is there afterwards.
fn repeat(mut measure: impl FnMut() -> Result<Duration, String>) -> Result<Vec<f64>, String> {
    measure()?;
    (0..REPETITIONS).map(|_| Ok(measure()?.as_secs_f64())).collect()
}

/// A consumer, and session after session.
struct Session {
    consumer: BlockingClient,
    config: Vec<u8>,
}

impl Session {
    fn open(service: &Service) -> Result<Self, String> {
        let config = participants::config(SOURCE, 16 << 10);
        let request = EnableTracingRequest { trace_config: Some(config.into()), ..EnableTracingRequest::default() };
        Ok(Self { consumer: service.consumer()?, config: request.encode() })
    }

    fn enable(&mut self) -> Result<RequestId, String> {
        self.consumer.send("EnableTracing", &self.config, None).map_err(text)
    }

    fn call(&mut self, method: &'static str, request: &[u8]) -> Result<(), String> {
        let reply = self.consumer.call(method, request, Some(DEADLINE)).map_err(text)?;
        if reply.success { Ok(()) } else { Err(format!("{method} was rejected")) }
    }

    fn free(&mut self) -> Result<(), String> {
        self.call("FreeBuffers", &FreeBuffersRequest::default().encode())
    }

    /// Reads everything; how many packets of producers were in it.
    fn read(&mut self) -> Result<usize, String> {
        let request = ReadBuffersRequest::default().encode();
        let reading = self.consumer.send("ReadBuffers", &request, None).map_err(text)?;
        let mut found = 0;
        loop {
            let reply = self.consumer.wait_reply(reading, Some(DEADLINE)).map_err(text)?;
            let slices = ReadBuffersResponseReader::new(&reply.body);
            found += slices.slices().filter(|slice| slice.data().is_some_and(is_from_here)).count();
            if !reply.has_more {
                return Ok(found);
            }
        }
    }
}

/// Tests if a packet comes from the producers of this benchmark.
fn is_from_here(packet: &[u8]) -> bool {
    /// Tag of `TracePacket.for_testing` (900).
    const FOR_TESTING: [u8; 2] = [0xa2, 0x38];
    /// `first_packet_on_sequence` (87), which the writer puts in front of its first one.
    const FIRST: [u8; 3] = [0xb8, 0x05, 0x01];
    packet.strip_prefix(&FIRST).unwrap_or(packet).starts_with(&FOR_TESTING)
}

/// A producer with a data source.
struct Producer {
    client: BlockingClient,
    commands: RequestId,
    arbiter: Option<Arc<Arbiter>>,
    writer: TraceWriter,
}

impl Producer {
    fn connect(service: &Service) -> Result<Self, String> {
        let address = Address::parse(service.folder().join("p.sock")).map_err(text)?;
        let mut client = BlockingClient::connect(&address, "ProducerPort", DEADLINE).map_err(text)?;
        let request = InitializeConnectionRequest {
            producer_name: Some("bench-latency".into()),
            ..InitializeConnectionRequest::default()
        };
        client.call("InitializeConnection", &request.encode(), Some(DEADLINE)).map_err(text)?;
        let commands = client.send("GetAsyncCommand", &[], None).map_err(text)?;
        let mut request = RegisterDataSourceRequest::default();
        request.data_source_descriptor.get_or_insert_default().name = Some(SOURCE.into());
        client.call("RegisterDataSource", &request.encode(), Some(DEADLINE)).map_err(text)?;
        Ok(Self { client, commands, arbiter: None, writer: TraceWriter::null() })
    }

    fn command(&mut self) -> Result<GetAsyncCommandResponse, String> {
        let reply = self.client.wait_reply(self.commands, Some(DEADLINE)).map_err(text)?;
        reply.decode().map_err(text)
    }

    /// Follows the commands up to the start of the data source.
    fn await_start(&mut self) -> Result<(), String> {
        loop {
            let command = self.command()?;
            if let Some(setup) = &command.setup_tracing {
                let fd = self.client.take_fd().ok_or("no shared memory came")?;
                let region: Arc<dyn Memory> = Arc::new(MappedRegion::from_service(fd).map_err(text)?);
                let page_size = PageSize::new(setup.shared_buffer_page_size_kb.unwrap_or(4) as usize * 1024);
                self.arbiter = Some(Arbiter::new(region, page_size.map_err(text)?, Arc::new(())).map_err(text)?);
            }
            if let Some(start) = &command.start_data_source {
                let buffer = start.config.as_ref().and_then(|config| config.target_buffer);
                let buffer = buffer.and_then(|id| u16::try_from(id).ok()).ok_or("no buffer to write to")?;
                let arbiter = self.arbiter.as_ref().ok_or("started before set up")?;
                self.writer = arbiter.create_writer(buffer, ExhaustedPolicy::Drop);
                return Ok(());
            }
        }
    }

    /// Follows the commands up to a flush, and says that it is done.
    fn follow_flush(&mut self) -> Result<(), String> {
        loop {
            if let Some(flush) = &self.command()?.flush {
                let request = CommitDataRequest { flush_request_id: flush.request_id, ..CommitDataRequest::default() };
                return self.client.send_one_way("CommitData", &request.encode()).map_err(text);
            }
        }
    }

    /// Writes a packet and waits until the service has it.
    fn write(&mut self, bytes: usize) -> Result<(), String> {
        let mut packet = HeapBuffer::new();
        esatto_schema::TracePacketWriter::from(packet.message()).for_testing().str("x".repeat(bytes));
        self.writer.new_packet().message().raw(&packet.to_vec());
        self.writer.flush();
        let arbiter = self.arbiter.as_ref().ok_or("not set up")?;
        while let Some(outgoing) = arbiter.poll_outgoing() {
            let Outgoing::Commit(request) = outgoing else { continue };
            let mut buffer = HeapBuffer::new();
            request.write_to(&mut buffer.message());
            self.client.call("CommitData", &buffer.to_vec(), Some(DEADLINE)).map_err(text)?;
        }
        Ok(())
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
