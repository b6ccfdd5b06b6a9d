//! Checks of the files that a release has: the Debian packages, the archive and the image.

use crate::test::{Skips, Tally};
use crate::{deb, dist, peers, shell};
use std::path::PathBuf;
use std::process::Command;

/// Makes the Debian packages twice and judges them.
///
/// # Errors
///
/// A skip cannot be noted.
pub(crate) fn deb(tally: &mut Tally, skips: &Skips) -> Result<(), String> {
    let out = crate::system_files::empty_folder(&shell::target_dir().join("debian"))?;
    tally.check("Debian packages, built twice", deb::run(&["--verify".to_owned()]));
    let found = install("debian").or_else(|error| skips.tolerate("lintian", error));
    let packages = crate::system_files::names(&out)?.into_iter().map(|name| out.join(name));
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning"]).args(packages);
    tally.check("lintian", found.and_then(|()| shell::run(&mut lintian)));
    Ok(())
}

/// Makes the archive twice, runs a program of it, and judges the list of parts and the image.
///
/// # Errors
///
/// A skip cannot be noted.
pub(crate) fn dist(tally: &mut Tally, skips: &Skips) -> Result<(), String> {
    let installed = install("musl");
    let missing = installed.is_err();
    tally.check("a compiler for static programs", installed.or_else(|error| skips.tolerate("dist", error)));
    if missing {
        return Ok(());
    }
    tally.check("archive, built twice", dist::run(&["--verify".to_owned()]));
    tally.check("a static program records", static_program());
    let judged = install("sbom").map_or_else(|error| skips.tolerate("list of parts", error), |()| list_of_parts());
    tally.check("list of parts", judged);
    let built = install("container").map_or_else(|error| skips.tolerate("image", error), |()| image());
    tally.check("image", built);
    Ok(())
}

fn install(part: &str) -> Result<(), String> {
    peers::run("install", &[part.to_owned()])
}

fn archives() -> PathBuf {
    shell::target_dir().join("archives")
}

fn name() -> String {
    format!("esatto-{}-x86_64-linux-musl", env!("CARGO_PKG_VERSION"))
}

/// Checks the sums, unpacks the archive and records the demo.
fn static_program() -> Result<(), String> {
    shell::run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(archives()))?;
    let folder = crate::system_files::empty_folder(&shell::target_dir().join("xtask/unpacked"))?;
    let archive = archives().join(format!("{}.tar.gz", name()));
    shell::run(Command::new("tar").arg("-xzf").arg(archive).current_dir(&folder))?;
    let bin = folder.join(name()).join("bin");
    // Three processes, which a service in a fourth one records.
    let mut demo = Command::new(bin.join("esatto"));
    demo.args(["demo", "--time", "1s", "--out", "demo.pftrace"]).arg(shell::root().join("docs"));
    shell::run(demo.current_dir(&folder))?;
    shell::run(Command::new(bin.join("esatto")).args(["info", "demo.pftrace"]).current_dir(&folder))
}

/// Compares the list of parts with the schema of its format.
fn list_of_parts() -> Result<(), String> {
    const VALIDATE: &str = "import sys
from cyclonedx.validation.json import JsonStrictValidator
from cyclonedx.schema import SchemaVersion
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(open(sys.argv[1]).read())
sys.exit(f'{sys.argv[1]}: {error}' if error else 0)";
    let list = archives().join(format!("{}.cdx.json", name()));
    let mut python = Command::new("python3");
    python.args(["-c", VALIDATE]).arg(list).env("PYTHONPATH", peers::folder()?.join("sbom"));
    shell::run(&mut python)
}

/// Builds the image and runs programs of it. It comes from no registry.
fn image() -> Result<(), String> {
    let buildah = |args: &[&str]| {
        let mut command = Command::new("buildah");
        command.args(["--storage-driver", "vfs"]).args(args).current_dir(shell::root());
        command
    };
    let file = "packaging/container/Containerfile";
    let mut build = buildah(&["build", "--isolation", "chroot", "-t", "esatto", "-f", file]);
    shell::run(build.arg(archives()))?;
    let container = shell::output(&mut buildah(&["from", "--pull-never", "localhost/esatto"]))?;
    let container = container.trim();
    let ran =
        ["esatto", "traced", "traced_probes", "traced_relay", "perfetto", "tracebox"].iter().try_for_each(|name| {
            let option = if *name == "tracebox" { vec!["perfetto", "--version"] } else { vec!["--version"] };
            let mut run = buildah(&["run", "--isolation", "chroot", container, "--", name]);
            shell::run(run.args(option))
        });
    let removed = shell::run(&mut buildah(&["rm", container]));
    ran.and(removed)
}
