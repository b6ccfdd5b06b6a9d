use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::{env, fs};

use crate::Error;

/// Generated code.
#[derive(Clone, Debug)]
pub struct Output {
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) bundle: String,
    pub(crate) descriptor_set: Vec<u8>,
    pub(crate) sources: Vec<PathBuf>,
}

impl Output {
    /// The text of every generated file by its path: one per `.proto` file, and `mod.rs`, which declares the others
    /// and the modules of the packages.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// Everything in one text, to be pulled in by `include!`.
    #[must_use]
    pub fn bundle(&self) -> &str {
        &self.bundle
    }

    /// A serialized `FileDescriptorSet` of the files and all they import, without comments.
    #[must_use]
    pub fn descriptor_set(&self) -> &[u8] {
        &self.descriptor_set
    }

    /// The `.proto` files that were read, imported ones included. Empty for those that came from elsewhere, as with protoc.
    #[must_use]
    pub fn sources(&self) -> &[PathBuf] {
        &self.sources
    }

    /// For build scripts: writes [`bundle`](Self::bundle) to `name` in cargo's `OUT_DIR`, and tells cargo to run the script
    /// again when a `.proto` file has changed.
    ///
    /// A file that is up to date is left alone.
    ///
    /// # Errors
    ///
    /// If there is no `OUT_DIR`, because this is no build script, or the file cannot be written.
    pub fn write_to_out_dir(&self, name: &str) -> Result<(), Error> {
        let folder = env::var_os("OUT_DIR").ok_or(Error::NoOutDir)?;
        for source in &self.sources {
            println!("cargo:rerun-if-changed={}", source.display());
        }
        write(&Path::new(&folder).join(name), &self.bundle)
    }

    /// Writes all [`files`](Self::files) below `folder`, which is made if there is none, and returns their paths.
    ///
    /// Files that are up to date are left alone; what else lies there stays.
    ///
    /// # Errors
    ///
    /// If a file cannot be written, or would not lie in `folder`.
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
