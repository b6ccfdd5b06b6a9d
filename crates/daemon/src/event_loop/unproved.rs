//! Clients that have not proved the shared secret. They may be anybody, so their number, their time
//! and their bytes are bounded.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use esatto_service::ClientId;

use super::{EventLoop, TimerKey};
use crate::clocks;
use crate::shared_secret::Refusal;
use esatto_daemon_program::stderr_log;

/// Connections without a proof at the same time. A relay proves within two round trips. So of the
/// connections of the address that has most, the oldest is the least likely to be a relay.
const MAX_UNPROVED: usize = 256;
/// Bytes that a connection may hold before its proof. The messages of the proof are shorter than
/// 100 bytes.
pub(super) const MAX_UNPROVED_BYTES: usize = 4 << 10;
/// Time from the accept to the proof.
const MAX_PROOF_MS: u64 = 10_000;

/// Clients without a proof, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unproved(VecDeque<(ClientId, Origin)>);

/// Origin of a connection from another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Origin {
    V4(Ipv4Addr),
    V6(Ipv6Addr),
    /// The CID of a virtual machine.
    Vsock(u32),
    /// The peer has closed the connection already.
    Unknown,
}

/// Addresses that one machine can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    /// All addresses with these first 64 bits.
    V6([u16; 4]),
    One(Origin),
}

impl Origin {
    /// Parses an address as `Stream::peer_address` returns it.
    fn of(peer_address: Option<&str>) -> Self {
        let Some(address) = peer_address else { return Self::Unknown };
        if let Ok(address) = address.parse::<SocketAddr>() {
            return match address.ip().to_canonical() {
                IpAddr::V4(ip) => Self::V4(ip),
                IpAddr::V6(ip) => Self::V6(ip),
            };
        }
        let cid = address.strip_prefix("vsock://").and_then(|rest| rest.split(':').next());
        cid.and_then(|cid| cid.parse().ok()).map_or(Self::Unknown, Self::Vsock)
    }

    fn network(self) -> Network {
        match self {
            Self::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Network::V6([a, b, c, d])
            }
            other => Network::One(other),
        }
    }
}

impl Unproved {
    /// Returns the client to close when there are too many: of the network with most of them, and
    /// there of the address with most of them, the oldest. So a machine that opens very many
    /// connections closes its own, even if it has many addresses.
    fn least_likely(&self) -> Option<ClientId> {
        let (mut by_network, mut by_origin) = (HashMap::<_, usize>::new(), HashMap::<_, usize>::new());
        for (_, origin) in &self.0 {
            *by_network.entry(origin.network()).or_default() += 1;
            *by_origin.entry(*origin).or_default() += 1;
        }
        let count = |origin: &Origin| (by_network.get(&origin.network()), by_origin.get(origin));
        // Of several that are equal, `max_by_key` returns the last one.
        self.0.iter().rev().max_by_key(|(_, origin)| count(origin)).map(|&(id, _)| id)
    }
}

impl EventLoop {
    /// Gives a new client its time for the proof.
    pub(super) fn await_proof(&mut self, id: ClientId) {
        let at_ns = clocks::monotonic_ns().saturating_add(MAX_PROOF_MS * 1_000_000);
        self.monotonic.set(TimerKey::Proof(id), at_ns);
        let address = self.clients.get(&id).and_then(|client| client.connection.stream().peer_address());
        self.unproved.0.push_back((id, Origin::of(address.as_deref())));
        if self.unproved.0.len() > MAX_UNPROVED {
            if let Some(id) = self.unproved.least_likely() {
                self.refuse(id, &Refusal::Crowded);
            }
        }
    }

    /// Notes that a client has proved the secret.
    pub(super) fn proved(&mut self, id: ClientId) {
        self.forget_unproved(id);
        if let Some(client) = self.clients.get(&id) {
            log::debug!("{} has proved the shared secret", client.name());
        }
    }

    pub(super) fn forget_unproved(&mut self, id: ClientId) {
        self.monotonic.cancel(TimerKey::Proof(id));
        self.unproved.0.retain(|&(other, _)| other != id);
    }

    /// Closes a connection without a proof, after its last answer was sent.
    pub(super) fn refuse(&mut self, id: ClientId, refusal: &Refusal) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let from =
            client.connection.stream().peer_address().map(|address| format!(" from {address}")).unwrap_or_default();
        log::warn!(target: stderr_log::STRANGERS, "{}{from} is refused: {refusal}", client.name());
        self.counters.connections_refused.add_one();
        // It fits into the buffer of the kernel, unless the peer does not read.
        let _ = client.connection.flush_writes();
        self.close(id, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(addresses: &[&str]) -> usize {
        let origins = addresses.iter().map(|address| Origin::of(Some(address)));
        let all = Unproved((0..).map(ClientId).zip(origins).collect());
        usize::try_from(all.least_likely().unwrap().0).unwrap()
    }

    #[test]
    fn the_address_with_most_connections_loses_its_oldest() {
        assert_eq!(closed(&["10.0.0.1:7", "10.0.0.2:7", "10.0.0.2:8"]), 1);
        assert_eq!(closed(&["vsock://4:7", "vsock://3:1", "vsock://4:8", "10.0.0.2:7"]), 0);
        assert_eq!(closed(&["[::1]:7", "[::ffff:10.0.0.2]:7", "10.0.0.2:8"]), 1, "IPv4 over an IPv6 socket");
        assert_eq!(closed(&["10.0.0.1:7", "10.0.0.2:7"]), 0, "without a difference, the oldest of all");
    }

    #[test]
    fn the_addresses_of_a_machine_with_a_whole_network_count_together() {
        let many = ["[2001:db8::1]:7", "[2001:db8::2]:7", "[2001:db8::3]:7"];
        assert_eq!(closed(&["10.0.0.1:7", "10.0.0.1:8", many[0], many[1], many[2]]), 2);
        // A relay in the network of the stranger.
        assert_eq!(closed(&["[fe80::1%2]:7", "[fe80::2%2]:7", "[fe80::2%2]:8"]), 1);
    }

    #[test]
    fn an_address_that_cannot_be_read_has_an_origin() {
        assert_eq!(Origin::of(None), Origin::Unknown);
        assert_eq!(Origin::of(Some("vsock://?")), Origin::Unknown);
    }
}
