//! A hostile producer. It sends garbage, false values and other producers' numbers, and its memory
//! changes while the service reads it.

use esatto_ports::Rpc as _;
use esatto_ports::producer_port::method;
use std::sync::Arc;

use esatto_schema::GetAsyncCommandResponseReader;
use esatto_service::{MemoryKind, Peer};
use esatto_shm::sync::Ordering;
use esatto_shm::{PrivateRegion, Region};

use crate::connection::{ClientReply, Port, SharedMemory};
use crate::memory;
use crate::pb::{Pb, varint};
use crate::world::{Actor, Event, Phase, World};

/// A hostile producer.
#[derive(Debug)]
pub struct Hostile {
    client: usize,
    commands: u64,
    memory: Option<SharedMemory>,
    /// Buffers that it knows, of its own sessions and of other sessions.
    targets: Vec<u16>,
    instances: Vec<u64>,
    next_chunk: u32,
}

impl Hostile {
    /// Connects.
    pub fn connect(world: &mut World) {
        let is_emulated = world.rng.percent(world.profile.emulated);
        let memory_kind = if is_emulated { MemoryKind::Emulated } else { MemoryKind::Shared };
        let peer = Peer { uid: -7, pid: Some(-9), machine_id: if is_emulated { u32::MAX } else { 0 } };
        let client = world.connect(peer, memory_kind, Port::Producer, true);
        let hello =
            Pb::default().int(1, 4096).int(2, 8 * 4096).bytes(3, b"\xff\x00 hostile").int(4, world.rng.below(3));
        world.call(client, method::InitializeConnection::METHOD, &hello.0, false);
        let commands = world.call(client, method::GetAsyncCommand::METHOD, &[], false);
        let hostile =
            Self { client, commands, memory: None, targets: vec![1, 2, 3], instances: vec![1, 2], next_chunk: 0 };
        world.actors[client] = Some(Actor::Hostile(Box::new(hostile)));
        if world.profile.hostile_joins {
            for source in 0..world.profile.sources {
                let descriptor = Pb::default().bytes(1, format!("source-{source}").as_bytes()).int(2, 1).int(3, 1);
                world.call(client, method::RegisterDataSource::METHOD, &Pb::default().bytes(1, &descriptor.0).0, true);
            }
        }
        world.after(0, Event::Act(client));
    }

    /// Takes a reply.
    pub fn receive(&mut self, reply: &ClientReply<'_>, world: &mut World) {
        if reply.request < self.commands || !reply.success {
            return;
        }
        let command = GetAsyncCommandResponseReader::new(reply.body);
        if command.setup_tracing().is_some() {
            self.memory.clone_from(&world.clients[self.client].memory);
        } else if let Some(start) = command.start_data_source() {
            self.instances.push(start.new_instance_id().unwrap_or(0));
            self.targets.extend(start.config().and_then(|config| config.target_buffer()).map(|id| id as u16));
        }
    }

    /// Does the next step.
    pub fn act(&mut self, world: &mut World) {
        if world.phase == Phase::Leaving {
            return;
        }
        if world.phase == Phase::Running {
            for _ in 0..world.rng.between(1, 3) {
                self.do_something(world);
            }
            if world.rng.one_in(300) {
                return world.crash(self.client);
            }
        }
        let pause_ns = world.rng.between(world.profile.pause_ns / 20, world.profile.pause_ns);
        world.after(pause_ns, Event::Act(self.client));
    }

    fn do_something(&mut self, world: &mut World) {
        let client = self.client;
        match world.rng.below(24) {
            0..=9 => self.commit(world),
            10 => {
                let request = Pb::default().int(1, self.some_writer(world)).int(2, self.some_target(world));
                world.call(client, method::RegisterTraceWriter::METHOD, &request.0, true);
            }
            11 => {
                let request = Pb::default().int(1, self.some_writer(world));
                world.call(client, method::UnregisterTraceWriter::METHOD, &request.0, true);
            }
            12 => {
                let id = if world.rng.percent(50) { world.rng.below(200) } else { self.some_instance(world) };
                let method =
                    world.rng.pick(&[method::NotifyDataSourceStarted::METHOD, method::NotifyDataSourceStopped::METHOD]);
                world.call(client, method, &Pb::default().int(1, id).0, true);
            }
            13 => {
                let flush = world.rng.pick(&[1, 5, 100, u64::MAX]);
                world.call(client, method::CommitData::METHOD, &Pb::default().int(3, flush).0, false);
            }
            14 => {
                let name = format!("trigger-{}", world.rng.below(6));
                world.call(client, method::ActivateTriggers::METHOD, &Pb::default().bytes(1, name.as_bytes()).0, false);
            }
            15 => {
                // A method or a service that does not exist, or arguments that are not a message.
                let (method, args): (u32, &[u8]) =
                    world.rng.pick(&[(0, &[][..]), (99, &[]), (4, &[0xff]), (2, &[0x0a, 200])]);
                world.call(client, method, args, false);
            }
            16 => {
                let len = world.rng.between(1, 40) as usize;
                let mut frame = (len as u32).to_le_bytes().to_vec();
                frame.extend((0..len).map(|_| world.rng.bits() as u8));
                world.send(client, frame, None);
            }
            17 if world.rng.one_in(20) => world.send(client, vec![0xff; 9], None),
            18 => self.commands = world.call(client, method::GetAsyncCommand::METHOD, &[], false),
            19 => drop(world.call(client, method::InitializeConnection::METHOD, &[], false)),
            20 => {
                let name = if world.profile.hostile_joins {
                    format!("source-{}", world.rng.below(3))
                } else {
                    "nasty".to_owned()
                };
                let descriptor =
                    Pb::default().bytes(1, name.as_bytes()).int(7, world.rng.below(3)).int(9, world.rng.below(2));
                let method = world.rng.pick(&[method::RegisterDataSource::METHOD, method::UpdateDataSource::METHOD]);
                world.call(client, method, &Pb::default().bytes(1, &descriptor.0).0, true);
            }
            21 => {
                let name = format!("source-{}", world.rng.below(3));
                world.call(
                    client,
                    method::UnregisterDataSource::METHOD,
                    &Pb::default().bytes(1, name.as_bytes()).0,
                    true,
                );
            }
            _ => drop(world.call(client, method::Sync::METHOD, &[], true)),
        }
    }

