//! [`Package`]: a folder with the files of a package becomes the package.

use super::contents::control_files;
use super::control::{Control, Fields, field};
use crate::shell;
use crate::system_files::{File, names, set_folder_modes};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package whose files are in a folder.
#[derive(Debug)]
pub(super) struct Package<'a> {
    pub(super) fields: &'a Fields,
    pub(super) control: &'a Control,
    pub(super) stage: &'a Path,
    pub(super) version: &'a str,
    pub(super) architecture: &'a str,
}

impl Package<'_> {
    /// Writes the package.
    ///
    /// # Errors
    ///
    /// The message of a tool.
    pub(super) fn build(&self, date: u64, compression: &str, to: &Path) -> Result<(), String> {
        let name = field(self.fields, "Package").unwrap_or_default();
        let files = files(self.stage, Path::new(""))?;
        let linked = self.strip(&files)?;
        let libraries = self.libraries(&linked)?;
        let kib = files.iter().map(|file| self.kib(file)).sum();
        let control = self.control.binary(self.fields, self.version, self.architecture, &libraries, kib);
        let debian = self.stage.join("DEBIAN");
        let mut own = control_files(name)?;
        own.push(File::new("control", control, 0o644));
        own.push(File::new("md5sums", self.checksums(&files)?, 0o644));
        let settings: String =
            files.iter().filter(|file| file.starts_with("etc")).map(|file| format!("/{}\n", file.display())).collect();
        if !settings.is_empty() {
            own.push(File::new("conffiles", settings, 0o644));
        }
        for file in own {
            file.below(&debian).install()?;
        }
        set_folder_modes(self.stage)?;
        let mut build = Command::new("dpkg-deb");
        // One thread, because several compress in other pieces.
        build.args(["--root-owner-group", "--threads-max=1", &format!("-Z{compression}"), "--build"]);
        build.arg(self.stage).arg(to).env("SOURCE_DATE_EPOCH", date.to_string()).stdout(std::process::Stdio::null());
        shell::run(&mut build)
    }

    /// Removes symbols, and returns the files that are linked.
    fn strip(&self, files: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
        let mut linked = Vec::new();
        for file in files {
            let path = self.stage.join(file);
            if path.is_symlink() {
                continue;
            }
            let kind = file.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
            let is_program = file.starts_with("usr/bin");
            let options: &[&str] = match kind {
                "a" => &["--strip-debug", "--remove-section=.comment", "--enable-deterministic-archives"],
                "so" => &["--strip-unneeded", "--remove-section=.comment"],
                _ if is_program => &["--remove-section=.comment"],
                _ => continue,
            };
            shell::run(Command::new("strip").args(options).arg(&path))?;
            if kind != "a" {
                linked.push(path);
            }
        }
        Ok(linked)
    }

    /// Returns the packages with the libraries that these files need.
    fn libraries(&self, linked: &[PathBuf]) -> Result<String, String> {
        if linked.is_empty() {
            return Ok(String::new());
        }
        // It looks for `debian/control` where it is started.
        let folder = shell::target_dir().join("xtask/deb-shlibs");
        File::copy(&shell::root().join(super::PACKAGING).join("control"), folder.join("debian/control"), 0o644)?
            .install()?;
        let mut tool = Command::new("dpkg-shlibdeps");
        tool.arg("-O").args(linked.iter().map(|path| format!("-e{}", path.display()))).current_dir(&folder);
        let text = shell::output(&mut tool)?;
        let found = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
        found.map(str::to_owned).ok_or_else(|| format!("dpkg-shlibdeps says: {text}"))
    }

    fn checksums(&self, files: &[PathBuf]) -> Result<String, String> {
        let is_checked = |file: &&PathBuf| !self.stage.join(file).is_symlink() && !file.starts_with("etc");
        shell::output(Command::new("md5sum").args(files.iter().filter(is_checked)).current_dir(self.stage))
    }

    fn kib(&self, file: &Path) -> u64 {
        let path = self.stage.join(file);
        if path.is_symlink() { 1 } else { path.metadata().map_or(1, |data| data.len().div_ceil(1024)) }
    }
}

/// Returns the files below a folder, in order, as paths from there.
fn files(root: &Path, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for name in names(&root.join(folder))? {
        let path = folder.join(name);
        let full = root.join(&path);
        if full.is_dir() && !full.is_symlink() {
            found.extend(files(root, &path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
