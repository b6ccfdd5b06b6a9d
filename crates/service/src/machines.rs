//! Other machines, as their relays describe them (`docs/spec/service.md §27`,
//! `docs/spec/wire-protocol.md §16`).
//!
//! A relay tells which machine it runs on. It reads its clocks twice in a round (PING, UPDATE), and
//! the host reads its own clocks each time. From the four readings a reader of the trace computes
//! how far the clocks are apart. It takes any two neighbours that are less than 30 s apart for a
//! round. So the service keeps whole rounds that are at least that far apart.
//!
//! The facts about a machine outlive its relay, because the data in the buffers do, and they are
//! useless without the clocks.

use std::collections::VecDeque;

use esatto_map::{Map, Set};
use esatto_protozero::Owned;
use esatto_schema::sync_clock_request::Phase;
use esatto_schema::{InitRelayRequestReader, SyncClockRequestReader, SystemInfo};

use crate::api::{CallId, ClientId, Now, Peer, RelayCall};
use crate::client_text::quoted;
use crate::context::Context;
use crate::encode::put_varint;

/// Machines that the service remembers. A new one takes the place of the machine that was silent
/// longest and has no relay. While all have one, the service refuses a new one.
pub(crate) const MAX_MACHINES: usize = 256;

/// Rounds of clock readings per machine. The oldest is dropped.
const MAX_ROUNDS: usize = 5;

/// Readers of traces take neighbouring readings closer than this for a round.
const ROUND_DISTANCE_NS: u64 = 30_000_000_000;

/// Clocks of one reading; a relay has seven.
const MAX_CLOCKS: usize = 32;

/// Bytes of a SystemInfo. An Android device has a few hundred.
const MAX_SYSTEM_INFO_BYTES: usize = 16 * 1024;

/// Longest name of a machine that the service accepts.
const MAX_MACHINE_NAME_BYTES: usize = 1024;

/// `BUILTIN_CLOCK_BOOTTIME`.
const BOOTTIME: u32 = 6;

/// `SystemInfo.machine_name`.
const MACHINE_NAME_FIELD: u64 = 17;

/// Every machine that has or had a relay.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    by_id: Map<u32, Machine>,
    relays: Map<ClientId, Relay>,
    last_use: u64,
}

/// One machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// The newest encoded SystemInfo.
    pub(crate) system_info: Option<Vec<u8>>,
    /// Oldest first.
    rounds: VecDeque<Round>,
    /// Its relays, from their first call on.
    relays: Set<ClientId>,
    /// Two connected relays that have the id of this machine.
    shared_by: Option<[ClientId; 2]>,
    last_use: u64,
}

/// The machines that a session's trace has already told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    system_infos: Set<u32>,
    clocks: Set<u32>,
    shared: Set<u32>,
    /// Machines without a relay at the start of the session, and their last use then. They matter
    /// only if they come back.
    absent: Map<u32, u64>,
}

impl Told {
    fn is_absent(&self, id: u32, machine: &Machine) -> bool {
        machine.relays.is_empty() && self.absent.get(&id) == Some(&machine.last_use)
    }
}

/// A connection to the relay port.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) machine_id: u32,
    machine_name: Vec<u8>,
    /// The log says that it connected.
    is_known: bool,
    /// The first half of a round.
    ping: Option<Exchange>,
}

/// Two exchanges of clock readings.
#[derive(Debug)]
struct Round {
    ping: Exchange,
    update: Exchange,
}

/// Readings of the clocks on both sides of one call.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Ids and times of the remote clocks.
    pub(crate) client: Vec<(u32, u64)>,
    pub(crate) host: Now,
}

impl Exchange {
    fn client_boottime_ns(&self) -> Option<u64> {
        self.client.iter().find(|&&(id, _)| id == BOOTTIME).map(|&(_, ns)| ns)
    }
}

