//! Explains why a connection to a socket fails: one line that names the path, the owner and the
//! remedy.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use esatto_ipc::address::{CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME};
use esatto_ipc::{Address, Error as IpcError};

use crate::diagnostics;
use crate::error::Error;

/// A socket of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Producer,
    Consumer,
}

impl Port {
    /// Returns the variable that names another socket.
    const fn variable(self) -> &'static str {
        match self {
            Self::Producer => PRODUCER_SOCK_NAME,
            Self::Consumer => CONSUMER_SOCK_NAME,
        }
    }
}

/// Makes the error for a consumer that cannot connect.
pub(crate) fn consumer_error(error: &IpcError) -> Error {
    if let Some(why) = refusal(error, Port::Consumer) {
        return Error::denied(&why);
    }
    let Some((path, source)) = socket_failure(error) else { return Error::disconnected(&error.to_string()) };
    match source.kind() {
        io::ErrorKind::PermissionDenied => Error::denied(&denied(path, Port::Consumer)),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Error::disconnected(&format!(
            "{error}: is a tracing service running? Start one (`traced`, `esatto traced`), or record inside the process"
        )),
        _ => Error::disconnected(&error.to_string()),
    }
}

/// Returns why a listener was refused, and the remedy.
fn refusal(error: &IpcError, port: Port) -> Option<String> {
    let IpcError::Stranger { .. } = error else { return None };
    Some(format!(
        "{error}; run the service as root or as the user of this process, let it listen in /run/perfetto, or name its socket in {} to trust it",
        port.variable()
    ))
}

/// Reports, once, why a producer may not connect, which it keeps trying. Returns false for a
/// missing service, which is not reported.
pub(crate) fn producer_failed(error: &IpcError) -> bool {
    let why = refusal(error, Port::Producer).or_else(|| match socket_failure(error)? {
        (path, source) if source.kind() == io::ErrorKind::PermissionDenied => Some(denied(path, Port::Producer)),
        _ => None,
    });
    let Some(why) = why else { return false };
    diagnostics::say_once(format!("not recorded by the system's tracing service: {why}"));
    true
}

fn socket_failure(error: &IpcError) -> Option<(&Path, &io::Error)> {
    match error {
        IpcError::Socket { address: Address::Path(path), source, .. } => Some((path, source)),
        _ => None,
    }
}

/// Returns why `path` is denied, and the remedy.
fn denied(path: &Path, port: Port) -> String {
    let culprit = find_culprit(path);
    let Some((culprit, metadata)) = culprit else {
        return format!("permission denied for {}; name another socket in {}", path.display(), port.variable());
    };
    let me = crate::os::kernel::effective_uid();
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let group = fs::read_to_string("/etc/group").unwrap_or_default();
    explain(path, culprit, &Owner::of(&metadata), (me, &name_of(me, &passwd)), (&passwd, &group), port)
}

/// Finds the directory or socket that denies access.
fn find_culprit(path: &Path) -> Option<(&Path, Metadata)> {
    let mut reachable = None;
    let mut ancestors: Vec<_> = path.ancestors().filter(|p| !p.as_os_str().is_empty()).collect();
    ancestors.reverse();
    for part in ancestors {
        match fs::metadata(part) {
            Ok(metadata) => reachable = Some((part, metadata)),
            Err(_) => break,
        }
    }
    reachable
}

/// The owner of a file, and the permissions.
#[derive(Clone, Copy, Debug)]
struct Owner {
    uid: u32,
    gid: u32,
    mode: u32,
    is_socket: bool,
}

impl Owner {
    fn of(metadata: &Metadata) -> Self {
        let is_socket = metadata.file_type().is_socket();
        Self { uid: metadata.uid(), gid: metadata.gid(), mode: metadata.mode() & 0o7777, is_socket }
    }
}

fn explain(
    path: &Path,
    culprit: &Path,
    owner: &Owner,
    me: (u32, &str),
    (passwd, group): (&str, &str),
    port: Port,
) -> String {
    let (owner_name, group_name) = (name_of(owner.uid, passwd), name_of(owner.gid, group));
    let which = if culprit == path { String::from("it") } else { format!("the folder {}", culprit.display()) };
    let (uid, user) = me;
    // Connecting needs the permission to write, passing through a directory the permission to
    // execute.
    let group_bit = if owner.is_socket { 0o020 } else { 0o010 };
    // Membership in root's group would open much more than tracing.
    let remedy = if owner.mode & group_bit != 0 && owner.gid != 0 {
        format!("join that group (`sudo usermod -aG {group_name} {user}`, then log in again)")
    } else if owner.is_socket {
        format!("start the service with `--set-socket-permissions` for a group of {user}, or run as {owner_name}")
    } else {
        format!("let others pass (`sudo chmod a+x {}`), or run as {owner_name}", culprit.display())
    };
    format!(
        "permission denied for {}: {which} belongs to {owner_name}:{group_name} with mode {:04o}, and this process is {user} (uid {uid}); \
         {remedy}, or name another socket in {}",
        path.display(),
        owner.mode,
        port.variable(),
    )
}

/// Returns the name for a number in `/etc/passwd` or `/etc/group`, or the number.
fn name_of(id: u32, table: &str) -> String {
    let id = id.to_string();
    let found = table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1) == Some(&id)).then_some(name)
    });
    found.unwrap_or(&id).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nalice:x:1000:1000::/home/alice:/bin/sh\n";
    const GROUP: &str = "root:x:0:\ntraced-consumer:x:990:bob\n";

    #[test]
    fn the_path_the_owner_and_the_remedy_are_named() {
        let socket = Path::new("/run/perfetto/traced-consumer.sock");
        let say = |culprit: &Path, owner: Owner| {
            explain(socket, culprit, &owner, (1000, "alice"), (PASSWD, GROUP), Port::Consumer)
        };
        let owner = Owner { uid: 0, gid: 990, mode: 0o660, is_socket: true };
        assert_eq!(
            say(socket, owner),
            "permission denied for /run/perfetto/traced-consumer.sock: it belongs to root:traced-consumer with mode 0660, and this process \
             is alice (uid 1000); join that group (`sudo usermod -aG traced-consumer alice`, then log in again), or name another socket in \
             PERFETTO_CONSUMER_SOCK_NAME"
        );
        let text = say(socket, Owner { mode: 0o600, ..owner });
        assert!(
            text.contains("with mode 0600")
                && text.contains("`--set-socket-permissions` for a group of alice, or run as root")
        );
        let text = say(socket, Owner { gid: 0, ..owner });
        assert!(text.contains("belongs to root:root with mode 0660") && !text.contains("usermod"), "{text}");
        assert!(text.contains("`--set-socket-permissions` for a group of alice, or run as root"), "{text}");
        let folder = Owner { gid: 0, mode: 0o750, is_socket: false, ..owner };
        let text = say(Path::new("/run/perfetto"), folder);
        assert!(text.contains("`sudo chmod a+x /run/perfetto`") && !text.contains("usermod"), "{text}");
        let folder = Owner { uid: 7, gid: 8, mode: 0o700, is_socket: false };
        let text = say(Path::new("/run/perfetto"), folder);
        assert!(text.contains("the folder /run/perfetto belongs to 7:8 with mode 0700"), "{text}");
        assert!(text.contains("`sudo chmod a+x /run/perfetto`"), "{text}");
    }
}
