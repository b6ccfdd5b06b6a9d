//! Clients that have not proved the shared secret. They may be anybody, so their number, their time
//! and their bytes are bounded.

use std::collections::VecDeque;

use esatto_service::ClientId;

use super::{EventLoop, TimerKey};
use crate::clocks;
use crate::shared_secret::Refusal;

/// Connections without a proof at the same time. A relay proves within two round trips, so the
/// oldest of them is the least likely to be one.
const MAX_UNPROVED: usize = 256;
/// Bytes that a connection may hold before its proof. The messages of the proof are shorter than
/// 100 bytes.
pub(super) const MAX_UNPROVED_BYTES: usize = 4 << 10;
/// Time from the accept to the proof.
const MAX_PROOF_MS: u64 = 10_000;

/// Clients without a proof, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unproved(VecDeque<ClientId>);

impl EventLoop {
    /// Gives a new client its time for the proof.
    pub(super) fn await_proof(&mut self, id: ClientId) {
        let at_ns = clocks::monotonic_ns().saturating_add(MAX_PROOF_MS * 1_000_000);
        self.monotonic.set(TimerKey::Proof(id), at_ns);
        self.unproved.0.push_back(id);
        if self.unproved.0.len() > MAX_UNPROVED {
            if let Some(&oldest) = self.unproved.0.front() {
                self.refuse(oldest, &Refusal::Crowded);
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
        self.unproved.0.retain(|&other| other != id);
    }

    /// Closes a connection without a proof, after its last answer was sent.
    pub(super) fn refuse(&mut self, id: ClientId, refusal: &Refusal) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        let from =
            client.connection.stream().peer_address().map(|address| format!(" from {address}")).unwrap_or_default();
        log::warn!("{}{from} is refused: {refusal}", client.name());
        self.counters.connections_refused.add_one();
        // It fits into the buffer of the kernel, unless the peer does not read.
        let _ = client.connection.flush_writes();
        self.close(id, None);
    }
}
