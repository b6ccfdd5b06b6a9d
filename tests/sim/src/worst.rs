//! Producers that choose the worst order of chunk ids, patches, registrations, triggers and stops,
//! instead of a random one.
//!
//! Their messages are well-formed, and each frame is as full as it may be. They attack the cost of
//! an input: in any order its work must follow its bytes (`work`), and its memory the bounds
//! (`lifecycle`).

use esatto_ports::Rpc as _;
use esatto_ports::producer_port::method;
use esatto_schema::GetAsyncCommandResponseReader;
use esatto_service::{MemoryKind, Peer};

use crate::connection::{ClientReply, Port};
use crate::pb::{Pb, varint};
use crate::profile::MS;
use crate::rng::Rng;
use crate::world::{Actor, Event, Phase, World};

/// Chunks, patches or names in a frame.
const FULL: u64 = 150;

/// The attack that a producer repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trade {
    /// Chunk ids in an order that is bad for a list, an array or a tree.
    Chunks(Order),
    /// Chunks that wait for patches, which come last to first, in part or twice.
    Patches,
    /// One name from many connections, registered and taken back in the order that moves most.
    Registrations,
    /// Every trigger of every session, as often as a call takes names.
    Triggers,
    /// It acknowledges starts, stops and flushes last to first, twice, or by leaving.
    Stops,
}

/// Orders of chunk ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Each before all others.
    Descending,
    /// Each in the middle of all before it.
    IntoTheMiddle,
    /// Bit by bit from the top: halves, quarters, eighths.
    Halves,
    /// One from the front, one from the back.
    Ends,
    /// Half the number space away from the one before.
    Opposite,
    /// The same one again, with one packet more.
    Again,
}

/// A producer of this kind.
#[derive(Debug)]
pub struct Worst {
    client: usize,
    trade: Trade,
    /// Separate random numbers, for its choices.
    rng: Rng,
    commands: u64,
    targets: Vec<u16>,
    instances: Vec<u64>,
    flushes: Vec<u64>,
    /// Where a run of chunk ids began.
    base: u32,
    /// Chunks that wait for a patch.
    unpatched: Vec<u32>,
    registered: Vec<String>,
}

impl Worst {
    /// Connects and offers the data sources that sessions ask for.
    pub fn connect(world: &mut World) {
        let mut rng = Rng::new(world.rng.bits());
        let trade = match rng.below(10) {
            0..=4 => {
                use Order::{Again, Descending, Ends, Halves, IntoTheMiddle, Opposite};
                Trade::Chunks(rng.pick(&[Descending, IntoTheMiddle, Halves, Ends, Opposite, Again]))
            }
            5 => Trade::Patches,
            6 | 7 => Trade::Registrations,
            8 => Trade::Triggers,
            _ => Trade::Stops,
        };
        // Their chunks travel inside of commits, so that a frame holds many.
        let peer = Peer { uid: 2000 + rng.below(2) as i32, pid: Some(666), machine_id: 0 };
        let client = world.connect(peer, MemoryKind::Emulated, Port::Producer, true);
        let name = if trade == Trade::Triggers { "t".repeat(4000) } else { format!("worst-{client}") };
        let hello = Pb::default().int(1, 4096).int(2, 8 * 4096).bytes(3, name.as_bytes()).int(4, 2);
        world.call(client, method::InitializeConnection::METHOD, &hello.0, false);
        let commands = world.call(client, method::GetAsyncCommand::METHOD, &[], false);
        let mut worst = Self {
            client,
            trade,
            base: rng.bits() as u32,
            rng,
            commands,
            targets: Vec::new(),
            instances: Vec::new(),
            flushes: Vec::new(),
            unpatched: Vec::new(),
            registered: Vec::new(),
        };
        for source in 0..world.profile.sources {
            worst.register(&format!("source-{source}"), world);
        }
        world.actors[client] = Some(Actor::Worst(Box::new(worst)));
        world.after(0, Event::Act(client));
    }

    /// Takes a reply.
    pub fn receive(&mut self, reply: &ClientReply<'_>, world: &mut World) {
        if reply.request != self.commands || !reply.success {
            return;
        }
        let command = GetAsyncCommandResponseReader::new(reply.body);
        if let Some(start) = command.start_data_source() {
            self.instances.push(start.new_instance_id().unwrap_or(0));
            self.targets.extend(start.config().and_then(|config| config.target_buffer()).map(|id| id as u16));
        } else if let Some(flush) = command.flush() {
            self.flushes.push(flush.request_id().unwrap_or(0));
        } else if command.stop_data_source().is_some() && self.trade == Trade::Stops && self.rng.one_in(8) {
            // The service waits for its acknowledgement.
            world.crash(self.client);
        }
    }

    /// Does the next step.
    pub fn act(&mut self, world: &mut World) {
        if world.phase == Phase::Leaving {
            return;
        }
        if world.phase == Phase::Running {
            match self.trade {
                Trade::Chunks(order) => self.commit_chunks(order, world),
                Trade::Patches => self.commit_and_patch(world),
                Trade::Registrations => self.register_and_take_back(world),
                Trade::Triggers => self.activate(world),
                Trade::Stops => self.acknowledge(world),
            }
            if self.rng.one_in(200) {
                return world.crash(self.client);
            }
        }
        let pause_ns = self.rng.between(world.profile.pause_ns, 10 * world.profile.pause_ns.max(MS));
        world.after(pause_ns, Event::Act(self.client));
    }

