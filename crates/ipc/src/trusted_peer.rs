//! Whom a client may trust that connects to a unix socket (`docs/spec/wire-protocol.md` §1).
//!
//! The standard addresses in `/tmp` are open to all users while no service runs. A client that was
//! not told an address by its user looks who listens there before it says anything.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::address::Address;
use crate::error::Error;
use crate::sys::{Stream, own_users};

/// Write permission for the group and for others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

impl Stream {
    /// Whether the peer is a process of root, or of the user of this process, on this machine: one
    /// that could do harm to this process anyway.
    pub fn has_trusted_peer(&self) -> bool {
        self.peer_credentials().is_some_and(|peer| is_trusted(peer.uid))
    }

    /// Refuses a service of a stranger at an address that [any user](Address::is_open_to_all) may
    /// listen on.
    ///
    /// Accepted are root, the user of this process, and the owner of the folder if nobody else can
    /// write to it.
    ///
    /// # Errors
    ///
    /// [`Error::Stranger`]; the connection is to be closed.
    pub fn refuse_stranger(&self, address: &Address) -> Result<(), Error> {
        let Address::Path(path) = address else { return Ok(()) };
        let uid = self.peer_credentials().map(|peer| peer.uid);
        let is_accepted = uid.is_some_and(|uid| {
            (is_trusted(uid) && !is_strange_link(path)) || owner_of_closed_folder(path) == Some(uid)
        });
        if is_accepted { Ok(()) } else { Err(Error::Stranger { address: address.clone(), uid }) }
    }
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || own_users().contains(&uid)
}

/// Whether a stranger has redirected the path to another socket.
fn is_strange_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_symlink() && !is_trusted(file.uid()))
}

/// The owner of the folder, if nobody else can write to it.
fn owner_of_closed_folder(path: &Path) -> Option<u32> {
    let folder = fs::metadata(path.parent()?).ok()?;
    (folder.mode() & WRITABLE_BY_OTHERS == 0).then_some(folder.uid())
}
