//! From files to the model of their libraries.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::model::Library;
use crate::resolve::resolve;
use crate::source::Source;
use crate::syntax::{self, File};
use crate::zx;

/// Compiles the files of one or more libraries.
pub(crate) fn compile_files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Library>> {
    let mut texts = Vec::new();
    for path in paths {
        let path = path.as_ref();
        let text =
            fs::read_to_string(path).map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?;
        texts.push((path.display().to_string(), text));
    }
    compile(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// Compiles texts, each with the name of its file.
pub(crate) fn compile<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Vec<Library>> {
    let mut files = Vec::new();
    for (name, text) in texts {
        files.push(syntax::parse(&Source::new(name, text))?);
    }
    if files.is_empty() {
        return Err(Error::NoFiles);
    }
    if !files.iter().any(|file: &File| file.library.parts == ["zx"]) {
        files.push(syntax::parse(&Source::new("<zx>", zx::TEXT))?);
    }
    resolve(&files)
}
