//! [`Build`]: compiling the programs and libraries.

use super::File;
use crate::shell;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Target of static programs.
pub(crate) const STATIC_TARGET: &str = "x86_64-unknown-linux-musl";

/// How programs and libraries are compiled.
#[derive(Clone, Debug)]
pub(crate) struct Build {
    /// The folder of the sources.
    pub(crate) sources: PathBuf,
    pub(crate) target_dir: PathBuf,
    /// Cargo's name of another target than this machine.
    pub(crate) target: Option<&'static str>,
    /// The bytes do not depend on the folders of this machine.
    pub(crate) is_reproducible: bool,
}

impl Build {
    /// As `cargo build` in this repository.
    pub(crate) fn plain() -> Self {
        Self { sources: shell::root(), target_dir: shell::target_dir(), target: None, is_reproducible: false }
    }

    /// A build for others: nothing in it names a folder of this machine.
    pub(crate) fn for_others(profile: &str) -> Self {
        // The profiles for tests name folders anyway, for debuggers, and share the usual builds.
        if profile == "dev" {
            return Self::plain();
        }
        // Other flags would make Cargo build everything again, in turns.
        Self { target_dir: shell::target_dir().join("packages"), is_reproducible: true, ..Self::plain() }
    }

    /// A build for others from a copy of the sources, in folders with other names.
    ///
    /// # Errors
    ///
    /// The sources cannot be copied.
    pub(crate) fn elsewhere(folder: &Path) -> Result<Self, String> {
        let sources = folder.join("elsewhere/sources");
        let list = shell::output(Command::new("git").args(["ls-files", "-z"]).current_dir(shell::root()))?;
        for name in list.split('\0').filter(|name| !name.is_empty()) {
            let from = shell::root().join(name);
            // A deleted file is still in the list.
            if from.is_file() {
                File::copy(&from, sources.join(name), 0o644)?.install()?;
            }
        }
        Ok(Self { sources, target_dir: folder.join("output"), target: None, is_reproducible: true })
    }

    /// Compiles the packages.
    ///
    /// # Errors
    ///
    /// Cargo has said why.
    pub(crate) fn run(&self, profile: &str, packages: &[&str]) -> Result<(), String> {
        let mut cargo = shell::cargo();
        cargo.current_dir(&self.sources).args(["build", "--locked", "--profile", profile]);
        cargo.args(packages.iter().flat_map(|package| ["-p", package]));
        cargo.arg("--target-dir").arg(&self.target_dir);
        if let Some(target) = self.target {
            cargo.args(["--target", target]);
        }
        if self.is_reproducible {
            self.hide_folders(&mut cargo)?;
        }
        shell::run(&mut cargo)
    }

    /// Returns the folder of what was compiled.
    pub(crate) fn output(&self, profile: &str) -> PathBuf {
        // Cargo has a profile whose folder is called otherwise.
        let profile = if profile == "dev" { "debug" } else { profile };
        let folder = self.target_dir.join(self.target.unwrap_or_default());
        folder.join(profile)
    }

    /// Replaces the folders of this machine by names that are the same everywhere.
    fn hide_folders(&self, cargo: &mut Command) -> Result<(), String> {
        let mut rust = Vec::new();
        let mut c = Vec::new();
        for (folder, name) in self.folders()? {
            let folder = folder.to_str().ok_or_else(|| format!("{}: the path is no text", folder.display()))?;
            rust.push(format!("--remap-path-prefix={folder}={name}"));
            c.push(format!("-ffile-prefix-map={folder}={name}"));
        }
        if self.target == Some(STATIC_TARGET) {
            rust.push("-Ctarget-feature=+crt-static".to_owned());
        }
        cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", rust.join("\u{1f}"));
        cargo.env("CFLAGS", c.join(" ")).env("CARGO_INCREMENTAL", "0");
        Ok(())
    }

    /// Returns the folders that a program could name, each with a name that says as much. The last
    /// one that fits is taken.
    pub(crate) fn folders(&self) -> Result<Vec<(PathBuf, &'static str)>, String> {
        Ok(vec![
            (self.sources.clone(), "/esatto"),
            (self.target_dir.clone(), "/target"),
            (cargo_home()?, "/cargo"),
            (sysroot()?, "/rust"),
        ])
    }
}

/// Returns the folder of Cargo, with the sources of dependencies.
pub(crate) fn cargo_home() -> Result<PathBuf, String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CARGO_HOME")
        .or_else(|| Some(set("HOME")?.join(".cargo")))
        .ok_or_else(|| "neither CARGO_HOME nor HOME is set".to_owned())
}

fn sysroot() -> Result<PathBuf, String> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    Ok(PathBuf::from(shell::output(rustc.args(["--print", "sysroot"]).current_dir(shell::root()))?.trim()))
}

/// Fails if a file of a build names one of the folders of this machine.
///
/// # Errors
///
/// The name of the file, and the folder.
pub(crate) fn check_no_folders(build: &Build, file: &Path) -> Result<(), String> {
    let bytes = super::read(file)?;
    for (folder, _) in build.folders()? {
        let name = folder.to_string_lossy().into_owned();
        if bytes.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Err(format!("{} contains the path {name} of this machine", file.display()));
        }
    }
    Ok(())
}

/// Returns the time of the last commit, or that of `SOURCE_DATE_EPOCH`, in seconds since 1970.
///
/// # Errors
///
/// The variable is no number, or the sources are not in a repository of git.
pub(crate) fn source_date() -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => shell::output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(shell::root()))
            .map_err(|error| format!("{error}; set SOURCE_DATE_EPOCH to the time of the sources"))?,
    };
    text.trim().parse().map_err(|_| format!("SOURCE_DATE_EPOCH={text}: a number of seconds is wanted"))
}
