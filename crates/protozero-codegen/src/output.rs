//! Generated code, and ways to write it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

use crate::error::Error;

/// Generated code.
#[derive(Clone, Debug)]
pub struct Output {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) bundle: String,
    pub(crate) descriptor_set: Vec<u8>,
    pub(crate) sources: Vec<PathBuf>,
}

impl Output {
    /// Returns the text of every generated file, by its path: one per `.proto` file, and `mod.rs`,
    /// which declares these files and the modules of the packages.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Returns all code in one text, for `include!`.
    #[must_use]
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// Returns a serialized `FileDescriptorSet` of the files and all their imports, without
    /// comments.
    #[must_use]
    pub fn descriptor_set(&self) -> &[u8] {
        &self.descriptor_set
    }

    /// Returns the `.proto` files that were read, with the imported ones. Empty if protoc has read
    /// them.
    #[must_use]
    pub fn sources(&self) -> &[PathBuf] {
        &self.sources
    }

    /// Writes [`bundle`](Self::bundle) to `name` in cargo's `OUT_DIR`, for build scripts. It also
    /// tells cargo to run the script again when a `.proto` file changes.
    ///
    /// It does not write a file that is up to date.
    ///
    /// # Errors
    ///
    /// If there is no `OUT_DIR`, because this is no build script, or if the file cannot be written.
    #[expect(clippy::print_stdout, reason = "build scripts speak to cargo so")]
    pub fn write_to_out_dir(&self, name: &str) -> Result<(), Error> {
        let folder = env::var_os("OUT_DIR").ok_or(Error::NoOutDir)?;
        for source in &self.sources {
            println!("cargo:rerun-if-changed={}", source.display());
        }
        write(&Path::new(&folder).join(name), &self.bundle)
    }

    /// Writes all [`files`](Self::files) below `folder`, which it creates if needed, and returns
    /// their paths.
    ///
    /// It does not write files that are up to date, and removes nothing.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, or would lie outside `folder`.
    pub fn write_to(&self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        let mut written = Vec::new();
        for (name, text) in &self.files {
            if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_))) {
                return Err(Error::Outside(name.clone()));
            }
            let path = folder.as_ref().join(name);
            write(&path, text)?;
            written.push(path);
        }
        Ok(written)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    if fs::read(path).is_ok_and(|present| present == text.as_bytes()) {
        return Ok(());
    }
    let io = |source| Error::Io { path: path.to_owned(), source };
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(io)?;
    fs::write(path, text).map_err(io)
}