    fn register(&mut self, name: &str, world: &mut World) {
        let notifies = u64::from(self.trade == Trade::Stops);
        let descriptor = Pb::default().bytes(1, name.as_bytes()).int(2, notifies).int(3, notifies);
        let request = Pb::default().bytes(1, &descriptor.0);
        world.call(self.client, method::RegisterDataSource::METHOD, &request.0, true);
    }

    /// Returns the `n`th id of a run of [`FULL`].
    fn id(&self, order: Order, n: u32) -> u32 {
        let full = FULL as u32;
        let at = match order {
            Order::Descending => full - 1 - n,
            // Outer ids first, so that each next id is between them.
            Order::IntoTheMiddle | Order::Ends if n % 2 == 0 => n / 2,
            Order::IntoTheMiddle => full - 1 - n / 2,
            Order::Ends => 2 * full + n / 2,
            Order::Halves => n.reverse_bits() >> 24,
            Order::Opposite => (n % 2).wrapping_mul((1 << 31) - 1).wrapping_add(n / 2),
            Order::Again => n / 10,
        };
        self.base.wrapping_add(at)
    }

    fn commit_chunks(&mut self, order: Order, world: &mut World) {
        let Some(target) = self.target() else { return };
        // Sometimes the run continues before the previous one, sometimes far away.
        self.base = match self.rng.below(4) {
            0 => self.rng.bits() as u32,
            1 => self.base.wrapping_add(2 * FULL as u32),
            _ => self.base.wrapping_sub(2 * FULL as u32),
        };
        let mut request = Pb::default();
        for n in 0..FULL as u32 {
            let packets = if order == Order::Again { n % 10 + 1 } else { 1 };
            let id = self.id(order, n);
            request = request.bytes(1, &chunk(target, 1, id, 0, packets).0);
        }
        self.commit(&request, world);
    }

    fn commit_and_patch(&mut self, world: &mut World) {
        let Some(target) = self.target() else { return };
        let mut request = Pb::default();
        for _ in 0..FULL / 3 {
            self.base = self.base.wrapping_add(1);
            self.unpatched.push(self.base);
            request = request.bytes(1, &chunk(target, 1, self.base, 4, 1).0);
        }
        let keep = if self.rng.percent(50) { 0 } else { self.unpatched.len() / 2 };
        for id in self.unpatched.split_off(keep).into_iter().rev() {
            for more in [1, 0] {
                let patch = Pb::default().int(1, self.rng.below(40)).bytes(2, &[0x81, 0x80, 0x80, 0]);
                let patches = Pb::default().int(1, target.into()).int(2, 1).int(3, id.into());
                request = request.bytes(2, &patches.bytes(4, &patch.0).int(5, more).0);
            }
        }
        self.commit(&request, world);
    }

    fn register_and_take_back(&mut self, world: &mut World) {
        if self.registered.len() < 100 {
            // The name that all producers register, and others: the one that is unregistered is the
            // first of many.
            let name = format!("source-{}", self.rng.below(world.profile.sources));
            self.register(&name, world);
            let own = format!("own-{}-{}", self.client, self.registered.len());
            self.register(&own, world);
            self.registered.push(own);
            return;
        }
        for own in core::mem::take(&mut self.registered) {
            let request = Pb::default().bytes(1, own.as_bytes());
            world.call(self.client, method::UnregisterDataSource::METHOD, &request.0, true);
        }
        let name = format!("source-{}", self.rng.below(world.profile.sources));
        world.call(self.client, method::UnregisterDataSource::METHOD, &Pb::default().bytes(1, name.as_bytes()).0, true);
        self.register(&name, world);
    }

    fn activate(&mut self, world: &mut World) {
        let mut request = Pb::default();
        for n in 0..FULL {
            request = request.bytes(1, format!("trigger-{}", n % 3).as_bytes());
        }
        world.call(self.client, method::ActivateTriggers::METHOD, &request.0, true);
    }

    fn acknowledge(&mut self, world: &mut World) {
        if self.instances.len() < 4 && self.rng.percent(80) {
            return;
        }
        for id in core::mem::take(&mut self.instances).into_iter().rev() {
            for method in [
                method::NotifyDataSourceStopped::METHOD,
                method::NotifyDataSourceStarted::METHOD,
                method::NotifyDataSourceStopped::METHOD,
            ] {
                world.call(self.client, method, &Pb::default().int(1, id).0, true);
            }
        }
        for flush in core::mem::take(&mut self.flushes).into_iter().rev() {
            world.call(self.client, method::CommitData::METHOD, &Pb::default().int(3, flush).0, true);
        }
    }

    fn target(&mut self) -> Option<u16> {
        (!self.targets.is_empty()).then(|| self.rng.pick(&self.targets))
    }

    fn commit(&mut self, request: &Pb, world: &mut World) {
        world.call(self.client, method::CommitData::METHOD, &request.0, true);
    }
}

/// Encodes a ChunksToMove by value, with packets of a few bytes.
pub(crate) fn chunk(target: u16, writer: u16, id: u32, flags: u16, packets: u32) -> Pb {
    let mut bytes = id.to_le_bytes().to_vec();
    bytes.extend_from_slice(&writer.to_le_bytes());
    bytes.extend_from_slice(&(packets as u16 | flags << 10).to_le_bytes());
    for number in 0..packets {
        let packet = Pb::default().bytes(900, &number.to_le_bytes()).0;
        varint(&mut bytes, packet.len() as u64);
        bytes.extend_from_slice(&packet);
    }
    Pb::default().int(3, target.into()).bytes(4, &bytes)
}
