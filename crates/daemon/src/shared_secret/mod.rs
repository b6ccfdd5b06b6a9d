//! A secret that a relay and a service share, and the proof that both know it
//! (`docs/spec/wire-protocol.md` §16).
//!
//! ```text
//! relay                                    service
//!   BindService EsattoSecretPort     ──▶
//!   Challenge { nonce of the relay } ──▶
//!                                    ◀──  { nonce of the service }
//!   Prove { proof of the relay }     ──▶  wrong: the connection ends
//!                                    ◀──  { proof of the service }
//! ```
//!
//! A proof is the HMAC-SHA256 of the prover's role and both nonces, with the secret as the key. The
//! secret never crosses the wire. A recorded proof is worthless, because each side chooses a new
//! nonce for each connection. A proof that was sent to one side cannot be sent back to it, because
//! the role differs. The relay proves first, so that a stranger who connects learns nothing about
//! the secret.
//!
//! This authenticates the start of a connection. It does not protect the bytes after it: they can
//! be read, and a machine on the way that forwards the proofs can change them.

mod gate;

use core::fmt;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use esatto_ipc::service::{Kind, Method, Service};
use esatto_protozero::{Fields, HeapBuffer};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use thiserror::Error;

pub(crate) use self::gate::{Gate, Progress, Refusal};

/// Name of the service of the proof. Peers without a secret do not offer it.
pub(crate) const SECRET_SERVICE: &str = "EsattoSecretPort";
/// Method that exchanges the nonces.
pub(crate) const CHALLENGE: &str = "Challenge";
/// Method that exchanges the proofs.
pub(crate) const PROVE: &str = "Prove";
/// The only port of a connection that has not proved the secret.
static SECRET_PORT: Service = Service {
    name: SECRET_SERVICE,
    methods: &[
        Method { name: CHALLENGE, full_name: "EsattoSecretPort.Challenge", kind: Kind::Unary, trace: None },
        Method { name: PROVE, full_name: "EsattoSecretPort.Prove", kind: Kind::Unary, trace: None },
    ],
};

/// Smallest length of a secret. A program that stands in for the service gets a proof, and can test
/// guesses with it. So a secret must be too long to guess.
const SHORTEST: usize = 32;
/// Largest length of a secret.
const LONGEST: usize = 4096;

/// Number that is used once.
pub(crate) type Nonce = [u8; 32];
/// HMAC-SHA256 of a role and the nonces.
pub(crate) type Proof = [u8; 32];

/// A secret of a relay and a service.
///
/// Both read it from a file. Its `Debug` form does not show it.
#[derive(Clone)]
pub struct SharedSecret(Arc<[u8]>);

/// Reason why a secret cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SecretError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Other users can read or change the file.
    #[error("other users can read or change it (mode {0:04o}); run chmod 600, or 640 for a group")]
    Exposed(u32),
    /// Another user can change the file: it belongs to `owner`, and this process runs as `uid`.
    #[error("it belongs to uid {owner}, who can change it; it must belong to root or to uid {uid}, so run chown")]
    Foreign {
        /// User id of the file's owner.
        owner: u32,
        /// User id of this process.
        uid: u32,
    },
    /// It could be guessed.
    #[error("it has {0} bytes, and at least {SHORTEST} are needed; openssl rand -hex 32 makes a good one")]
    TooShort(usize),
    /// It is no secret but some other file.
    #[error("it has more than {LONGEST} bytes")]
    TooLong,
}

/// Side of a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Relay,
    Service,
}

/// Numbers that both sides have chosen for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonces {
    pub(crate) relay: Nonce,
    pub(crate) service: Nonce,
}

impl SharedSecret {
    /// Reads a secret from a file. White space at its end does not count.
    ///
    /// # Errors
    ///
    /// The file cannot be read, users other than root can change it, users outside of its group can
    /// read it, or the secret is shorter than 32 bytes or longer than 4096.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let mut file = File::open(path)?;
        let meta = file.metadata()?;
        check_access(meta.permissions().mode() & 0o7777, meta.uid(), rustix::process::geteuid().as_raw())?;
        let mut bytes = Vec::new();
        file.by_ref().take(LONGEST as u64 + 1).read_to_end(&mut bytes)?;
        Self::new(&bytes)
    }

    /// Makes a secret of bytes. White space at their end does not count.
    ///
    /// # Errors
    ///
    /// The secret is shorter than 32 bytes or longer than 4096.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretError> {
        let secret = bytes.trim_ascii_end();
        match secret.len() {
            _ if bytes.len() > LONGEST => Err(SecretError::TooLong),
            short if short < SHORTEST => Err(SecretError::TooShort(short)),
            _ => Ok(Self(secret.into())),
        }
    }

    /// Returns the proof of one side.
    pub(crate) fn proof(&self, role: Role, nonces: &Nonces) -> Proof {
        self.mac(role, nonces).finalize().into_bytes().into()
    }

    /// Returns whether a proof is that of `role`. The time that it takes does not depend on the
    /// proof.
    pub(crate) fn verifies(&self, role: Role, nonces: &Nonces, proof: &[u8]) -> bool {
        self.mac(role, nonces).verify_slice(proof).is_ok()
    }

    fn mac(&self, role: Role, nonces: &Nonces) -> Hmac<Sha256> {
        // All parts but the role have a fixed length, so no two messages are the same.
        let role: &[u8] = match role {
            Role::Relay => b"esatto shared secret 1: relay\0",
            Role::Service => b"esatto shared secret 1: service\0",
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key may have any length");
        for part in [role, &nonces.relay, &nonces.service] {
            mac.update(part);
        }
        mac
    }
}

