//! Connection to the tracing service, as a consumer. If it fails, the error says what to do.

use core::time::Duration;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use esatto_ipc::address::{CONSUMER_SOCK_NAME, unusable_run_dir};
use esatto_ipc::{Address, BlockingClient, Error as IpcError, Stream};
use esatto_ports::consumer_port;

use crate::failure::{Failure, limit_advice};

/// Time for which a service may take to answer.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the address of the service, as the environment or the platform names it.
pub(crate) fn address() -> Result<Address, Failure> {
    Address::consumer_default().map_err(|e| Failure::new("cannot find the address of the tracing service", e))
}

/// Connects to a service, but refuses that of another user on an address where every user may
/// listen.
pub(crate) fn connect(address: &Address) -> Result<BlockingClient, Failure> {
    let is_named = std::env::var_os(CONSUMER_SOCK_NAME).is_some();
    let connected = Stream::connect(address, CONNECT_TIMEOUT).and_then(|stream| {
        refuse_stranger(&stream, address)?;
        BlockingClient::bind(stream, consumer_port::SERVICE.name, CONNECT_TIMEOUT)
    });
    connected.map_err(|error| {
        let what = format!("cannot reach a tracing service at {address}");
        let failure = match &error {
            // The address is in `what`.
            IpcError::Socket { source, .. } => Failure::new(what, source),
            _ => Failure::new(what, &error),
        };
        match (&error, address.as_path()) {
            (IpcError::Stranger { .. }, _) => failure.hint(
                "run the service as root or as yourself, let it listen in /run/perfetto, or name its socket in \
                 PERFETTO_CONSUMER_SOCK_NAME to trust it",
            ),
            (IpcError::Socket { source, .. }, Some(path)) if source.kind() == io::ErrorKind::PermissionDenied => {
                failure.hint(permission_advice(path))
            }
            // The limit is the reason, not the service.
            (IpcError::Socket { source, .. }, _) if limit_advice(&source.to_string()).is_some() => failure,
            (IpcError::Disconnected, _) => failure.hint(
                "a service is there, but refused the connection: its log says why, for instance that too many \
                 connections are open",
            ),
            (IpcError::Timeout, _) => failure.hint(format!(
                "a service listens there, but does not answer within {} s: it is suspended or hangs; its process may \
                 have to be restarted",
                CONNECT_TIMEOUT.as_secs()
            )),
            _ => match unusable_run_dir() {
                // The service is where this user may not look.
                Some((folder, why)) if !is_named && why.kind() == io::ErrorKind::PermissionDenied => {
                    Failure::new(format!("cannot reach a tracing service in {folder}"), why)
                        .hint(permission_advice(Path::new(folder)))
                }
                _ => failure
                    .hint("start one with `esatto traced`, or record a single command: `esatto record -- COMMAND`"),
            },
        }
    })
}

/// Refuses the service of another user on an address where every user may listen, unless the
/// environment names this address.
pub(crate) fn refuse_stranger(stream: &Stream, address: &Address) -> Result<(), IpcError> {
    let is_named = std::env::var_os(CONSUMER_SOCK_NAME).is_some();
    if !is_named && address.is_open_to_all() { stream.refuse_stranger(address) } else { Ok(()) }
}

/// Names the group whose members may use `path`, and the command that joins it.
pub(crate) fn permission_advice(path: &Path) -> String {
    let Some((place, meta)) = obstacle(path) else { return "run the command as root".to_owned() };
    let is_socket = meta.file_type().is_socket();
    // To connect needs the right to write to a socket, and to enter a folder.
    let needed = if is_socket { 0o020 } else { 0o010 };
    if is_socket && !has_listener(&place) {
        return format!(
            "no service listens there: the user {} has left the socket over; remove it with `sudo rm {}`",
            owner_of(&meta),
            place.display()
        );
    }
    let place = place.display();
    if meta.mode() & needed == 0 || meta.gid() == 0 {
        // Members of the group root may do more than record.
        let owner = owner_of(&meta);
        let admit = match is_socket {
            true => format!(", or let a service admit you: `esatto traced --background {}`", admitting_option()),
            false => String::new(),
        };
        return format!("only the user {owner} may use {place}: run the command as that user{admit}");
    }
    let Some(group) = name_of("/etc/group", meta.gid()) else {
        return format!("only members of the group with gid {} may use {place}", meta.gid());
    };
    let is_member = std::fs::read_to_string("/etc/group").is_ok_and(|text| has_member(&text, &group, &user()));
    if is_member {
        return format!("you have joined the group {group} of {place} after this login: log in again");
    }
    format!(
        "only members of the group {group} may use {place}: run `sudo usermod -aG {group} $USER`, then log in again"
    )
}

