//! Building the libraries, and the program for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use crate::cargo;

/// Flags with which upstream's own build compiles a release.
const UPSTREAM_CXXFLAGS: &str = "-fvisibility=hidden -fno-exceptions -fno-rtti -ffunction-sections -fdata-sections \
                                 -DPERFETTO_SDK_SHLIB_IMPLEMENTATION";

/// Exports of upstream's library.
const EXPORTS: &str = "{ global: Perfetto*; perfetto_*; local: *; };\n";

/// Which ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flavour {
    V58,
    V59,
}

/// How upstream's library is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Optimised {
    /// As upstream does it on Linux.
    ForSpeed,
    /// As upstream does it on Android: smaller.
    Less,
}

/// The libraries of one flavour.
#[derive(Debug)]
pub(crate) struct Libraries {
    flavour: Flavour,
    /// Where all goes.
    folder: PathBuf,
}

impl Flavour {
    pub(crate) const ALL: [Self; 2] = [Self::V58, Self::V59];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V58 => "v58",
            Self::V59 => "v59",
        }
    }

    /// Our package and its library.
    const fn ours(self) -> (&'static str, &'static str) {
        match self {
            Self::V58 => ("esatto-capi", "libperfetto_c.so"),
            Self::V59 => ("esatto-capi-v59", "libperfetto_c_v59.so"),
        }
    }

    const fn options(self) -> &'static [&'static str] {
        match self {
            Self::V58 => &[],
            Self::V59 => &["-DPERFETTO_C_V59"],
        }
    }
}

impl Optimised {
    pub(crate) const ALL: [Self; 2] = [Self::ForSpeed, Self::Less];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ForSpeed => "-O3",
            Self::Less => "-O2",
        }
    }

    const fn level(self) -> &'static str {
        match self {
            Self::ForSpeed => "3",
            Self::Less => "2",
        }
    }
}

impl Libraries {
    /// Builds ours as it is installed.
    pub(crate) fn build(flavour: Flavour) -> Result<Self, String> {
        let (package, library) = flavour.ours();
        eprintln!("bench: building {package}");
        let this = std::env::current_exe().map_err(|error| format!("own path: {error}"))?;
        let target = this.ancestors().nth(2).ok_or("own path: no target folder")?;
        let shipped = target.join("shipped");
        let mut build = cargo::command();
        build.current_dir(cargo::root().parent().ok_or("the bench workspace has no parent")?);
        build.args(["build", "--quiet", "--profile", "library", "-p", package, "--target-dir"]).arg(&shipped);
        succeed(&mut build)?;
        let this = Self { flavour, folder: target.join("c-abi").join(flavour.name()) };
        let (from, to) = (shipped.join("library").join(library), this.ours().join(NAME));
        std::fs::create_dir_all(this.ours())
            .and_then(|()| std::fs::copy(from, &to))
            .map_err(|error| format!("{}: {error}", to.display()))?;
        Ok(this)
    }

    /// The folder of our library.
    pub(crate) fn ours(&self) -> PathBuf {
        self.folder.join("ours")
    }

    /// Builds upstream's library, and returns its folder: the objects that its official crate
    /// compiles, linked as upstream does it.
    pub(crate) fn upstream(&self, optimised: Optimised) -> Result<PathBuf, String> {
        let name = format!("upstream{}", optimised.name());
        let folder = self.folder.join(&name);
        let library = folder.join(NAME);
        // It never changes, and takes minutes.
        if library.exists() {
            return Ok(folder);
        }
        let package = format!("upstream-{}", self.flavour.name());
        eprintln!("bench: building {package} {}", optimised.name());
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut build = cargo::command();
        build.current_dir(cargo::root().join("c-abi").join(package));
        build
            .args(["build", "--locked", "--release", "--message-format=json", "--target-dir"])
            .arg(folder.join("target"));
        build.env("CXXFLAGS", UPSTREAM_CXXFLAGS).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", optimised.level());
        let archive = out_dir(&succeed(&mut build)?)?.join("libperfetto_c.a");
        let exports = folder.join("exports.map");
        std::fs::write(&exports, EXPORTS).map_err(|error| format!("{}: {error}", exports.display()))?;
        let mut link = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
        link.arg("-shared").arg("-o").arg(&library).args(["-Wl,--whole-archive"]).arg(archive);
        link.args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-Wl,-O1", "-Wl,--strip-all", "-lpthread"]);
        link.arg(format!("-Wl,--version-script={}", exports.display()));
        succeed(&mut link)?;
        Ok(folder)
    }

    /// Compiles the program, and returns where it lies. It runs with any library of the flavour.
    pub(crate) fn program(&self) -> Result<PathBuf, String> {
        let program = self.folder.join("trace_points");
        let include = cargo::root().join("../crates/capi/include");
        let mut compile = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
        compile.args(["-std=gnu11", "-O2", "-Wall", "-Wextra"]).args(self.flavour.options()).arg("-I").arg(include);
        compile.arg(cargo::root().join("c-abi/program/trace_points.c")).arg("-o").arg(&program);
        compile.arg("-L").arg(self.ours()).args(["-lperfetto_c", "-lpthread"]);
        succeed(&mut compile)?;
        Ok(program)
    }
}

const NAME: &str = "libperfetto_c.so";

/// The size of the library in a folder.
pub(crate) fn size_kb(folder: &Path) -> Result<f64, String> {
    let file = folder.join(NAME);
    let size = std::fs::metadata(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
    Ok(size as f64 / 1000.0)
}

/// A message of Cargo.
#[derive(Debug, Deserialize)]
struct Message {
    package_id: Option<String>,
    out_dir: Option<PathBuf>,
}

/// Where the build script of the official crate has put its library.
fn out_dir(messages: &str) -> Result<PathBuf, String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str(line).ok());
    let of_crate = |message: &Message| message.package_id.as_ref().is_some_and(|id| id.contains("perfetto-sdk-sys"));
    messages
        .filter(of_crate)
        .find_map(|message: Message| message.out_dir)
        .ok_or_else(|| "Cargo does not say where perfetto-sdk-sys is built".to_owned())
}

/// Runs a command and returns its output.
fn succeed(command: &mut Command) -> Result<String, String> {
    let program = Path::new(command.get_program()).display().to_string();
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program}: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
