//! The files of each package.

use super::{PACKAGING, ui};
use crate::shell;
use crate::system_files::dependencies;
use crate::system_files::programs::Layout;
use crate::system_files::{Build, Content, File, c_library, notices, programs, read, read_text};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Everything that files come from.
#[derive(Debug)]
pub(super) struct Sources<'a> {
    pub(super) build: &'a Build,
    pub(super) programs_profile: String,
    pub(super) library_profile: String,
    /// Name of the folder for libraries of this architecture.
    pub(super) multiarch: String,
    /// Debian's changelog.
    pub(super) changelog: String,
    /// Copy of Perfetto's UI.
    pub(super) ui: &'a Path,
}

/// Returns the files of a package, at their places in the system.
///
/// # Errors
///
/// A file is missing, or there is no such package.
pub(super) fn files(package: &str, sources: &Sources<'_>) -> Result<Vec<File>, String> {
    let usr = Path::new("/usr");
    let mut files = match package {
        "esatto" => {
            let mut files = programs::files(sources.build, &sources.programs_profile, usr, Layout::DEBIAN)?;
            files.push(programs::relay_settings()?);
            files
        }
        "libperfetto-c-esatto" | "libperfetto-c-esatto-dev" => {
            let libdir = Path::new("lib").join(&sources.multiarch);
            let mut files = c_library::files(sources.build, &sources.library_profile, usr, &libdir)?;
            // The linker of a program and the program itself take the same file.
            let is_library = |file: &File| file.to.extension().is_some_and(|kind| kind == "so");
            files.retain(|file| is_library(file) != package.ends_with("-dev"));
            for file in &mut files {
                // Debian's libraries are not for execution.
                if let Content::Bytes(_, mode) = &mut file.content {
                    *mode = 0o644;
                }
            }
            files
        }
        ui::PACKAGE => ui::files(sources.ui)?,
        other => return Err(format!("packaging/debian/control has the package {other}, which has no files")),
    };
    let doc = Path::new("/usr/share/doc").join(package);
    let packaging = shell::root().join(PACKAGING);
    let own = packaging.join(format!("{package}.copyright"));
    let copyright = if own.exists() { own } else { packaging.join("copyright") };
    files.push(File::copy(&copyright, doc.join("copyright"), 0o644)?);
    files.push(File::new(doc.join("changelog.Debian.gz"), sources.changelog.as_str(), 0o644));
    let packages = match package {
        "esatto" => Some(programs::PACKAGES),
        "libperfetto-c-esatto" => Some(c_library::PACKAGES),
        _ => None,
    };
    if let Some(packages) = packages {
        files.push(File::copy(&shell::root().join("CHANGELOG.md"), doc.join("changelog.gz"), 0o644)?);
        let licences = notices::third_party(&dependencies::of(packages, &host()?)?)?;
        files.push(File::new(doc.join("third-party-licences.txt.gz"), licences, 0o644));
    }
    let overrides = packaging.join(format!("{package}.lintian-overrides"));
    if overrides.exists() {
        let to = Path::new("/usr/share/lintian/overrides").join(package);
        files.push(File::new(to, read_text(&overrides)?, 0o644));
    }
    for file in &mut files {
        compress(file)?;
    }
    Ok(files)
}

/// Returns Cargo's name of this machine.
fn host() -> Result<String, String> {
    let about = shell::output(Command::new("rustc").arg("-vV").current_dir(shell::root()))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| format!("rustc -vV says: {about}"))
}

/// Compresses a man page, or a file that says so by its name.
fn compress(file: &mut File) -> Result<(), String> {
    let is_page = file.to.starts_with("/usr/share/man");
    let Content::Bytes(bytes, _) = &mut file.content else { return Ok(()) };
    if is_page || file.to.extension().is_some_and(|kind| kind == "gz") {
        *bytes = gzip(bytes)?;
    }
    if is_page {
        file.to.as_mut_os_string().push(".gz");
    }
    Ok(())
}

/// Compresses bytes, without a name and a time.
fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("gzip: {error}");
    let mut gzip = Command::new("gzip");
    gzip.args(["-9", "--no-name", "--stdout"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut gzip = gzip.spawn().map_err(failed)?;
    let mut stdin = gzip.stdin.take().expect("it is piped");
    let output = std::thread::scope(|scope| {
        let writer = scope.spawn(move || stdin.write_all(bytes));
        let output = gzip.wait_with_output();
        writer.join().expect("writing does not panic").and(output)
    });
    let output = output.map_err(failed)?;
    if output.status.success() { Ok(output.stdout) } else { Err(format!("gzip: {}", output.status)) }
}

/// Returns the scripts and lists of a package that dpkg reads, each with its mode.
///
/// # Errors
///
/// One of them cannot be read.
pub(super) fn control_files(package: &str) -> Result<Vec<File>, String> {
    let packaging = shell::root().join(PACKAGING);
    let mut files = Vec::new();
    for (name, mode) in
        [("preinst", 0o755), ("postinst", 0o755), ("prerm", 0o755), ("postrm", 0o755), ("triggers", 0o644)]
    {
        let path = packaging.join(format!("{package}.{name}"));
        if path.exists() {
            files.push(File::new(name, read(&path)?, mode));
        }
    }
    Ok(files)
}