/// Returns the option of `traced` that lets this user control the service: all users may be
/// recorded, and members of the user's group may record.
pub(crate) fn admitting_option() -> String {
    let gid = rustix::process::getegid().as_raw();
    let group = name_of("/etc/group", gid).unwrap_or_else(|| gid.to_string());
    format!("--set-socket-permissions root:0666:{group}:0660")
}

fn owner_of(meta: &Metadata) -> String {
    name_of("/etc/passwd", meta.uid()).unwrap_or_else(|| format!("uid {}", meta.uid()))
}

/// Returns false if no process of this network listens on a socket of this name. A process may name
/// the folder otherwise, for instance by a link.
fn has_listener(socket: &Path) -> bool {
    let Ok(sockets) = std::fs::read("/proc/net/unix") else { return true };
    let name = socket.file_name().unwrap_or_default().as_bytes();
    let is_so_named = |line: &[u8]| line.strip_suffix(name).is_some_and(|rest| rest.ends_with(b"/"));
    sockets.split(|byte| *byte == b'\n').any(is_so_named)
}

/// Returns the socket, or the first folder on the way to it that this user may not enter.
fn obstacle(path: &Path) -> Option<(PathBuf, Metadata)> {
    // If a folder may not be entered, nothing below it has metadata.
    path.ancestors().find_map(|place| Some((place.to_owned(), std::fs::metadata(place).ok()?)))
}

fn user() -> String {
    name_of("/etc/passwd", rustix::process::getuid().as_raw()).unwrap_or_default()
}

/// Returns the name with this number in `/etc/passwd` or `/etc/group`.
pub(crate) fn name_of(file: &str, id: u32) -> Option<String> {
    find_name(&std::fs::read_to_string(file).ok()?, id).map(str::to_owned)
}

fn find_name(text: &str, id: u32) -> Option<&str> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, number) = (fields.next()?, fields.nth(1)?);
        (number.parse() == Ok(id)).then_some(name)
    })
}

fn has_member(groups: &str, group: &str, user: &str) -> bool {
    let line = groups.lines().find(|line| line.split(':').next() == Some(group));
    let members = line.and_then(|line| line.split(':').nth(3));
    !user.is_empty() && members.is_some_and(|members| members.split(',').any(|member| member == user))
}

/// The error of a connection that has ended.
pub(crate) fn lost(error: IpcError) -> Failure {
    let failure = Failure::new("lost the connection to the tracing service", &error);
    match error {
        IpcError::Disconnected => failure.hint("the service has ended or was restarted"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const GROUPS: &str = "root:x:0:\nperfetto:x:985:ann,bob\n";

    #[test]
    fn groups_are_found_by_number_and_members_by_name() {
        assert_eq!(find_name(GROUPS, 985), Some("perfetto"));
        assert_eq!(find_name(GROUPS, 98), None);
        assert!(has_member(GROUPS, "perfetto", "bob") && !has_member(GROUPS, "perfetto", "bo"));
        assert!(!has_member(GROUPS, "root", ""));
    }

    #[test]
    fn the_advice_names_the_owner_if_the_group_has_no_right() {
        let folder = crate::private_service::Folder::create().unwrap();
        let socket = folder.path().join("of-a-test.sock");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(permission_advice(&socket).starts_with("only the user "));
        std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o660)).unwrap();
        let advice = permission_advice(&socket);
        let is_roots = std::fs::metadata(&socket).unwrap().gid() == 0;
        assert!(if is_roots { advice.starts_with("only the user ") } else { advice.contains("group") }, "{advice}");
        drop(listener);
        assert!(permission_advice(&socket).starts_with("no service listens there"), "{}", permission_advice(&socket));
    }
}