/// Checks who can read and change a file with a secret. Its owner can do both, with any mode.
fn check_access(mode: u32, owner: u32, uid: u32) -> Result<(), SecretError> {
    if mode & 0o037 != 0 {
        return Err(SecretError::Exposed(mode));
    }
    if ![0, uid].contains(&owner) {
        return Err(SecretError::Foreign { owner, uid });
    }
    Ok(())
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(…)")
    }
}

/// Returns a new nonce.
pub(crate) fn nonce() -> std::io::Result<Nonce> {
    let mut nonce = Nonce::default();
    let mut filled = 0;
    while filled < nonce.len() {
        filled += rustix::rand::getrandom(&mut nonce[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(nonce)
}

/// Encodes a message of the proof: 32 bytes in field 1.
pub(crate) fn encode(bytes: &[u8; 32]) -> Vec<u8> {
    let mut buffer = HeapBuffer::new();
    buffer.message().bytes(1, bytes);
    buffer.to_vec()
}

/// Decodes a message of the proof.
pub(crate) fn decode(message: &[u8]) -> Option<[u8; 32]> {
    Fields::new(message).first(1)?.as_bytes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCES: Nonces = Nonces { relay: [1; 32], service: [2; 32] };

    fn secret(byte: u8) -> SharedSecret {
        SharedSecret::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_proof_is_for_one_secret_one_role_and_both_nonces() {
        let proof = secret(7).proof(Role::Relay, &NONCES);
        assert!(secret(7).verifies(Role::Relay, &NONCES, &proof));
        assert!(!secret(8).verifies(Role::Relay, &NONCES, &proof));
        // Neither a reflection …
        assert!(!secret(7).verifies(Role::Service, &NONCES, &proof));
        let swapped = Nonces { relay: NONCES.service, service: NONCES.relay };
        assert!(!secret(7).verifies(Role::Relay, &swapped, &proof));
        // … nor a replay is a proof.
        for other in [Nonces { relay: [3; 32], ..NONCES }, Nonces { service: [3; 32], ..NONCES }] {
            assert!(!secret(7).verifies(Role::Relay, &other, &proof));
        }
        for part in [&proof[..31], &[], &[proof, proof].concat()] {
            assert!(!secret(7).verifies(Role::Relay, &NONCES, part));
        }
    }

    /// Computed with Python's `hmac`, so that a change of the protocol is noticed.
    #[test]
    fn the_proofs_are_those_of_the_specification() {
        let hex = |proof: Proof| proof.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let secret = SharedSecret::new(b"0123456789abcdef0123456789abcdef\n").unwrap();
        assert_eq!(
            hex(secret.proof(Role::Relay, &NONCES)),
            "7bbf300049b8ed7fd93055348f0ab9b5fe56b6cfeaa7186bd8a059661fbc1621"
        );
        assert_eq!(
            hex(secret.proof(Role::Service, &NONCES)),
            "58eceaf0966e117b35000885507fe26464b5663830b5e5ae2f71787b22c5af9a"
        );
    }

    #[test]
    fn unsuitable_secrets_are_refused() {
        assert!(matches!(SharedSecret::new(b"password\n"), Err(SecretError::TooShort(8))));
        assert!(matches!(SharedSecret::new(&[b'x'; 4097]), Err(SecretError::TooLong)));
        let folder = std::env::temp_dir().join(format!("esatto-secret-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("secret");
        std::fs::write(&path, [b'x'; 64]).unwrap();
        for (mode, is_good) in [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o660, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let read = SharedSecret::read(&path);
            assert_eq!(read.is_ok(), is_good, "{mode:o}: {read:?}");
        }
        assert!(matches!(SharedSecret::read(&folder.join("none")), Err(SecretError::Io(_))));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_secret_belongs_to_root_or_to_the_user_of_the_program() {
        for (owner, uid, is_good) in [(0, 0, true), (0, 7, true), (7, 7, true), (7, 0, false), (8, 7, false)] {
            assert_eq!(check_access(0o400, owner, uid).is_ok(), is_good, "{owner} {uid}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", secret(b'x')), "SharedSecret(…)");
    }

    #[test]
    fn messages_are_exact() {
        assert_eq!(decode(&encode(&[5; 32])), Some([5; 32]));
        for bad in [&[][..], &[0x0a, 1, 5], &[0x08, 1], &[0x0a, 33]] {
            assert_eq!(decode(bad), None);
        }
        assert_ne!(nonce().unwrap(), nonce().unwrap());
    }
}
