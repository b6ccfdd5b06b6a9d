//! [`Peer`]: the identity of the process at the other end of a connection
//! (`docs/spec/wire-protocol.md §7`).

use crate::address::Family;
use crate::frame::PeerIdentity;
use crate::sys::{ConnectAttempt, Stream};

/// Identity of a peer, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Kind of socket by which it connected.
    pub family: Family,
    /// User id. On unix sockets it comes from the kernel, on others from a claim (0 without a
    /// claim). Claims may be negative.
    pub uid: i32,
    /// Process id, if known. Claims may be negative.
    pub pid: Option<i32>,
    /// Id of the machine. 0 for this machine, and for remote peers that did not identify
    /// themselves.
    pub machine_id: u32,
    /// Name of the machine, as claimed by a relay. Empty for the name of this machine.
    pub machine_name: Vec<u8>,
    /// Replacement for an empty hint: the local address to which the peer connected, without its
    /// port.
    local_host: String,
    /// True if a relay has told the identity. A second claim is ignored.
    claimed: bool,
}

impl Peer {
    /// Makes the identity of a process of this machine that connected to a unix socket.
    pub fn local(uid: u32, pid: Option<i32>) -> Self {
        Self { uid: uid as i32, pid, ..Self::remote(Family::Unix, String::new()) }
    }

    /// Makes the identity of a peer on another kind of socket. `local_host` is the local address to
    /// which it connected, without the port.
    pub fn remote(family: Family, local_host: String) -> Self {
        Self { family, uid: 0, pid: None, machine_id: 0, machine_name: Vec::new(), local_host, claimed: false }
    }

    /// Returns the kernel's knowledge about the peer of an accepted connection.
    ///
    /// A unix peer without credentials (possible only for inherited descriptors) gets the user id
    /// -1, which is no user.
    pub fn of(stream: &Stream) -> Self {
        match stream.family() {
            Family::Unix => {
                let (uid, pid) = stream.peer_credentials().map_or((u32::MAX, None), |c| (c.uid, c.pid));
                Self::local(uid, pid)
            }
            family => Self::remote(family, stream.local_host().unwrap_or_default()),
        }
    }

    /// Accepts a claim if it is the first one and the socket has no credentials. Returns true if it
    /// was accepted.
    pub fn identify(&mut self, claim: &PeerIdentity<'_>) -> bool {
        if self.family == Family::Unix || self.claimed {
            return false;
        }
        self.claimed = true;
        self.uid = claim.uid.unwrap_or(0);
        self.pid = claim.pid;
        self.machine_name = claim.machine_name.to_vec();
        let hint = claim.machine_id_hint;
        self.machine_id = machine_id(if hint.is_empty() { self.local_host.as_bytes() } else { hint });
        true
    }
}

impl ConnectAttempt {
    /// The process that listens at the address.
    ///
    /// It is known from the beginning on a unix socket, which is connected as soon as the attempt
    /// begins.
    pub fn peer(&self) -> Peer {
        Peer::of(self.stream())
    }
}

/// Returns the machine id of a hint: the low half of its 64-bit FNV-1a hash, never 0.
pub fn machine_id(hint: &[u8]) -> u32 {
    ((fnv1a(hint) & 0xffff_ffff) as u32).max(1)
}

/// Returns the 64-bit FNV-1a hash.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(OFFSET_BASIS, |h, &b| (h ^ u64::from(b)).wrapping_mul(PRIME))
}
