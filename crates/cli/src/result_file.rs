//! File for the result of a command: new, whole or not there, readable only for its owner.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use crate::failure::{Attempt as _, Failure};
use crate::trace_output::{NewFile, Output};

/// Options of a result.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultFile<'p> {
    /// Its name; `-` is standard output.
    pub(crate) path: &'p Path,
    /// The noun for it in messages.
    pub(crate) noun: &'static str,
    /// A file of that name is replaced.
    pub(crate) force: bool,
    /// It is no text, and does not belong on a terminal.
    pub(crate) is_binary: bool,
}

impl ResultFile<'_> {
    /// Fails if there is a file that would be replaced. Call it before long work.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let path = self.path;
        if Output::is_stdout(path) {
            if self.is_binary && io::stdout().is_terminal() {
                let failure = Failure::new(format!("cannot print {}", self.noun), "standard output is a terminal");
                return Err(failure.hint("name a file with -o FILE"));
            }
            return Ok(());
        }
        if !self.force && fs::symlink_metadata(path).is_ok() && !self.is_stream() {
            return Err(self.is_there());
        }
        Ok(())
    }

    /// Returns whether the name leads to a pipe or a device.
    fn is_stream(&self) -> bool {
        fs::metadata(self.path).is_ok_and(|file| !file.is_file() && !file.is_dir())
    }

    fn is_there(&self) -> Failure {
        let failure = Failure::new(self.what(), "the file is there");
        failure.hint("--force replaces it; -o names another one")
    }

    fn what(&self) -> String {
        format!("cannot write {} {}", self.noun, self.path.display())
    }

    /// Writes the result. If `write` fails, there is no file, and an old one stays.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>) -> Result<T, Failure> {
        self.check()?;
        let path = self.path;
        let what = || self.what();
        if Output::is_stdout(path) {
            let mut out = BufWriter::new(io::stdout().lock());
            let result = write(&mut out)?;
            out.flush().attempt(|| format!("cannot print {}", self.noun))?;
            return Ok(result);
        }
        if self.is_stream() {
            let mut out = BufWriter::new(File::options().write(true).open(path).attempt(what)?);
            let result = write(&mut out)?;
            out.flush().attempt(what)?;
            return Ok(result);
        }
        let file = NewFile::beside(path).attempt(what)?;
        let mut out = BufWriter::new(file.file());
        let result = write(&mut out)?;
        out.flush().attempt(what)?;
        drop(out);
        match file.name(path, self.force) {
            Ok(()) => Ok(result),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(self.is_there()),
            Err(error) => Err(Failure::new(what(), error)),
        }
    }
}
