//! `cargo xtask deb`: the packages for Debian.
//!
//! ```text
//! packaging/debian/control ── control   the packages, and the fields of each
//! system_files ┬─ contents              the files of each package
//!           ui ─┘
//! package                               a folder for each, and dpkg-deb
//! ```

mod contents;
mod control;
mod package;
mod ui;

use crate::peers;
use crate::shell;
use crate::system_files::build::source_date;
use crate::system_files::{Build, c_library, compare, empty_folder, names, programs, read_text};
use contents::Sources;
use control::Control;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "\
cargo xtask deb [--out DIR] [--profile NAME] [--revision N] [--package NAME] [--ui DIR] [--compression NAME] [--verify]

Builds the programs and the C library, and makes packages for this Debian system:

  esatto                     programs, links, man pages, completions, units
  libperfetto-c-esatto       the C library
  libperfetto-c-esatto-dev   its headers, static libraries, pkg-config and CMake files
  esatto-ui                  Perfetto's UI for esatto view, if there is a copy

The bytes depend on the sources, the compiler, dpkg and the copy of the UI only.

  --out DIR           where [default: target/debian]
  --profile NAME      of Cargo [default: dist for programs, library for the C library]
  --revision N        of the packages [default: 1]
  --package NAME      only this one; may be given several times
  --ui DIR            copy of the UI [default: the one of cargo xtask peers ui]
  --compression NAME  xz, gzip, zstd or none [default: xz]
  --verify            build again, in other folders, and compare the bytes";

/// Folder of the descriptions.
const PACKAGING: &str = "packaging/debian";

/// Makes the packages, or tells how to.
///
/// # Errors
///
/// An option is wrong, a tool is missing, or a build fails.
pub(crate) fn run(args: &[String]) -> Result<(), String> {
    if args.iter().any(|arg| arg == "--help" || arg == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let options = Options::parse(args)?;
    for tool in ["dpkg-deb", "dpkg-shlibdeps", "dpkg-architecture", "strip", "gzip", "md5sum"] {
        let found = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
        if !found {
            return Err(format!("{tool} is missing: install dpkg-dev and binutils"));
        }
    }
    let build = Build::for_others(options.profile.as_deref().unwrap_or_default());
    options.make(&build, &options.out)?;
    for name in names(&options.out)? {
        println!("{}", options.out.join(name).display());
    }
    if options.verify {
        let again = empty_folder(&shell::target_dir().join("deb-again"))?;
        let second = again.join("packages");
        options.make(&Build::elsewhere(&again)?, &second)?;
        compare(&options.out, &second)?;
    }
    Ok(())
}

struct Options {
    out: PathBuf,
    profile: Option<String>,
    revision: String,
    compression: String,
    /// All, if it is empty.
    packages: Vec<String>,
    /// Copy of Perfetto's UI.
    ui: Option<PathBuf>,
    verify: bool,
}

impl Options {
    /// Returns whether one of these packages is wanted.
    fn wants(&self, is_it: impl Fn(&str) -> bool) -> bool {
        self.packages.is_empty() || self.packages.iter().any(|name| is_it(name))
    }

    fn make(&self, build: &Build, out: &Path) -> Result<(), String> {
        let profile = |default| self.profile.clone().unwrap_or_else(|| String::from(default));
        if self.wants(|name| name == "esatto") {
            build.run(&profile(programs::PROFILE), programs::PACKAGES)?;
        }
        if self.wants(|name| name.starts_with("libperfetto-c")) {
            build.run(&profile(c_library::PROFILE), c_library::PACKAGES)?;
        }
        let ui = self.ui.clone().map_or_else(|| peers::folder().map(|peers| peers.join("ui")), Ok)?;

        let date = source_date()?;
        let version = control::version(env!("CARGO_PKG_VERSION"), &self.revision)?;
        let control = Control::parse(&read_text(&shell::root().join(PACKAGING).join("control"))?)?;
        let sources = Sources {
            build,
            programs_profile: profile(programs::PROFILE),
            library_profile: profile(c_library::PROFILE),
            multiarch: dpkg_architecture("DEB_HOST_MULTIARCH")?,
            changelog: control::changelog(&control, &version, date)?,
            ui: &ui,
        };
        let architecture_of_host = dpkg_architecture("DEB_HOST_ARCH")?;
        std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        for fields in &control.packages {
            let name = control::field(fields, "Package").unwrap_or_default();
            if !self.packages.is_empty() && !self.packages.iter().any(|wanted| wanted == name) {
                continue;
            }
            if name == ui::PACKAGE && self.packages.is_empty() && self.ui.is_none() && !ui.exists() {
                println!("no package {name}: run 'cargo xtask peers ui' for a copy of Perfetto's UI");
                continue;
            }
            let is_for_all = control::field(fields, "Architecture") == Some("all");
            let architecture = if is_for_all { "all" } else { &architecture_of_host };
            let stage = empty_folder(&shell::target_dir().join("xtask/deb").join(name))?;
            for file in contents::files(name, &sources)? {
                file.below(&stage).install()?;
            }
            let package =
                package::Package { fields, control: &control, stage: &stage, version: &version, architecture };
            package.build(date, &self.compression, &out.join(format!("{name}_{version}_{architecture}.deb")))?;
        }
        Ok(())
    }

    fn parse(args: &[String]) -> Result<Self, String> {
        let mut options = Self {
            out: shell::target_dir().join("debian"),
            profile: None,
            revision: "1".to_owned(),
            compression: "xz".to_owned(),
            packages: Vec::new(),
            ui: None,
            verify: false,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value =
                || args.next().filter(|value| !value.is_empty()).cloned().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--out" => options.out = std::env::current_dir().map_err(|error| error.to_string())?.join(value()?),
                "--profile" => options.profile = Some(value()?),
                "--revision" => options.revision = value()?,
                "--verify" => options.verify = true,
                "--ui" => options.ui = Some(value()?.into()),
                "--package" => options.packages.push(value()?),
                "--compression" => options.compression = value()?,
                _ => return Err(format!("deb does not know '{arg}'\n{USAGE}")),
            }
        }
        Ok(options)
    }
}

fn dpkg_architecture(variable: &str) -> Result<String, String> {
    Ok(shell::output(Command::new("dpkg-architecture").arg("-q").arg(variable))?.trim().to_owned())
}
