//! The consumer's half of the protocol: one tracing session (`docs/spec/wire-protocol.md` §§12-15). Knows nothing of
//! sockets.

use core::mem;
use std::sync::mpsc::Sender;

use esatto_protozero::{Owned, wire};
use esatto_schema::{
    EnableTracingRequest, EnableTracingResponseReader, FlushRequest, ObserveEventsRequest, ObserveEventsResponseReader,
    ReadBuffersResponseReader, TraceConfig, consumer_port::Method, observable_events,
};

use super::call::{Call, Reply};

/// Flush initiated by an SDK (3), asked for explicitly (4): `docs/spec/wire-protocol.md` §9, flush flags.
const FLUSH_FLAGS: u64 = 3 << 4 | 4;

/// What a session's owner wants.
#[derive(Debug)]
pub(crate) enum Command {
    Start(Box<TraceConfig>),
    Flush { timeout_ms: u32 },
    Stop,
    Read,
}

/// What happened to a session.
#[derive(Debug)]
pub(crate) enum Event {
    /// All data sources have started.
    Started,
    /// The session is over; with a text if it failed.
    Ended(Option<String>),
    /// A flush ended, successfully or not.
    Flushed(bool),
    /// Whole packets as they stand in a trace file.
    Data(Vec<u8>),
    /// Everything there was to read has been delivered.
    ReadDone,
    /// The service is gone; nothing else follows.
    Disconnected(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Observe,
    Enable,
    Flush,
    Read,
}

#[derive(Debug)]
pub(crate) struct Consumer {
    calls: Vec<Call<Tag>>,
    events: Sender<Event>,
    /// Slices of a packet whose end has not arrived.
    packet: Vec<u8>,
}

impl Consumer {
    pub(crate) fn new(events: Sender<Event>) -> Self {
        Self { calls: Vec::new(), events, packet: Vec::new() }
    }

    pub(crate) fn take_calls(&mut self) -> Vec<Call<Tag>> {
        mem::take(&mut self.calls)
    }

    pub(crate) fn command(&mut self, command: Command) {
        match command {
            Command::Start(config) => {
                use observable_events::Type;
                let observe = ObserveEventsRequest {
                    events_to_observe: vec![Type::TYPE_ALL_DATA_SOURCES_STARTED],
                    ..Default::default()
                };
                self.call(Method::ObserveEvents, &observe.encode(), Some(Tag::Observe));
                let enable = EnableTracingRequest { trace_config: Some(config), ..Default::default() };
                self.call(Method::EnableTracing, &enable.encode(), Some(Tag::Enable));
            }
            Command::Flush { timeout_ms } => {
                let request =
                    FlushRequest { timeout_ms: Some(timeout_ms), flags: Some(FLUSH_FLAGS), ..Default::default() };
                self.call(Method::Flush, &request.encode(), Some(Tag::Flush));
            }
            Command::Stop => self.call(Method::DisableTracing, &[], None),
            Command::Read => self.call(Method::ReadBuffers, &[], Some(Tag::Read)),
        }
    }

    pub(crate) fn reply(&mut self, tag: Tag, reply: &Reply<'_>) {
        match tag {
            Tag::Observe => {
                let events = ObserveEventsResponseReader::new(reply.body).events();
                let started = events.and_then(|e| e.all_data_sources_started()).unwrap_or(false);
                // A service without this method starts at once.
                if started || !reply.success {
                    self.send(Event::Started);
                }
            }
            Tag::Enable => {
                let error = EnableTracingResponseReader::new(reply.body).error();
                let error = error.map(|text| String::from_utf8_lossy(text).into_owned());
                let rejected = (!reply.success).then(|| "the service rejected the session".into());
                self.send(Event::Ended(error.or(rejected)));
            }
            Tag::Flush => self.send(Event::Flushed(reply.success)),
            Tag::Read => self.data(reply),
        }
    }

    /// The service does not have the method.
    pub(crate) fn rejected(&mut self, tag: Tag) {
        let reply = Reply { success: false, has_more: false, body: &[], memory: &mut None };
        self.reply(tag, &reply);
    }

    pub(crate) fn disconnected(&mut self, why: String) {
        self.send(Event::Disconnected(why));
    }

    fn data(&mut self, reply: &Reply<'_>) {
        let mut trace = Vec::new();
        for slice in ReadBuffersResponseReader::new(reply.body).slices() {
            self.packet.extend_from_slice(slice.data().unwrap_or_default());
            if slice.last_slice_for_packet().unwrap_or(false) {
                append_packet(&mut trace, &self.packet);
                self.packet.clear();
            }
        }
        if !trace.is_empty() {
            self.send(Event::Data(trace));
        }
        if !reply.has_more {
            self.packet.clear();
            self.send(Event::ReadDone);
        }
    }

    fn call(&mut self, method: Method, args: &[u8], tag: Option<Tag>) {
        self.calls.push(Call { method: method.name(), args: args.to_vec(), tag });
    }

    fn send(&self, event: Event) {
        // The session's handle may be gone; the connection then follows.
        let _ = self.events.send(event);
    }
}

/// Appends a packet the way trace files hold it: `Trace.packet`, with the shortest length.
fn append_packet(trace: &mut Vec<u8>, packet: &[u8]) {
    const TAG: u8 = wire::tag(1, wire::WireType::LengthDelimited) as u8;
    let mut length = [0; wire::MAX_VARINT_SIZE];
    let n = wire::encode_varint(packet.len() as u64, &mut length);
    trace.push(TAG);
    trace.extend_from_slice(&length[..n]);
    trace.extend_from_slice(packet);
}