impl Machine {
    /// Iterates over the readings of all rounds, oldest first.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.rounds.iter().flat_map(|round| [&round.ping, &round.update])
    }

    fn add_round(&mut self, round: Round) {
        if let Some(last) = self.rounds.back() {
            let (end, begin) = (last.update.client_boottime_ns(), round.ping.client_boottime_ns());
            match end.zip(begin).map(|(end, begin)| begin.checked_sub(end)) {
                Some(Some(distance_ns)) if distance_ns >= ROUND_DISTANCE_NS => {}
                // A reader could not tell the two rounds apart.
                Some(Some(_)) => drop(self.rounds.pop_back()),
                // After a reboot, or with clocks that make no sense, the earlier measurements are
                // useless.
                Some(None) | None => self.rounds.clear(),
            }
        }
        if self.rounds.len() == MAX_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(round);
    }
}

impl Machines {
    /// Returns what a new session's trace need not tell: machines that have left.
    pub(crate) fn told_to_new_session(&self) -> Told {
        let absent = self.by_id.iter().filter(|(_, machine)| machine.relays.is_empty());
        Told { absent: absent.map(|(&id, machine)| (id, machine.last_use)).collect(), ..Told::default() }
    }

    /// Returns the machines whose SystemInfo the trace has not told yet, and marks them as told.
    pub(crate) fn system_infos_for<'m>(&'m self, told: &'m mut Told) -> impl Iterator<Item = (u32, &'m [u8])> {
        self.forget_the_forgotten(told);
        let machines = self.by_id.iter();
        machines.filter_map(|(&id, machine)| {
            let info = machine.system_info.as_deref().filter(|_| !told.is_absent(id, machine))?;
            told.system_infos.insert(id).then_some((id, info))
        })
    }

    /// Returns the machines with known clocks that the trace has not told yet, and marks them as
    /// told.
    pub(crate) fn clocks_for<'m>(&'m self, told: &'m mut Told) -> impl Iterator<Item = (u32, &'m Machine)> {
        self.forget_the_forgotten(told);
        let machines = self.by_id.iter().filter(|(_, machine)| !machine.rounds.is_empty());
        machines.filter_map(|(&id, machine)| {
            (!told.is_absent(id, machine) && told.clocks.insert(id)).then_some((id, machine))
        })
    }

    /// Returns the machines with two relays that the trace has not told yet, and the names of the
    /// relays. Marks them as told.
    pub(crate) fn shared_ids_for<'m>(&'m self, told: &'m mut Told) -> impl Iterator<Item = (u32, [&'m [u8]; 2])> {
        self.forget_the_forgotten(told);
        let shared = self.by_id.iter().filter_map(|(&id, machine)| Some((id, machine.shared_by?)));
        let shared = shared.filter(|(id, _)| told.shared.insert(*id));
        shared.map(|(id, relays)| (id, relays.map(|client| self.name_of(client))))
    }

    /// Forgets the machines in `told` that the service has forgotten.
    fn forget_the_forgotten(&self, told: &mut Told) {
        told.system_infos.retain(|id| self.by_id.contains_key(id));
        told.clocks.retain(|id| self.by_id.contains_key(id));
        told.shared.retain(|id| self.by_id.contains_key(id));
    }

    pub(crate) fn connect(&mut self, client: ClientId, peer: Peer) {
        let relay = Relay { machine_id: peer.machine_id, machine_name: Vec::new(), is_known: false, ping: None };
        self.relays.insert(client, relay);
    }

    /// Returns the relay, if the log says that it connected.
    pub(crate) fn disconnect(&mut self, client: ClientId) -> Option<Relay> {
        let relay = self.relays.remove(&client)?;
        if let Some(machine) = self.by_id.get_mut(&relay.machine_id) {
            machine.relays.remove(&client);
            // A relay that connects again may do so before its old connection is found dead.
            if machine.shared_by.is_some() {
                let mut others = machine.relays.iter().copied();
                machine.shared_by = others.next().zip(others.next()).map(|(one, other)| [one, other]);
            }
        }
        relay.is_known.then_some(relay)
    }

    /// Returns the relay that calls and its machine, which is remembered from now on. Returns
    /// `None` if there are too many machines.
    fn caller(&mut self, client: ClientId) -> Option<(&mut Relay, &mut Machine)> {
        let relay = self.relays.get_mut(&client)?;
        let id = relay.machine_id;
        if !self.by_id.contains_key(&id) && self.by_id.len() >= MAX_MACHINES {
            let silent = self.by_id.iter().filter(|(_, machine)| machine.relays.is_empty());
            let oldest = silent.min_by_key(|(_, machine)| machine.last_use).map(|(&id, _)| id)?;
            self.by_id.remove(&oldest);
        }
        let machine = self.by_id.get_or_default(id);
        machine.relays.insert(client);
        self.last_use += 1;
        machine.last_use = self.last_use;
        Some((relay, machine))
    }
}

