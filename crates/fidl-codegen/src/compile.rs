//! From texts to the model of their libraries.

use crate::error::{Error, Result};
use crate::ir::{self, Document};
use crate::model::Library;
use crate::resolve::resolve;
use crate::source::Source;
use crate::syntax::{self, File, Syntax};
use crate::zx;

/// Compiles texts, each with the name of its file, and adds libraries that were compiled before.
pub(crate) fn compile<'t>(
    texts: impl IntoIterator<Item = (&'t str, &'t str)>,
    documents: &[Document<'_>],
) -> Result<Vec<Library>> {
    let mut files = Vec::new();
    for (name, text) in texts {
        files.push(syntax::parse(&Source::new(name, text))?);
    }
    if files.is_empty() && documents.is_empty() {
        return Err(Error::NoFiles);
    }
    if !files.iter().any(|file: &File| file.library.parts == [zx::NAME]) {
        let is_old = files.iter().any(|file| file.syntax == Syntax::Old);
        files.push(built_in(zx::TEXT)?);
        if is_old {
            files.push(built_in(zx::OLD_NAMES)?);
        }
    }
    let libraries = resolve(&files)?;
    if documents.is_empty() { Ok(libraries) } else { ir::read(documents, libraries) }
}

fn built_in(text: &str) -> Result<File> {
    let file = syntax::parse(&Source::new("<zx>", text))?;
    Ok(File { is_built_in: true, ..file })
}
