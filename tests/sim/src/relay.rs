//! Relays, which describe the machines of remote producers, honestly or not.

use esatto_ports::Rpc as _;
use esatto_ports::relay_port::method;
use std::collections::{BTreeMap, BTreeSet};

use esatto_schema::TracePacketReader;
use esatto_schema::sync_clock_request::Phase as Reading;
use esatto_service::{CallId, Input, MemoryKind, Peer, RelayCall};

use crate::connection::{ClientReply, Port};
use crate::pb::Pb;
use crate::profile::MS;
use crate::rng::Rng;
use crate::world::{Actor, Event, Phase, World};

/// The machine of the honest remote producers.
pub const GUEST: u32 = 7;

/// Longest SystemInfo that the service keeps.
const MAX_SYSTEM_INFO: usize = 16 * 1024;

/// The most machines that the service remembers.
const MAX_MACHINES: usize = 256;

/// The description of a machine that the service must write into traces.
#[derive(Clone, Debug, Default)]
pub struct MachineModel {
    /// Number of CPUs that its relay told last, by which its SystemInfo is known.
    cpus: Option<u64>,
    /// True after a complete round.
    has_clocks: bool,
}

/// The machines that a session's trace has described.
#[derive(Clone, Debug, Default)]
pub struct MachinesTold {
    infos: BTreeSet<u32>,
    clocks: BTreeSet<u32>,
}

/// The name of a machine, as its relay claims.
pub(crate) fn name_of(machine_id: u32) -> String {
    format!("machine-{machine_id}")
}

/// A connection to the relay port.
#[derive(Debug)]
pub struct Relay {
    client: usize,
    is_hostile: bool,
    rng: Rng,
    /// The nanoseconds by which its clock is behind.
    behind_ns: u64,
}

impl Relay {
    /// Connects.
    pub fn connect(world: &mut World) {
        let mut rng = Rng::new(world.rng.bits());
        let is_hostile = rng.percent(world.profile.hostile);
        let machine_id = match is_hostile {
            true => rng.pick(&[0, GUEST, 1 + rng.clone().below(400) as u32]),
            false => GUEST,
        };
        let peer = Peer { uid: 0, pid: Some(9000), machine_id };
        let client = world.connect(peer, MemoryKind::Emulated, Port::Relay, is_hostile);
        let behind_ns = rng.below(500 * MS);
        world.actors[client] = Some(Actor::Relay(Box::new(Self { client, is_hostile, rng, behind_ns })));
        world.after(0, Event::Act(client));
    }

    /// Takes a reply, which is empty.
    pub fn receive(&self, reply: &ClientReply<'_>) {
        assert!(!reply.has_more && reply.body.is_empty(), "a relay is told something");
    }

    /// Does the next step.
    pub fn act(&mut self, world: &mut World) {
        if world.phase == Phase::Leaving {
            return;
        }
        if world.phase == Phase::Running {
            match self.rng.below(4) {
                0 => self.introduce(world),
                _ => self.synchronize(world),
            }
            if self.rng.one_in(50) {
                return world.crash(self.client);
            }
        }
        let pause_ns = self.rng.between(20 * MS, 400 * MS);
        world.after(pause_ns, Event::Act(self.client));
    }

    fn introduce(&mut self, world: &mut World) {
        let cpus = self.rng.between(1, 1000);
        let mut info = Pb::default().int(8, cpus);
        if self.is_hostile && self.rng.percent(50) {
            info = info.bytes(12, &vec![b'x'; self.rng.pick(&[10, 15_000, 17_000, 100_000])]);
        }
        world.call(self.client, method::InitRelay::METHOD, &Pb::default().bytes(1, &info.0).0, false);
    }

    /// Sends a round of clock snapshots. A hostile relay sends a wrong one.
    fn synchronize(&mut self, world: &mut World) {
        let phases: &[u64] = match self.is_hostile {
            true => self.rng.pick(&[&[1, 2], &[2], &[1], &[2, 1], &[1, 1, 2, 2], &[0, 9]]),
            false => &[1, 2],
        };
        for &phase in phases {
            let boottime_ns = (world.now_ns + world.suspended_ns).saturating_sub(self.behind_ns);
            let mut request = Pb::default().int(1, phase);
            let clocks = if self.is_hostile { self.rng.pick(&[0, 1, 7, 200]) } else { 7 };
            for clock in 0..clocks {
                let ns = if self.is_hostile { self.rng.bits() >> self.rng.below(64) } else { boottime_ns };
                request = request.bytes(2, &Pb::default().int(1, 6 - clock % 7).int(2, ns).0);
            }
            world.call(self.client, method::SyncClock::METHOD, &request.0, self.is_hostile && self.rng.percent(50));
        }
    }
}

impl World {
    /// Handles a relay's call. Traces must contain its description of the machine from now on.
    pub(crate) fn relay_call(&mut self, index: usize, call: CallId, parsed: RelayCall<'_>) {
        let machine_id = self.clients[index].peer.machine_id;
        if machine_id != 0 {
            let machine = self.model.machines.entry(machine_id).or_default();
            match &parsed {
                RelayCall::InitRelay(request) => {
                    let info = request.system_info().filter(|info| info.as_bytes().len() <= MAX_SYSTEM_INFO);
                    machine.cpus = info.map(|info| info.num_cpus().unwrap_or(0).into()).or(machine.cpus);
                }
                RelayCall::SyncClock(request) if request.phase() == Some(Reading::UPDATE) => {
                    machine.has_clocks |= self.model.pings.remove(&index);
                }
                RelayCall::SyncClock(_) => drop(self.model.pings.insert(index)),
            }
        }
        self.feed(Input::RelayCall { call, method: parsed });
        assert!(!self.calls.contains_key(&call), "every request is answered: a relay's is not");
    }

    /// Checks the descriptions of machines in the pass that just ended.
    pub(crate) fn assert_machines_are_told(&self, session_id: u64) {
        let Some(session) = self.model.sessions.get(&session_id) else { return };
        let hides = session.config.builtin_data_sources.as_ref().and_then(|builtin| builtin.disable_system_info);
        if hides == Some(true) || self.model.machines.len() > MAX_MACHINES {
            return;
        }
        let known = self.model.machines.iter().filter(|(_, machine)| machine.cpus.is_some());
        for (id, _) in known {
            assert!(session.machines_told.infos.contains(id), "session {session_id} is not told of machine {id}");
        }
    }
}

impl MachinesTold {
    /// Takes a packet of the service that may describe another machine.
    pub(crate) fn take(&mut self, packet: TracePacketReader<'_>, machines: &BTreeMap<u32, MachineModel>) {
        let Some(id) = packet.machine_id() else { return };
        let machine =
            machines.get(&id).unwrap_or_else(|| panic!("a trace tells of machine {id}, of which nobody told"));
        let is_exact = machines.len() <= MAX_MACHINES;
        if let Some(info) = packet.system_info() {
            assert_eq!(info.num_cpus().map(u64::from), machine.cpus, "isolation: what is told of machine {id}");
            assert_eq!(info.machine_name().map(<[u8]>::to_vec), Some(name_of(id).into_bytes()), "isolation: its name");
            assert!(self.infos.insert(id) || !is_exact, "machine {id} is told of twice");
        } else if let Some(sync) = packet.remote_clock_sync() {
            let readings = sync.synced_clocks().count();
            assert!(machine.has_clocks && readings % 2 == 0 && readings <= 10, "{readings} readings of machine {id}");
            assert!(self.clocks.insert(id) || !is_exact, "the clocks of machine {id} are told twice");
        } else {
            panic!("a trace tells something else of machine {id}");
        }
    }
}
