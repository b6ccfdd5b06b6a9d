//! Where the programs are that the tests start.

use crate::Skip;
use std::path::{Path, PathBuf};

/// A part of `cargo xtask peers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// `traced`, `traced_probes` and `perfetto`.
    Official,
    /// An application with Perfetto's own SDK.
    Producer,
    /// Perfetto's trace processor.
    TraceProcessor,
    /// Perfetto's UI in a browser.
    Browser,
    /// The compiler of Google's protobuf.
    Protoc,
    /// Valgrind, with its memcheck.
    Valgrind,
    /// The files of a Debian system.
    Debian,
    /// The server of openssh, and with it the client.
    Openssh,
}

impl Peer {
    /// Finds out whether the peer is installed.
    ///
    /// # Errors
    ///
    /// It is not, and this is not CI.
    ///
    /// # Panics
    ///
    /// It is not, and this is CI, where it has to be.
    pub fn require(self) -> Result<(), Skip> {
        let (part, witness) = match self {
            Self::Official => ("official", folder().join("bin/traced")),
            Self::Producer => ("producer", folder().join("bin/official-producer")),
            Self::TraceProcessor => ("ui", folder().join("ui/version")),
            Self::Browser => ("browser", folder().join("node/node_modules/playwright-core")),
            // Debian's packages install these for everyone.
            Self::Protoc => ("protoc", "/usr/bin/protoc".into()),
            Self::Valgrind => ("valgrind", "/usr/bin/valgrind".into()),
            Self::Debian => ("debian", folder().join("debian/root/etc/debian_version")),
            Self::Openssh => ("openssh", "/usr/sbin/sshd".into()),
        };
        if witness.exists() {
            return Ok(());
        }
        Err(Skip::outside_ci(format!("no peers: run 'cargo xtask peers {part}'")))
    }
}

impl Skip {
    /// Why a test cannot run here, unless this is CI, where it has to.
    ///
    /// # Panics
    ///
    /// This is CI.
    #[must_use]
    pub fn outside_ci(reason: String) -> Self {
        let ci = std::env::var("CI").unwrap_or_default();
        assert!(ci.is_empty() || ci == "false" || ci == "0", "{reason}");
        Self(reason)
    }
}

/// One of Perfetto's own programs.
pub(crate) fn official(program: &str) -> PathBuf {
    folder().join("bin").join(program)
}

/// One of the scripts around the trace processor and the UI.
pub(crate) fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../xtask/peers").join(name)
}

/// The modules of Node.js that drive a browser.
#[must_use]
pub fn node_modules() -> PathBuf {
    folder().join("node")
}

/// Our command line program.
///
/// `ESATTO_BIN` names it (`cargo xtask test` does); else it is the one beside the running test.
///
/// # Panics
///
/// It is not built.
#[must_use]
pub fn esatto_bin() -> PathBuf {
    let path = std::env::var_os("ESATTO_BIN").map_or_else(|| beside_this_test("esatto"), PathBuf::from);
    assert!(path.exists(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

/// Our application, the counterpart of `official-producer`.
pub(crate) fn our_producer() -> PathBuf {
    let path = beside_this_test("esatto-producer");
    assert!(path.exists(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

/// Our plugin of protoc.
///
/// # Panics
///
/// It is not built.
#[must_use]
pub fn protoc_plugin() -> PathBuf {
    let path = beside_this_test("protoc-gen-esatto");
    assert!(path.exists(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

/// The command of our filter compiler.
///
/// # Panics
///
/// It is not built.
#[must_use]
pub fn filter_bin() -> PathBuf {
    let path = beside_this_test("esatto-filter");
    assert!(path.exists(), "{} is missing: cargo build --workspace --bins", path.display());
    path
}

/// `target/debug/NAME` for a test program in `target/debug/deps`.
///
/// # Panics
///
/// The test program does not know where it is.
#[must_use]
pub fn beside_this_test(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("the test knows its own path");
    let mut folder = this.parent().expect("it lies in a folder");
    if folder.ends_with("deps") {
        folder = folder.parent().expect("deps lies in a folder");
    }
    folder.join(name)
}

/// Folder of all that `cargo xtask peers` installs, except for Debian's packages.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os("PEERS_DIR").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/perfetto-peers"),
        PathBuf::from,
    )
}
