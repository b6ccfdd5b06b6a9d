//! `cargo xtask install`: the C library, in both flavours, its headers, and what pkg-config and
//! CMake want to know.

use crate::shell;
use std::fs;
use std::path::{Component, Path, PathBuf};

const USAGE: &str = "\
cargo xtask install [--prefix DIR] [--destdir DIR] [--libdir NAME] [--profile NAME]

Builds Perfetto's C library and installs, below the prefix:

  lib/libperfetto_c.so, .a               the ABI of v58
  lib/v59/libperfetto_c.so, .a           the ABI of v59
  lib/pkgconfig/perfetto_c.pc, perfetto_c_v59.pc
  lib/cmake/perfetto_c/                  find_package(perfetto_c)
  include/esatto/                        the ABI, macros for C, classes for C++
  share/perfetto_c/thread-sanitizer.supp

The prefix can be moved afterwards. Perfetto's own headers can lie beside, because none has the name of
one of these.

  --prefix DIR    where it will be [default: /usr/local]
  --destdir DIR   put in front of the prefix, to make a package of
  --libdir NAME   instead of lib, such as lib/x86_64-linux-gnu
  --profile NAME  of Cargo [default: library, which is small]";

/// The headers, in the workspace.
const HEADERS: &str = "crates/capi/include/esatto";
/// Folder of the files that are installed, as they are or with changes.
const PACKAGING: &str = "packaging/c";
/// Folder below the prefix for files that do not depend on the machine.
const SHARE: &str = "share/perfetto_c";

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
    plan.build()?;
    for file in plan.files()? {
        file.install()?;
        println!("{}", file.to.display());
    }
    Ok(())
}

struct Plan {
    /// The prefix, below the staging folder.
    root: PathBuf,
    libdir: PathBuf,
    profile: String,
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self, String> {
        let (mut prefix, mut destdir, mut libdir, mut profile) = ("/usr/local", "", "lib", "library");
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            let (name, mut value) = arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value)));
            let option = match name {
                "--prefix" => &mut prefix,
                "--destdir" => &mut destdir,
                "--libdir" => &mut libdir,
                "--profile" => &mut profile,
                _ => return Err(format!("install does not know '{arg}'\n{USAGE}")),
            };
            value = value.or_else(|| args.next());
            *option = value.filter(|value| !value.is_empty()).ok_or_else(|| format!("{name} needs a value"))?;
        }
        let libdir = Path::new(libdir);
        if !libdir.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(format!(
                "--libdir {}: a folder below the prefix is wanted, without . and ..",
                libdir.display()
            ));
        }
        let here = std::env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        let prefix = here.join(prefix);
        let root = if destdir.is_empty() {
            prefix
        } else {
            here.join(destdir).join(prefix.strip_prefix("/").unwrap_or(&prefix))
        };
        Ok(Self { root, libdir: libdir.to_path_buf(), profile: profile.to_owned() })
    }

    fn folders(&self) -> Vec<PathBuf> {
        let lib = self.root.join(&self.libdir);
        let mut folders = vec![lib.join("v59"), lib.join("pkgconfig"), lib.join("cmake/perfetto_c")];
        folders.extend([self.root.join("include/esatto"), self.root.join(SHARE), lib]);
        folders
    }

    fn build(&self) -> Result<(), String> {
        let mut cargo = shell::cargo();
        cargo.args(["build", "--locked", "--profile", &self.profile, "-p", "esatto-capi", "-p", "esatto-capi-v59"]);
        shell::run(cargo.arg("--target-dir").arg(shell::target_dir()))
    }

    fn files(&self) -> Result<Vec<File>, String> {
        // Cargo has a profile whose folder is called otherwise.
        let profile = if self.profile == "dev" { "debug" } else { &self.profile };
        let built = shell::target_dir().join(profile);
        let lib = self.root.join(&self.libdir);
        let mut files = Vec::new();
        for (from, to) in [("libperfetto_c", "libperfetto_c"), ("libperfetto_c_v59", "v59/libperfetto_c")] {
            files.push(File::copy(&built.join(format!("{from}.so")), lib.join(format!("{to}.so")), 0o755)?);
            files.push(File::copy(&built.join(format!("{from}.a")), lib.join(format!("{to}.a")), 0o644)?);
        }
        let headers = shell::root().join(HEADERS);
        for name in names(&headers)? {
            files.push(File::copy(&headers.join(&name), self.root.join("include/esatto").join(&name), 0o644)?);
        }
        for name in ["perfetto_c.pc", "perfetto_c_v59.pc"] {
            files.push(self.configured(&format!("{name}.in"), "pkgconfig", name)?);
        }
        let suppressions = "thread-sanitizer.supp";
        let to = self.root.join(SHARE).join(suppressions);
        files.push(File::copy(&shell::root().join(PACKAGING).join(suppressions), to, 0o644)?);
        files.push(self.configured("perfetto_cConfig.cmake.in", "cmake/perfetto_c", "perfetto_cConfig.cmake")?);
        let version = "perfetto_cConfigVersion.cmake";
        files.push(self.configured(version, "cmake/perfetto_c", version)?);
        Ok(files)
    }

    /// A file of `packaging/c`, with its place filled in.
    fn configured(&self, template: &str, folder: &str, name: &str) -> Result<File, String> {
        let path = shell::root().join(PACKAGING).join(template);
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let folder = self.libdir.join(folder);
        let up = vec![".."; folder.components().count()].join("/");
        let text = text.replace("@UP@", &up).replace("@LIBDIR@", &self.libdir.to_string_lossy());
        let text = text.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        Ok(File { content: text.into_bytes(), to: self.root.join(folder).join(name), mode: 0o644 })
    }
}

/// A file to be.
struct File {
    content: Vec<u8>,
    to: PathBuf,
    mode: u32,
}

impl File {
    fn copy(from: &Path, to: PathBuf, mode: u32) -> Result<Self, String> {
        let content = fs::read(from).map_err(|error| format!("cannot read {}: {error}", from.display()))?;
        Ok(Self { content, to, mode })
    }

    /// Takes the place of an older one at once: running programs keep the older one.
    fn install(&self) -> Result<(), String> {
        let mut name = self.to.as_os_str().to_owned();
        name.push(".new");
        let new = PathBuf::from(name);
        let done = fs::write(&new, &self.content)
            .and_then(|()| set_mode(&new, self.mode))
            .and_then(|()| fs::rename(&new, &self.to));
        done.map_err(|error| {
            let _ = fs::remove_file(&new);
            cannot_write(&self.to, &error)
        })
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> std::io::Result<()> {
    Ok(())
}

/// Makes a folder and finds out whether files can be written there.
fn probe(folder: &Path) -> Result<(), String> {
    let file = folder.join(format!(".esatto-install-{}", std::process::id()));
    let done = fs::create_dir_all(folder).and_then(|()| fs::write(&file, [])).and_then(|()| fs::remove_file(&file));
    done.map_err(|error| cannot_write(folder, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> String {
    format!(
        "cannot write {}: {error}\nchoose another place with --prefix or --destdir, or be another user",
        path.display()
    )
}

/// The names of the files in a folder, in order.
fn names(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let files = entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<_> = files.map(|entry| PathBuf::from(entry.file_name())).collect();
    names.sort();
    Ok(names)
}
