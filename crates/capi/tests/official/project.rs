//! The packages of `program`, and the packages that Cargo has fetched for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_tests::Skip;
use serde_json::Value;

use crate::abi_version::{AbiVersion, succeed};
use crate::messages;

/// A program on the official crates, for a version.
#[derive(Debug)]
pub(crate) struct Project {
    version: AbiVersion,
    folder: PathBuf,
}

impl Project {
    /// Makes Cargo fetch the dependencies of the program, unless they are in its cache.
    pub(crate) fn fetch(version: AbiVersion) -> Result<Self, Skip> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/official/program").join(version.name());
        let project = Self { version, folder };
        let output = project.cargo("fetch").output().expect("Cargo runs");
        if output.status.success() {
            let messages = messages::program(&project.source("perfetto-sdk").join("src/protos"));
            let file = project.messages();
            if std::fs::read_to_string(&file).ok().as_deref() != Some(&messages) {
                // Other tests do the same, and must not see an incomplete file.
                let thread = format!("{:?}", std::thread::current().id());
                let whole = file.with_extension(thread);
                std::fs::write(&whole, messages).and_then(|()| std::fs::rename(whole, file)).expect("a file");
            }
            return Ok(project);
        }
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Skip::outside_ci(format!("no registry: {error}")))
    }

    /// Returns a command of Cargo on the package of the program, with our library.
    pub(crate) fn cargo(&self, command: &str) -> Command {
        self.cargo_in(&self.folder, command)
    }

    /// Returns the file with the code that is generated for the crate's messages.
    fn messages(&self) -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("messages-{}.rs", self.version.name()))
    }

    /// As [`cargo`](Self::cargo), on another package.
    pub(crate) fn cargo_in(&self, folder: &Path, command: &str) -> Command {
        let target =
            Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it is in the target folder").join("official");
        let library = self.version.folder();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args([command, "--locked", "--manifest-path"]).arg(folder.join("Cargo.toml")).current_dir(folder);
        cargo.env("OFFICIAL_MESSAGES", self.messages());
        cargo.env("PERFETTO_SYS_LIB_DIR", &library).env("LD_LIBRARY_PATH", &library);
        cargo.env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo
    }

    /// Builds the program.
    pub(crate) fn program(&self) -> PathBuf {
        let output = succeed(self.cargo("build").args(["--message-format", "json-render-diagnostics"]));
        let messages = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
        let mut programs = messages.filter_map(|message| Some(message.ok()?["executable"].as_str()?.into()));
        programs.next().expect("Cargo says where the program is")
    }

    /// Returns the folder with the source of a package.
    pub(crate) fn source(&self, package: &str) -> PathBuf {
        let output = succeed(self.cargo("metadata").args(["--format-version", "1"]));
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("Cargo writes JSON");
        let packages = metadata["packages"].as_array().expect("a list");
        let package = packages.iter().find(|entry| entry["name"] == package).expect("it is in the lock file");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        manifest.parent().expect("it is in a folder").to_owned()
    }
}