impl Machines {
    /// Notes the name that a relay claims for its machine. Returns false if it is too long.
    pub(crate) fn name_machine(&mut self, client: ClientId, name: &[u8], cx: &mut Context<'_>) -> bool {
        if name.len() > MAX_MACHINE_NAME_BYTES {
            cx.warn(format!(
                "a machine name of {} bytes is ignored, at most {MAX_MACHINE_NAME_BYTES} are possible",
                name.len()
            ));
            return false;
        }
        if let Some(relay) = self.relays.get_mut(&client) {
            relay.machine_name = name.to_vec();
        }
        true
    }

    /// Answers a call of the relay port.
    pub(crate) fn call(&mut self, call: CallId, method: RelayCall<'_>, cx: &mut Context<'_>) {
        let Some(relay) = self.relays.get(&call.client) else { return cx.reject(call) };
        let machine_id = relay.machine_id;
        if machine_id == 0 {
            if matches!(method, RelayCall::InitRelay(_)) {
                cx.warn(
                    "a relay did not name its machine, so its system information and clocks are not used".to_owned(),
                );
            }
            return cx.reply_empty(call);
        }
        let Some((relay, machine)) = self.caller(call.client) else {
            // It has looked for a machine without a relay.
            cx.charge(MAX_MACHINES);
            cx.warn(format!("a relay is refused: {MAX_MACHINES} machines are connected already"));
            return cx.reject(call);
        };
        // The answer goes first, so that the following work does not lengthen the way back that the
        // relay measures.
        cx.reply_empty(call);
        match method {
            RelayCall::InitRelay(request) => match system_info(request, &relay.machine_name) {
                Some(info) => {
                    relay.is_known = true;
                    cx.info(format!("a relay of {} connected", relay.machine_in_words()));
                    machine.system_info = Some(info);
                    let other = machine.relays.iter().copied().find(|&client| client != call.client);
                    machine.shared_by = other.map(|other| [other, call.client]);
                    if let Some(relays) = machine.shared_by {
                        self.warn_of_shared_id(machine_id, relays, cx);
                    }
                }
                None => cx.warn(format!(
                    "the system information of machine {machine_id:#010x} is missing, malformed or too large"
                )),
            },
            RelayCall::SyncClock(request) => {
                let exchange = Exchange { client: clocks(request), host: *cx.now };
                match (request.phase() == Some(Phase::UPDATE), relay.ping.take()) {
                    (false, _) => relay.ping = Some(exchange),
                    (true, Some(ping)) => machine.add_round(Round { ping, update: exchange }),
                    // An UPDATE without a PING.
                    (true, None) => {}
                }
            }
        }
    }

    /// Returns the name that a relay claims for its machine.
    fn name_of(&self, client: ClientId) -> &[u8] {
        self.relays.get(&client).map_or(&[], |relay| &relay.machine_name)
    }

    fn warn_of_shared_id(&self, machine_id: u32, relays: [ClientId; 2], cx: &mut Context<'_>) {
        let [one, other] = relays.map(|client| quoted(self.name_of(client)));
        cx.warn(format!(
            "relays {one} and {other} have one machine id, {machine_id:#010x}: traces show their machines as one; if \
             they are two, start each relay with another ESATTO_MACHINE_ID_HINT"
        ));
    }
}

