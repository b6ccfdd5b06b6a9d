//! Connections, which delay and cut their bytes.

use std::collections::VecDeque;
use std::sync::Arc;

use esatto_ipc::{FrameDecoder, Host, frame::encode};
use esatto_ports::{consumer_port, producer_port, relay_port};
use esatto_service::{ClientId, MemoryKind, Peer};
use esatto_shm::PrivateRegion;

use crate::world::{Actor, Event, World, trace};

/// The ports of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// The producer port.
    Producer,
    /// The consumer port.
    Consumer,
    /// The relay port.
    Relay,
}

/// An attachment of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attached {
    /// The descriptor of a trace file.
    File,
    /// Memory of the producer.
    Memory,
}

/// A region that a producer and the service share.
#[derive(Clone, Debug)]
pub struct SharedMemory {
    /// The memory.
    pub region: Arc<PrivateRegion>,
    /// Bytes of a page.
    pub page_size: usize,
}

/// A connection, both ends of it.
#[derive(Debug)]
pub struct Client {
    /// The service's name for it.
    pub id: ClientId,
    /// Credentials.
    pub peer: Peer,
    /// The way of its chunks.
    pub memory_kind: MemoryKind,
    /// The port that it is connected to.
    pub port: Port,
    /// True if it writes into memory while the service reads it.
    pub is_hostile: bool,
    pub(crate) host: Host,
    pub(crate) decoder: FrameDecoder,
    pub(crate) introduced: bool,
    pub(crate) last_call: u64,
    up: VecDeque<(u64, Vec<u8>)>,
    down: VecDeque<(u64, Vec<u8>)>,
    down_decoder: FrameDecoder,
    sent_bytes: u64,
    attached: VecDeque<(u64, Attached)>,
    next_request: u64,
    /// True while the service's end is open.
    pub is_open: bool,
    /// True while the client lives.
    pub is_alive: bool,
    /// Number of calls of RegisterDataSource that the service took.
    pub(crate) registered: usize,
    /// The memory that the producer brought or was given.
    pub memory: Option<SharedMemory>,
}

/// A reply as a client sees it.
#[derive(Clone, Copy, Debug)]
pub struct ClientReply<'a> {
    /// The client's number.
    pub request: u64,
    /// True if the call was not rejected.
    pub success: bool,
    /// True if more replies follow.
    pub has_more: bool,
    /// The message.
    pub body: &'a [u8],
}

impl World {
    /// Adds a connection. The caller adds its actor.
    pub fn connect(&mut self, peer: Peer, memory_kind: MemoryKind, port: Port, is_hostile: bool) -> usize {
        let index = self.clients.len();
        let ports = match port {
            Port::Producer => &producer_port::SERVICE,
            Port::Consumer => &consumer_port::SERVICE,
            Port::Relay => &relay_port::SERVICE,
        };
        let ipc_peer = esatto_ipc::Peer::local(peer.uid as u32, peer.pid);
        self.clients.push(Client {
            id: ClientId(index as u64),
            peer,
            memory_kind,
            port,
            is_hostile,
            host: Host::new(Arc::new([ports]), ipc_peer),
            decoder: FrameDecoder::new(),
            introduced: false,
            last_call: 0,
            up: VecDeque::new(),
            down: VecDeque::new(),
            down_decoder: FrameDecoder::new(),
            sent_bytes: 0,
            attached: VecDeque::new(),
            next_request: 1,
            is_open: true,
            is_alive: true,
            registered: 0,
            memory: None,
        });
        self.actors.push(None);
        self.tally.producers += u64::from(port == Port::Producer);
        let mut bind = Vec::new();
        encode::bind_service(&mut bind, 1, ports.name).expect("a short name");
        self.send(index, bind, None);
        index
    }

    /// Calls a method for a client. Returns the number of the request.
    pub fn call(&mut self, client: usize, method: u32, args: &[u8], drop_reply: bool) -> u64 {
        self.call_with(client, method, args, drop_reply, None)
    }

    /// Does the same with an attachment.
    pub fn call_with(
        &mut self,
        client: usize,
        method: u32,
        args: &[u8],
        drop_reply: bool,
        attached: Option<Attached>,
    ) -> u64 {
        self.clients[client].next_request += 1;
        let request = self.clients[client].next_request;
        let mut frame = Vec::with_capacity(args.len() + 32);
        if encode::invoke_method(&mut frame, request, 1, method, args, drop_reply).is_ok() {
            self.send(client, frame, attached);
        }
        request
    }

