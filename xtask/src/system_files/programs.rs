//! The programs, the names by which Perfetto's are called, man pages, completions and units.

use super::{Build, File, empty_folder, names, read, read_text};
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages with the programs.
pub(crate) const PACKAGES: &[&str] = &["esatto-cli", "esatto-daemon", "esatto-probes"];
/// The profile that makes them fast and small.
pub(crate) const PROFILE: &str = "dist";

/// Programs of their own. The daemons are small, and contain nothing but what they need with their
/// rights.
pub(crate) const PROGRAMS: &[&str] = &["esatto", "traced", "traced_probes", "traced_relay"];
/// Names of Perfetto's other programs, under which `esatto` takes their command lines.
pub(crate) const LINKS: &[&str] = &["perfetto", "tracebox", "trigger_perfetto"];

/// Folder of the units, the user and the folder of the sockets.
const SYSTEMD: &str = "packaging/systemd";

/// Names that differ between systems.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Folder below `share` of zsh's completions.
    pub(crate) zsh: &'static str,
}

impl Layout {
    /// As programs install themselves.
    pub(crate) const PLAIN: Self = Self { zsh: "zsh/site-functions" };
    /// As packages of Debian.
    pub(crate) const DEBIAN: Self = Self { zsh: "zsh/vendor-completions" };
}

/// Returns the folders below a prefix that the files are in.
pub(crate) fn folders(prefix: &Path) -> Vec<PathBuf> {
    ["bin", "share/man/man1", "lib/systemd/system"].iter().map(|folder| prefix.join(folder)).collect()
}

/// Returns the files below a prefix, which is where they are going to be run.
///
/// # Errors
///
/// A file is missing, because nothing was built, or `esatto` does not run.
pub(crate) fn files(build: &Build, profile: &str, prefix: &Path, layout: Layout) -> Result<Vec<File>, String> {
    let built = build.output(profile);
    let mut files = Vec::new();
    for name in PROGRAMS {
        files.push(File::copy(&built.join(name), prefix.join("bin").join(name), 0o755)?);
    }
    files.extend(LINKS.iter().map(|name| File::link(prefix.join("bin").join(name), "esatto")));
    let esatto = built.join("esatto");
    files.extend(man_pages(&esatto, prefix)?);
    for (shell, path) in [
        ("bash", "bash-completion/completions/esatto".to_owned()),
        ("zsh", format!("{}/_esatto", layout.zsh)),
        ("fish", "fish/vendor_completions.d/esatto.fish".to_owned()),
    ] {
        let script = shell::output(Command::new(&esatto).args(["completions", shell]))?;
        files.push(File::new(prefix.join("share").join(path), script, 0o644));
    }
    files.extend(units(prefix)?);
    Ok(files)
}

fn man_pages(esatto: &Path, prefix: &Path) -> Result<Vec<File>, String> {
    let folder = empty_folder(&shell::target_dir().join("xtask/man"))?;
    shell::run(Command::new(esatto).arg("man").arg(&folder))?;
    let page = |name: &String| File::copy(&folder.join(name), prefix.join("share/man/man1").join(name), 0o644);
    names(&folder)?.iter().map(page).collect()
}

/// Returns the units and what they need, with the programs of this prefix.
fn units(prefix: &Path) -> Result<Vec<File>, String> {
    let folder = shell::root().join(SYSTEMD);
    let bin = prefix.join("bin");
    let mut files = Vec::new();
    for name in names(&folder)? {
        let text = read_text(&folder.join(&name))?.replace("/usr/bin/", &format!("{}/", bin.display()));
        let to = match name.as_str() {
            "perfetto.sysusers" => "sysusers.d/perfetto.conf".to_owned(),
            "perfetto.tmpfiles" => "tmpfiles.d/perfetto.conf".to_owned(),
            unit => format!("systemd/system/{unit}"),
        };
        files.push(File::new(prefix.join("lib").join(to), text, 0o644));
    }
    Ok(files)
}

/// Returns the settings of the relay, which its unit reads from this file.
///
/// # Errors
///
/// The file is missing.
pub(crate) fn relay_settings() -> Result<File, String> {
    let path = shell::root().join("packaging/traced-relay.default");
    Ok(File::new("/etc/default/traced-relay", read(&path)?, 0o644))
}
