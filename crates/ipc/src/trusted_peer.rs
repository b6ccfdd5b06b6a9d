//! Trust of a client in the service of a unix socket (`docs/spec/wire-protocol.md` §1).
//!
//! The standard addresses in `/tmp` are open to all users while no service runs. If a client's user
//! has named no address, the client checks the listener's user before it sends anything.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::address::Address;
use crate::error::Error;
use crate::sys::{Stream, own_users};

/// Write permission for the group and for others.
const WRITABLE_BY_OTHERS: u32 = 0o022;

impl Stream {
    /// Returns true if the peer is a process of root, or of the user of this process, on this
    /// machine. This process could harm ours anyway.
    pub fn has_trusted_peer(&self) -> bool {
        self.peer_credentials().is_some_and(|peer| is_trusted(peer.uid))
    }

    /// Refuses the service of a stranger at an address where [any user](Address::is_open_to_all)
    /// may listen.
    ///
    /// Accepts root, the user of this process, and the owner of the folder if no other user can
    /// write to it.
    ///
    /// # Errors
    ///
    /// [`Error::Stranger`]. The caller must close the connection.
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

/// Returns true if a stranger has redirected the path to another socket.
fn is_strange_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.is_symlink() && !is_trusted(file.uid()))
}

/// Returns the owner of the folder, if no other user can write to it.
fn owner_of_closed_folder(path: &Path) -> Option<u32> {
    let folder = fs::metadata(path.parent()?).ok()?;
    (folder.mode() & WRITABLE_BY_OTHERS == 0).then_some(folder.uid())
}