    /// Sends bytes for a client. They arrive later, in order, perhaps in two pieces.
    pub fn send(&mut self, client: usize, bytes: Vec<u8>, attached: Option<Attached>) {
        if !self.clients[client].is_alive {
            return;
        }
        self.clients[client].sent_bytes += bytes.len() as u64;
        let end = self.clients[client].sent_bytes;
        self.clients[client].attached.extend(attached.map(|attached| (end, attached)));
        let mut pieces = [bytes, Vec::new()];
        if pieces[0].len() > 1 && self.rng.percent(self.profile.cut) {
            let at = self.rng.between(1, pieces[0].len() as u64 - 1) as usize;
            pieces[1] = pieces[0].split_off(at);
        }
        for piece in pieces {
            if !piece.is_empty() {
                let at_ns = self.arrival(client, true);
                self.clients[client].up.push_back((at_ns, piece));
                self.after(at_ns - self.now_ns, Event::Up(client));
            }
        }
    }

    /// Sends bytes from the service to a client.
    pub(crate) fn send_down(&mut self, client: usize, bytes: Vec<u8>) {
        if bytes.is_empty() || !self.clients[client].is_alive {
            return;
        }
        let at_ns = self.arrival(client, false);
        self.clients[client].down.push_back((at_ns, bytes));
        self.after(at_ns - self.now_ns, Event::Down(client));
    }

    /// Returns the time at which bytes that are sent now arrive: not before earlier bytes.
    fn arrival(&mut self, client: usize, up: bool) -> u64 {
        let delay_ns = if self.profile.delay_ns == 0 { 0 } else { self.rng.below(self.profile.delay_ns) };
        let client = &self.clients[client];
        let earlier = if up { client.up.back() } else { client.down.back() };
        (self.now_ns + delay_ns).max(earlier.map_or(0, |(at_ns, _)| *at_ns))
    }

    /// Takes the bytes of a client that have arrived.
    pub(crate) fn deliver_up(&mut self, client: usize) {
        while let Some((at_ns, _)) = self.clients[client].up.front() {
            if *at_ns > self.now_ns {
                break;
            }
            let Some((_, bytes)) = self.clients[client].up.pop_front() else { break };
            let mut rest = &bytes[..];
            while self.clients[client].is_open && !rest.is_empty() {
                let taken = self.clients[client].decoder.push(rest);
                rest = &rest[taken..];
                self.take_frames(client);
            }
        }
    }

    /// Gives a client the bytes that have arrived.
    pub(crate) fn deliver_down(&mut self, index: usize) {
        while let Some((at_ns, _)) = self.clients[index].down.front() {
            if *at_ns > self.now_ns {
                break;
            }
            let Some((_, bytes)) = self.clients[index].down.pop_front() else { break };
            if !self.clients[index].is_alive {
                continue;
            }
            self.with_actor(index, |actor, world| {
                let mut decoder = core::mem::take(&mut world.clients[index].down_decoder);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let taken = decoder.push(rest);
                    rest = &rest[taken..];
                    while let Some(frame) = decoder.next_frame().expect("the service's frames are small enough") {
                        let esatto_ipc::FrameBody::InvokeMethodReply { success, has_more, body } = frame.body else {
                            continue;
                        };
                        let reply = ClientReply { request: frame.request_id, success, has_more, body };
                        match actor {
                            Actor::Honest(producer) => producer.receive(&reply, world),
                            Actor::Hostile(hostile) => hostile.receive(&reply, world),
                            Actor::Worst(worst) => worst.receive(&reply, world),
                            Actor::Consumer(consumer) => consumer.receive(&reply, world),
                            Actor::HostileConsumer(_) => {}
                            Actor::Relay(relay) => relay.receive(&reply),
                        }
                    }
                }
                world.clients[index].down_decoder = decoder;
            });
        }
    }

    /// Returns the attachment of the frame that ends here.
    pub(crate) fn take_attached(&mut self, client: usize, end: u64) -> Option<Attached> {
        let client = &mut self.clients[client];
        let mut newest = None;
        while client.attached.front().is_some_and(|(at, _)| *at <= end) {
            newest = client.attached.pop_front().filter(|(at, _)| *at == end).map(|(_, attached)| attached);
        }
        newest
    }

    /// Ends a client suddenly. A part of the bytes on their way arrives, cut at any byte.
    pub fn crash(&mut self, client: usize) {
        trace!(self, "client {client} is gone");
        self.clients[client].is_alive = false;
        let mut kept = self.clients[client].up.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        if self.rng.percent(70) && kept > 0 {
            kept = self.rng.below(kept + 1);
        }
        let mut last_ns = self.now_ns;
        self.clients[client].up.retain_mut(|(at_ns, bytes)| {
            bytes.truncate(kept as usize);
            kept -= bytes.len() as u64;
            last_ns = last_ns.max(*at_ns);
            !bytes.is_empty()
        });
        self.after(last_ns - self.now_ns, Event::Hangup(client));
    }

    /// Ends a client in good order: everything that it sent arrives.
    pub fn leave(&mut self, client: usize) {
        trace!(self, "client {client} leaves");
        self.clients[client].is_alive = false;
        let last_ns = self.clients[client].up.back().map_or(self.now_ns, |(at_ns, _)| (*at_ns).max(self.now_ns));
        self.after(last_ns - self.now_ns, Event::Hangup(client));
    }
}
