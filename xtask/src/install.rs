//! `cargo xtask install`: the programs with their links, pages and units, and the C library.

use crate::system_files::programs::Layout;
use crate::system_files::{Build, File, c_library, probe, programs};
use std::path::{Component, Path, PathBuf};

const USAGE: &str = "\
cargo xtask install [PART...] [--prefix DIR] [--destdir DIR] [--libdir NAME] [--profile NAME]

Builds the parts and installs them below the prefix. Without a PART: both.

programs:
  bin/esatto                             records, inspects and serves traces
  bin/traced, traced_probes, traced_relay
                                         the daemons, small programs of their own
  bin/perfetto, tracebox, trigger_perfetto
                                         links to esatto, which takes their command lines
  share/man/man1/                        a page for each program and command
  share/bash-completion, zsh, fish       completions
  lib/systemd/system, sysusers.d, tmpfiles.d
                                         units, with the programs of this prefix; systemd reads them below /usr and
                                         /usr/local

c-library:
  lib/libperfetto_c.so, .a               the ABI of v58
  lib/v59/libperfetto_c.so, .a           the ABI of v59
  lib/pkgconfig/perfetto_c.pc, perfetto_c_v59.pc
  lib/cmake/perfetto_c/                  find_package(perfetto_c)
  include/esatto/                        the ABI, macros for C, classes for C++
  share/perfetto_c/                      suppressions for LeakSanitizer and ThreadSanitizer

The C library can be moved afterwards. Perfetto's own headers can lie beside, because none has the name of
one of these.

  --prefix DIR    where it will be [default: /usr/local]
  --destdir DIR   put in front of the prefix, to make a package of
  --libdir NAME   for the C library, instead of lib, such as lib/x86_64-linux-gnu
  --profile NAME  of Cargo [default: dist for programs, library for the C library, which are small]";

/// Installs, or tells how to.
///
/// # Errors
///
/// An option is wrong, a folder cannot be written, or the build fails.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let plan = Plan::parse(args)?;
    // Report a folder that cannot be written before the build.
    for folder in plan.folders() {
        probe(&folder)?;
    }
    for file in plan.files()? {
        file.install()?;
        println!("{}", file.to.display());
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Programs,
    CLibrary,
}

struct Plan {
    parts: Vec<Part>,
    /// Where it will be.
    prefix: PathBuf,
    /// Put in front of it.
    destdir: PathBuf,
    libdir: PathBuf,
    profile: Option<String>,
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self, String> {
        let (mut prefix, mut destdir, mut libdir, mut profile) = ("/usr/local", "", "lib", None);
        let mut parts = Vec::new();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            let (name, mut value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
            let option = match name {
                "programs" | "c-library" if value.is_none() => {
                    parts.push(if name == "programs" { Part::Programs } else { Part::CLibrary });
                    continue;
                }
                "--prefix" => &mut prefix,
                "--destdir" => &mut destdir,
                "--libdir" => &mut libdir,
                "--profile" => profile.insert(""),
                _ => return Err(format!("install does not know '{arg}'\n{USAGE}")),
            };
            value = value.or_else(|| args.next());
            *option = value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} needs a value"))?;
        }
        if parts.is_empty() {
            parts = vec![Part::Programs, Part::CLibrary];
        }
        let libdir = Path::new(libdir);
        if !libdir.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(format!(
                "--libdir {}: a folder below the prefix is wanted, without . and ..",
                libdir.display()
            ));
        }
        let here = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        Ok(Self {
            parts,
            prefix: here.join(prefix),
            destdir: if destdir.is_empty() { PathBuf::from("/") } else { here.join(destdir) },
            libdir: libdir.to_path_buf(),
            profile: profile.map(str::to_owned),
        })
    }

    fn folders(&self) -> Vec<PathBuf> {
        let root = self.destdir.join(self.prefix.strip_prefix("/").unwrap_or(&self.prefix));
        let folders = self.parts.iter().map(|part| match part {
            Part::Programs => programs::folders(&root),
            Part::CLibrary => c_library::folders(&root, &self.libdir),
        });
        folders.flatten().collect()
    }

    /// Builds the parts and returns their files.
    fn files(&self) -> Result<Vec<File>, String> {
        let build = Build::plain();
        let mut files = Vec::new();
        for part in &self.parts {
            let (packages, profile) = match part {
                Part::Programs => (programs::PACKAGES, programs::PROFILE),
                Part::CLibrary => (c_library::PACKAGES, c_library::PROFILE),
            };
            let profile = self.profile.as_deref().unwrap_or(profile);
            build.run(profile, packages)?;
            files.extend(match part {
                Part::Programs => programs::files(&build, profile, &self.prefix, Layout::PLAIN)?,
                Part::CLibrary => c_library::files(&build, profile, &self.prefix, &self.libdir)?,
            });
        }
        Ok(files.into_iter().map(|file| file.below(&self.destdir)).collect())
    }
}
