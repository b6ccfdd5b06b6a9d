//! Network namespaces, which stand in for machines, and the cables between them.

use esatto_tests::Skip;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A namespace that goes away.
pub(crate) struct Namespace(String);

impl Namespace {
    pub(crate) fn new(name: &str) -> Result<Self, Skip> {
        // Tests of one process run at the same time.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let this = Self(format!("esatto-{}-{}-{name}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        ip(&["netns", "add", &this.0])?;
        ip(&["-n", &this.0, "link", "set", "lo", "up"])?;
        Ok(this)
    }

    /// The namespace itself.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.0)
    }

    /// Command that starts programs inside.
    pub(crate) fn wrapper(&self) -> Vec<OsString> {
        ["ip", "netns", "exec", &self.0].map(OsString::from).to_vec()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = ip(&["netns", "del", &self.0]);
    }
}

fn ip(args: &[&str]) -> Result<(), Skip> {
    let output = Command::new("ip").args(args).output().map_err(|e| Skip(format!("no network namespaces: ip: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Skip(format!("no network namespaces: ip {args:?}: {}", String::from_utf8_lossy(&output.stderr).trim())))
}

/// A cable between two namespaces, with an address at each end. Returns that of the host.
pub(crate) fn connect(host: &Namespace, guest: &Namespace, net: u8) -> Result<String, Skip> {
    let end = format!("guest{net}");
    ip(&["-n", &host.0, "link", "add", &end, "type", "veth", "peer", "name", "host", "netns", &guest.0])?;
    for (namespace, link, last) in [(host, end.as_str(), 1), (guest, "host", 2)] {
        ip(&["-n", &namespace.0, "addr", "add", &format!("10.77.{net}.{last}/24"), "dev", link])?;
        ip(&["-n", &namespace.0, "link", "set", link, "up"])?;
    }
    Ok(format!("10.77.{net}.1"))
}
