//! [`ScratchRoot`]: a small Debian in which packages are installed.

use crate::c_library::file;
use crate::unit::output;
use esatto_tests::{Peer, Skip, peers};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts the Debian with a layer for its changes at `$1/root`, and the folder `$3` of packages in
/// it. Then runs the rest of the arguments. The mounts end with the process.
const MOUNT: &str = r#"
set -e
mount --make-rprivate /
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/changes,workdir=$1/work" "$1/root"
mount --bind "$3" "$1/root/mnt"
root=$1/root
shift 3
"#;

/// A program in the Debian. It has a root folder, processes and a network of its own.
const ENTER: &str = r#"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
ip link set lo up 2>/dev/null || true
exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
"#;

/// A Debian system, which is discarded.
pub(crate) struct ScratchRoot {
    folder: PathBuf,
}

impl ScratchRoot {
    /// Makes a fresh one.
    ///
    /// # Errors
    ///
    /// Nothing was downloaded, or there is no right to mount it.
    pub(crate) fn new(name: &str) -> Result<Self, Skip> {
        Peer::Debian.require()?;
        let folder = file("scratch-roots").join(name);
        let _ = std::fs::remove_dir_all(&folder);
        for part in ["changes", "work", "root"] {
            std::fs::create_dir_all(folder.join(part)).expect("the folder is ours");
        }
        let root = Self { folder };
        let output = root.command(Path::new("/mnt"), "exec true", &[]).output().expect("unshare can be started");
        if output.status.success() {
            return Ok(root);
        }
        Err(Skip(format!("no scratch root: {}", String::from_utf8_lossy(&output.stderr).trim())))
    }

    /// Runs a script of bash in it, and returns what it prints. It must succeed. The folder of
    /// packages is `/mnt`.
    pub(crate) fn run(&self, packages: &Path, script: &str) -> String {
        output(&mut self.shell(packages, script))
    }

    /// As [`run`](Self::run), a script that must fail.
    pub(crate) fn fail(&self, packages: &Path, script: &str) -> String {
        let output = self.shell(packages, script).output().expect("unshare can be started");
        let text = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        assert!(!output.status.success(), "{script}: {text}");
        text
    }

    fn shell(&self, packages: &Path, script: &str) -> Command {
        self.command(packages, ENTER, &["bash", "-euc", script])
    }

    /// A command that runs `enter` where the Debian is mounted at `$root`.
    pub(crate) fn command(&self, packages: &Path, enter: &str, args: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "bash", "-c"]);
        command.arg(format!("{MOUNT}{enter}")).arg("bash");
        command.arg(&self.folder).arg(peers::folder().join("debian/root")).arg(packages).args(args);
        command
    }

    /// A file of the system that was changed, if it was.
    pub(crate) fn changed(&self, path: &str) -> PathBuf {
        self.folder.join("changes").join(path.trim_start_matches('/'))
    }
}

impl Drop for ScratchRoot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}
