//! Checks of the sockets and of the service that listens there.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use esatto_ipc::Address;
use esatto_ipc::address::{AddressError, CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME, unusable_run_dir};
use rustix::fs::{Access, access};

use super::check::Check;
use crate::machine_service::{is_missing, is_named};
use crate::service_connection::{connect, name_of, permission_advice};
use crate::service_state::Programs;

/// Version of this command, as its service tells it.
const OWN_VERSION: &str = concat!("Esatto v", env!("CARGO_PKG_VERSION"));

/// Checks the sockets. Returns also the programs of the service, if it tells them.
pub(super) fn checks() -> (Vec<Check>, Option<Programs>) {
    let mut checks = Vec::new();
    if let Some((folder, why)) = unusable_run_dir() {
        let advice = permission_advice(Path::new(folder));
        checks.push(Check::missing(
            "run-dir",
            format!("the folder of the sockets, {folder}, cannot be used: {why}"),
            advice,
        ));
    }
    let (mut consumer, mut producer) = (None, None);
    for (name, variable, address, place) in [
        ("consumer", CONSUMER_SOCK_NAME, Address::consumer_default(), &mut consumer),
        ("producer", PRODUCER_SOCK_NAME, Address::producer_default(), &mut producer),
    ] {
        match address {
            Ok(address) => *place = Some(address),
            Err(why) => checks.push(malformed(name, variable, &why)),
        }
    }
    let programs = consumer.as_ref().and_then(|address| {
        let (check, programs) = service(address);
        checks.push(check);
        checks.extend(programs.iter().filter_map(version));
        checks.extend(programs.iter().filter_map(lockdown));
        programs
    });
    let sockets = [("consumer-socket", "record traces", &consumer), ("producer-socket", "be recorded", &producer)];
    for (id, purpose, address) in sockets {
        let check = address.as_ref().map(|address| socket(id, purpose, address));
        // The service may be out of reach for the same reason.
        let is_told = |check: &Check| checks.iter().any(|told| told.remedy.is_some() && told.remedy == check.remedy);
        checks.extend(check.filter(|check| !is_told(check)));
    }
    checks.extend(group());
    (checks, programs)
}

fn malformed(name: &str, variable: &str, why: &AddressError) -> Check {
    Check::missing("address", format!("{variable} names no {name} socket: {why}"), format!("run `unset {variable}`"))
}

fn service(address: &Address) -> (Check, Option<Programs>) {
    if is_missing(address) {
        if is_named() {
            return (missing_at_named(address), None);
        }
        let text = format!("no tracing service runs at {address}; `esatto record` is one until it ends");
        return (Check::note("service", text).remedy("for a lasting one, run `sudo esatto traced --background`"), None);
    }
    let programs = connect(address).and_then(|mut client| Programs::query(&mut client));
    match programs {
        Ok(programs) => {
            let count = match programs.programs.len() {
                0 => "no program is connected".to_owned(),
                1 => "1 program is connected".to_owned(),
                count => format!("{count} programs are connected"),
            };
            let version = match &programs.service_version[..] {
                "" => "a tracing service",
                version => version,
            };
            (Check::ready("service", format!("{version} listens at {address}; {count}")), Some(programs))
        }
        Err(failure) => {
            let (text, advice) = failure.into_parts();
            let advice = advice.unwrap_or_else(|| "run `esatto list` for the details".to_owned());
            (Check::missing("service", text, advice), None)
        }
    }
}

