//! `cargo xtask dist`: static programs in an archive, with checksums and a list of their parts.

mod sbom;

use crate::shell;
use crate::system_files::build::{STATIC_TARGET, check_no_folders, source_date};
use crate::system_files::dependencies::{self, Dependency};
use crate::system_files::programs::{self, Layout, PROGRAMS};
use crate::system_files::{Build, File, compare, empty_folder, names, notices, read, set_folder_modes};
use std::path::Path;
use std::process::Command;

const USAGE: &str = "\
cargo xtask dist [--out DIR] [--profile NAME] [--verify]

Builds static programs for Linux on x86-64, which need nothing of a machine but its kernel, and makes:

  esatto-VERSION-x86_64-linux-musl.tar.gz         programs, links, man pages, completions, units, licences
  esatto-VERSION-x86_64-linux-musl.cdx.json       the list of their parts (CycloneDX)
  SHA256SUMS                                      for sha256sum --check

The bytes depend on the sources and the compiler only: no file names a folder, a user or a time of this machine.

  --out DIR       where [default: target/archives]
  --profile NAME  of Cargo [default: dist]
  --verify        build again, in other folders, and compare the bytes";

/// Root of the programs that the units start.
const PREFIX: &str = "/usr/local";

/// Makes the files, or tells how to.
///
/// # Errors
///
/// An option is wrong, a tool is missing, the build fails, or a second build differs.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let (mut out, mut profile, mut verify) = (shell::target_dir().join("archives"), programs::PROFILE, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().filter(|value| !value.is_empty()).ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--out" => out = std::env::current_dir().map_err(|error| error.to_string())?.join(value()?),
            "--profile" => profile = value()?,
            "--verify" => verify = true,
            _ => return Err(format!("dist does not know '{arg}'\n{USAGE}")),
        }
    }
    require_tools()?;
    let dependencies = dependencies::of(programs::PACKAGES, STATIC_TARGET)?;
    let build = Build { target: Some(STATIC_TARGET), ..Build::for_others("dist") };
    make(&build, profile, &dependencies, &out)?;
    for name in names(&out)? {
        println!("{}", out.join(name).display());
    }
    if verify { self::verify(profile, &dependencies, &out) } else { Ok(()) }
}

/// Fails with a remedy if static programs cannot be built here.
fn require_tools() -> Result<(), String> {
    let installed = shell::output(Command::new("rustc").args(["--print", "target-libdir", "--target", STATIC_TARGET]))?;
    let has_target = Path::new(installed.trim()).is_dir();
    let has_compiler = std::env::var_os("CC_x86_64_unknown_linux_musl").is_some()
        || Command::new("musl-gcc").arg("--version").output().is_ok_and(|output| output.status.success());
    match (has_target, has_compiler) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("Rust's library for {STATIC_TARGET} is missing: run `cargo xtask peers musl`")),
        (_, false) => Err("musl-gcc, which compiles zstd, is missing: run `cargo xtask peers musl`".to_owned()),
    }
}

fn make(build: &Build, profile: &str, dependencies: &[Dependency], out: &Path) -> Result<(), String> {
    build.run(profile, programs::PACKAGES)?;
    for name in PROGRAMS {
        check_static(&build.output(profile).join(name))?;
        check_no_folders(build, &build.output(profile).join(name))?;
    }
    let date = source_date()?;
    let name = format!("esatto-{}-x86_64-linux-musl", env!("CARGO_PKG_VERSION"));
    empty_folder(out)?;

    let stage = empty_folder(&shell::target_dir().join("xtask/dist"))?;
    let top = stage.join(&name);
    for file in programs::files(build, profile, Path::new(PREFIX), Layout::PLAIN)? {
        let to = file.to.strip_prefix(PREFIX).map_err(|error| error.to_string())?.to_path_buf();
        File { to, ..file }.below(&top).install()?;
    }
    for page in ["LICENSE", "README.md", "CHANGELOG.md"] {
        File::copy(&shell::root().join(page), top.join(page), 0o644)?.install()?;
    }
    File::new(top.join("third-party-licences.txt"), notices::third_party(dependencies)?, 0o644).install()?;
    pack(&stage, &name, date, &out.join(format!("{name}.tar.gz")))?;

    let bom = bom(dependencies, date)?;
    File::new(out.join(format!("{name}.cdx.json")), bom, 0o644).install()?;
    let mut sums = Command::new("sha256sum");
    let sums = shell::output(sums.args(names(out)?).current_dir(out))?;
    File::new(out.join("SHA256SUMS"), sums, 0o644).install()
}

fn check_static(program: &Path) -> Result<(), String> {
    let bytes = read(program)?;
    if bytes.windows(12).any(|window| window == b"ld-linux-x86" || window == b"/lib/ld-musl") {
        return Err(format!("{} is not static: it asks for a dynamic linker", program.display()));
    }
    Ok(())
}

/// Packs a folder so that the bytes depend on names, modes and contents only.
fn pack(parent: &Path, name: &str, date: u64, to: &Path) -> Result<(), String> {
    set_folder_modes(&parent.join(name))?;
    let tar = parent.join("archive.tar");
    let mut command = Command::new("tar");
    command.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    command.arg(format!("--mtime=@{date}")).arg("--file").arg(&tar).arg("--directory").arg(parent).arg(name);
    shell::run(&mut command)?;
    // Without a name and a time.
    shell::run(Command::new("gzip").args(["-9", "--no-name", "--force"]).arg(&tar))?;
    File::copy(&parent.join("archive.tar.gz"), to, 0o644)?.install()
}

fn bom(dependencies: &[Dependency], date: u64) -> Result<String, String> {
    let time = shell::output(Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).arg(format!("-d@{date}")))?;
    let rustc = shell::output(Command::new("rustc").arg("--version").current_dir(shell::root()))?;
    let rustc = rustc.split_whitespace().nth(1).ok_or("rustc tells no version")?;
    let subject =
        sbom::Subject { version: env!("CARGO_PKG_VERSION"), time: time.trim(), rustc, packages: programs::PACKAGES };
    let bom = sbom::bom(&subject, dependencies);
    let faults = sbom::faults(&bom);
    if !faults.is_empty() {
        return Err(format!("the list of parts is wrong:\nxtask: {}", faults.join("\nxtask: ")));
    }
    let text = serde_json::to_string_pretty(&bom).map_err(|error| format!("the list of parts: {error}"))?;
    Ok(format!("{text}\n"))
}

/// Makes the files again, from a copy of the sources in another folder, and compares them.
fn verify(profile: &str, dependencies: &[Dependency], first: &Path) -> Result<(), String> {
    let again = empty_folder(&shell::target_dir().join("dist-again"))?;
    let build = Build { target: Some(STATIC_TARGET), ..Build::elsewhere(&again)? };
    let second = again.join("archives");
    make(&build, profile, dependencies, &second)?;
    compare(first, &second)
}