    fn some_target(&self, world: &mut World) -> u64 {
        match world.rng.below(4) {
            0 => world.rng.pick(&[0, 65_536 + 1, u64::from(u32::MAX)]),
            1 => world.rng.between(1, 12),
            _ => world.rng.pick(&self.targets).into(),
        }
    }

    fn some_writer(&self, world: &mut World) -> u64 {
        world.rng.pick(&[0, 1, 1, 2, 3, 32767, 32768, 65537])
    }

    fn some_instance(&self, world: &mut World) -> u64 {
        world.rng.pick(&self.instances)
    }

    fn commit(&mut self, world: &mut World) {
        let mut request = Pb::default();
        for _ in 0..world.rng.between(1, 3) {
            request = match world.rng.below(5) {
                0 => {
                    let len = world.rng.pick(&[0, 1, 4]) as usize;
                    let patch = Pb::default().int(1, world.rng.below(300)).bytes(2, &[0x81; 4][..len.min(4)]);
                    let chunk = Pb::default()
                        .int(1, self.some_target(world))
                        .int(2, self.some_writer(world))
                        .int(3, u64::from(self.next_chunk.wrapping_sub(world.rng.below(3) as u32)))
                        .bytes(4, &patch.0)
                        .int(5, world.rng.below(2));
                    request.bytes(2, &chunk.0)
                }
                _ => {
                    let mut chunk = Pb::default().int(3, self.some_target(world));
                    let bytes = self.chunk(world);
                    match &self.memory {
                        Some(memory) if world.rng.percent(95) => {
                            let page = world.rng.below(9);
                            let at = page as usize * memory.page_size;
                            if at < memory.region.len() && world.rng.percent(80) {
                                put_chunk(&memory.region, at, world, &bytes);
                            }
                            chunk = chunk.int(1, page).int(2, world.rng.pick(&[0, 0, 0, 1, 13, 14]));
                        }
                        _ => {
                            let len = world.rng.pick(&[0, 7, 8, bytes.len() as u64, bytes.len() as u64]) as usize;
                            chunk = chunk.bytes(4, &bytes[..len.min(bytes.len())]).int(5, world.rng.below(2));
                        }
                    }
                    request.bytes(1, &chunk.0)
                }
            };
        }
        let drops = world.rng.percent(70);
        world.call(self.client, method::CommitData::METHOD, &request.0, drops);
    }

    /// Draws header and payload of a chunk: any bytes, but often nearly right.
    fn chunk(&mut self, world: &mut World) -> Vec<u8> {
        self.next_chunk = match world.rng.below(10) {
            0 => world.rng.bits() as u32,
            1 => self.next_chunk,
            _ => self.next_chunk.wrapping_add(1),
        };
        let count = world.rng.pick(&[0, 1, 2, 3, 3, 1023]);
        let flags = if world.rng.percent(70) { 0 } else { world.rng.below(8) };
        let mut bytes = self.next_chunk.to_le_bytes().to_vec();
        bytes.extend_from_slice(&(self.some_writer(world) as u16).to_le_bytes());
        bytes.extend_from_slice(&((count | flags << 10) as u16).to_le_bytes());
        for _ in 0..count.min(4) {
            let packet = some_packet(world);
            match world.rng.below(12) {
                0 => bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0x7f]),
                1 => varint(&mut bytes, world.rng.bits()),
                _ => {
                    varint(&mut bytes, packet.len() as u64);
                    bytes.extend_from_slice(&packet);
                }
            }
        }
        bytes
    }
}

/// Draws a packet: with a field that only the service may write, malformed, or harmless.
fn some_packet(world: &mut World) -> Vec<u8> {
    match world.rng.below(8) {
        0 => vec![0x18, 0, 0x50, 1],
        1 => vec![0x9a, 0x02, 0],
        2 => vec![0xff; world.rng.between(1, 30) as usize],
        3 => vec![0xd0, 0x02, 1],
        4 => vec![0xb8, 0x05, 1],
        5 => Vec::new(),
        _ => Pb::default().bytes(900, &vec![0x55; world.rng.below(150) as usize]).0,
    }
}

/// Writes a chunk into the first place of a page and marks it complete.
fn put_chunk(region: &Arc<PrivateRegion>, page: usize, world: &mut World, bytes: &[u8]) {
    let layout = world.rng.pick(&[1, 1, 1, 2, 3, 4, 5, 6]);
    let state = world.rng.pick(&[3, 3, 3, 1, 2, 0]);
    memory::write(region, page + 8, &bytes[..bytes.len().min(250)]);
    region.atomic_u32(page).store(layout << 28 | state, Ordering::Release);
}