/// Returns the SystemInfo as it came, with the machine's name if that is missing. Returns `None` if
/// it is malformed or too large.
fn system_info(request: InitRelayRequestReader<'_>, machine_name: &[u8]) -> Option<Vec<u8>> {
    let reader = request.system_info()?;
    let info = reader.as_bytes();
    if info.len() > MAX_SYSTEM_INFO_BYTES || SystemInfo::decode(info).is_err() {
        return None;
    }
    let mut info = info.to_vec();
    if reader.machine_name().is_none() && !machine_name.is_empty() {
        put_varint(&mut info, MACHINE_NAME_FIELD << 3 | 2);
        put_varint(&mut info, machine_name.len() as u64);
        info.extend_from_slice(machine_name);
    }
    Some(info)
}

fn clocks(request: SyncClockRequestReader<'_>) -> Vec<(u32, u64)> {
    let clocks = request.clocks().take(MAX_CLOCKS);
    clocks.map(|clock| (clock.clock_id().unwrap_or(0), clock.timestamp().unwrap_or(0))).collect()
}

impl Relay {
    pub(crate) fn machine_in_words(&self) -> String {
        format!("machine {:#010x} {}", self.machine_id, quoted(&self.machine_name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(client_boottime_ns: u64) -> Round {
        let exchange = |ns| Exchange { client: vec![(BOOTTIME, ns)], host: Now { boottime_ns: 7, ..Now::default() } };
        Round { ping: exchange(client_boottime_ns), update: exchange(client_boottime_ns + 1_000_000) }
    }

    fn begins(machine: &Machine) -> Vec<u64> {
        machine.rounds.iter().filter_map(|round| round.ping.client_boottime_ns()).collect()
    }

    #[test]
    fn rounds_are_kept_apart_and_few() {
        let mut machine = Machine::default();
        let seconds = |n: u64| n * 1_000_000_000;
        machine.add_round(round(seconds(100)));
        machine.add_round(round(seconds(105)));
        assert_eq!(begins(&machine), [seconds(105)], "a round soon after another replaces it");
        for n in 0..7 {
            machine.add_round(round(seconds(200 + 31 * n)));
        }
        assert_eq!(machine.rounds.len(), MAX_ROUNDS);
        assert_eq!(begins(&machine)[0], seconds(262));
        machine.add_round(round(seconds(3)));
        assert_eq!(begins(&machine), [seconds(3)], "the machine was booted anew");
    }

    #[test]
    fn a_machine_without_a_clock_to_tell_rounds_apart_has_one() {
        let mut machine = Machine::default();
        for _ in 0..3 {
            let exchange = || Exchange { client: Vec::new(), host: Now::default() };
            machine.add_round(Round { ping: exchange(), update: exchange() });
        }
        assert_eq!(machine.rounds.len(), 1);
    }

    #[test]
    fn machines_without_relays_are_forgotten_in_the_end() {
        let mut machines = Machines::default();
        let mut told = Told::default();
        let peer = |machine_id| Peer { uid: 0, pid: None, machine_id };
        for id in 1..=1000 {
            machines.connect(ClientId(id.into()), peer(id));
            let (_, machine) = machines.caller(ClientId(id.into())).expect("room");
            machine.system_info = Some(Vec::new());
            machines.disconnect(ClientId(id.into()));
            assert_eq!(machines.system_infos_for(&mut told).count(), 1);
        }
        assert_eq!((machines.by_id.len(), told.system_infos.len()), (MAX_MACHINES, MAX_MACHINES));
        assert!(machines.by_id.contains_key(&1000) && !machines.by_id.contains_key(&744));

        for id in 2001..=2000 + MAX_MACHINES as u32 {
            machines.connect(ClientId(id.into()), peer(id));
            assert!(machines.caller(ClientId(id.into())).is_some());
        }
        machines.connect(ClientId(9), peer(9));
        assert!(machines.caller(ClientId(9)).is_none(), "all machines have a relay");
        machines.disconnect(ClientId(2001));
        assert!(machines.caller(ClientId(9)).is_some());
    }
}