/// Tells that no service listens although the environment names an address: `esatto record` fails,
/// because it expects a service there.
fn missing_at_named(address: &Address) -> Check {
    let set = [CONSUMER_SOCK_NAME, PRODUCER_SOCK_NAME].into_iter().filter(|name| std::env::var_os(name).is_some());
    let set: Vec<&str> = set.collect();
    let (noun, verb) = if set.len() == 1 { ("variable", "is") } else { ("variables", "are") };
    let text = format!(
        "no tracing service runs at {address}, and `esatto record` starts none while {} {verb} set",
        set.join(" and ")
    );
    let folder = address.as_path().and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.filter(|folder| !folder.exists());
    let make = folder.map_or_else(String::new, |folder| format!("make the folder {}, ", folder.display()));
    let keep = set.join(",");
    let remedy = format!(
        "{make}start one that gets the {noun}: `esatto traced --background`, or as root \
         `sudo --preserve-env={keep} esatto traced --background`; or run `unset {}` to use the addresses of the machine",
        set.join(" ")
    );
    Check::missing("service", text, remedy)
}

/// Tells if the running service of ours has another version.
fn version(programs: &Programs) -> Option<Check> {
    let running = &programs.service_version[..];
    (running.starts_with("Esatto ") && running != OWN_VERSION).then(|| {
        let text = format!("the service is {running}, this command is {OWN_VERSION}");
        Check::note("service-version", text).remedy("run `sudo systemctl restart traced`, or start the service again")
    })
}

fn lockdown(programs: &Programs) -> Option<Check> {
    programs.lockdown.map(|mode| Check::note("lockdown", mode.in_words(programs)))
}

/// Checks the file of a socket: who may use it, and whether a service is behind it.
fn socket(id: &'static str, purpose: &str, address: &Address) -> Check {
    let Some(path) = address.as_path() else {
        return Check::note(id, format!("programs that may connect to {address} may {purpose}"));
    };
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            return Check::note(id, format!("{address} does not exist until a service runs"));
        }
        Err(why) => return Check::missing(id, format!("{address} cannot be used: {why}"), permission_advice(path)),
    };
    if !meta.file_type().is_socket() {
        return Check::missing(id, format!("{address} is no socket"), remove(path));
    }
    if access(path, Access::WRITE_OK).is_err() {
        return Check::missing(id, format!("you may not {purpose} at {address}"), permission_advice(path));
    }
    if is_missing(address) {
        let text = format!("{address} is a socket of a service that has ended");
        return Check::missing(id, text, remove(path));
    }
    Check::ready(id, format!("{} may {purpose} at {address}", users(&meta)))
}

fn remove(path: &Path) -> String {
    let owner = fs::symlink_metadata(path).map(|meta| meta.uid());
    let is_own = owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw());
    let sudo = if is_own { "" } else { "sudo " };
    format!("run `{sudo}rm '{}'`", path.display())
}

/// Describes who may connect to a socket.
fn users(meta: &Metadata) -> String {
    let mode = meta.permissions().mode();
    let owner = name_of("/etc/passwd", meta.uid()).unwrap_or_else(|| format!("uid {}", meta.uid()));
    let group = name_of("/etc/group", meta.gid()).unwrap_or_else(|| format!("of gid {}", meta.gid()));
    match (mode & 0o002 != 0, mode & 0o020 != 0) {
        (true, _) => "all users".to_owned(),
        (false, true) => format!("the user {owner} and the group {group}"),
        (false, false) => format!("only the user {owner}"),
    }
}

/// Checks whether this user is in the group that may record with an installed service.
fn group() -> Option<Check> {
    let groups = fs::read_to_string("/etc/group").ok()?;
    let line = groups.lines().find(|line| line.starts_with("perfetto:"))?;
    let gid: u32 = line.split(':').nth(2)?.parse().ok()?;
    if rustix::process::geteuid().is_root() {
        return None;
    }
    let is_in = rustix::process::getegid().as_raw() == gid
        || rustix::process::getgroups().is_ok_and(|all| all.iter().any(|group| group.as_raw() == gid));
    Some(match is_in {
        true => Check::ready("group", "you are in the group perfetto"),
        false => Check::note(
            "group",
            "you are not in the group perfetto, whose members may record with an installed service",
        )
        .remedy("run `sudo usermod -aG perfetto $USER`, then log in again"),
    })
}
