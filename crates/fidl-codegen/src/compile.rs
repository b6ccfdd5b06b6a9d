//! From texts to the model of their libraries.

use crate::error::{Error, Result};
use crate::model::Library;
use crate::resolve::resolve;
use crate::source::Source;
use crate::syntax::{self, File, Syntax};
use crate::zx;

/// Compiles texts, each with the name of its file.
pub(crate) fn compile<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Vec<Library>> {
    let mut files = Vec::new();
    for (name, text) in texts {
        files.push(syntax::parse(&Source::new(name, text))?);
    }
    if files.is_empty() {
        return Err(Error::NoFiles);
    }
    let has_zx = files.iter().any(|file: &File| file.library.parts == ["zx"]);
    if !has_zx {
        files.push(syntax::parse(&Source::new("<zx>", zx::TEXT))?);
    }
    if files.iter().any(|file| file.syntax == Syntax::Old) && !has_zx {
        files.push(syntax::parse(&Source::new("<zx>", zx::OLD_NAMES))?);
    }
    resolve(&files)
}
