//! The generator as a command: `esatto-fidl-gen --out src/fidl echo.fidl`.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use esatto_fidl_codegen::Config;
use lexopt::prelude::*;

const USAGE: &str = "\
Generates Rust from .fidl files: types, clients and servers for the crate esatto-fidl.

Usage: esatto-fidl-gen [OPTIONS] [FILE.fidl...]

Name the files of all libraries that are used. The library zx is built in. Without -o and
--bundle, the code of all libraries goes to the standard output.

      --ir FILE.json     also read a library that Fuchsia's own compiler has compiled (fidlc --json);
                         may be repeated
  -l, --library NAME     generate code only for this library; may be repeated
  -o, --out FOLDER       write a file for each library here, and mod.rs, which declares them: put
                         the folder where `mod NAME;` finds it
      --bundle FILE      write all code into one file, for include!
      --check            write nothing, and fail if a file is not up to date
  -h, --help             print this
  -V, --version          print the version

Exit status: 0 on success; 1 if the files do not compile, if code cannot be generated or written,
or if a file is not up to date with --check; 2 if the arguments are wrong.
";

fn main() -> ExitCode {
    let job = match Job::from_args() {
        Ok(Some(job)) => job,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("esatto-fidl-gen: {error} (see --help)");
            return ExitCode::from(2);
        }
    };
    match job.run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(1)
        }
    }
}

/// The arguments of the command.
#[derive(Default)]
struct Job {
    config: Config,
    out: Option<PathBuf>,
    bundle: Option<PathBuf>,
    check: bool,
}

impl Job {
    /// Returns `None` for `--help` and `--version`, which it has answered.
    fn from_args() -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut job = Self::default();
        let mut has_files = false;
        let mut args = lexopt::Parser::from_env();
        while let Some(arg) = args.next()? {
            match arg {
                Short('h') | Long("help") => {
                    print!("{USAGE}");
                    return Ok(None);
                }
                Short('V') | Long("version") => {
                    println!("esatto-fidl-gen {}", env!("CARGO_PKG_VERSION"));
                    return Ok(None);
                }
                Long("ir") => {
                    job.config = job.config.ir(PathBuf::from(args.value()?));
                    has_files = true;
                }
                Short('l') | Long("library") => job.config = job.config.library(args.value()?.string()?),
                Short('o') | Long("out") => job.out = Some(args.value()?.into()),
                Long("bundle") => job.bundle = Some(args.value()?.into()),
                Long("check") => job.check = true,
                Value(file) => {
                    job.config = job.config.file(PathBuf::from(file));
                    has_files = true;
                }
                Short(_) | Long(_) => return Err(arg.unexpected().into()),
            }
        }
        if !has_files {
            return Err("no .fidl file and no --ir FILE.json".into());
        }
        if job.check && job.out.is_none() && job.bundle.is_none() {
            return Err("nothing to check: add -o FOLDER or --bundle FILE".into());
        }
        Ok(Some(job))
    }

    /// Returns false if a file is not up to date.
    fn run(&self) -> Result<bool, Box<dyn std::error::Error>> {
        if self.out.is_none() && self.bundle.is_none() {
            use std::io::Write;
            let code = self.config.generate()?;
            std::io::stdout().write_all(code.as_bytes()).map_err(|error| format!("standard output: {error}"))?;
            return Ok(true);
        }
        let mut wanted: Vec<(PathBuf, String)> = Vec::new();
        if let Some(out) = &self.out {
            wanted.extend(self.config.generate_files()?.into_iter().map(|(name, text)| (out.join(name), text)));
        }
        if let Some(bundle) = &self.bundle {
            wanted.push((bundle.clone(), self.config.generate()?));
        }
        let mut is_good = true;
        for (path, text) in &wanted {
            is_good &= self.write(path, text)?;
        }
        Ok(is_good)
    }

    /// Writes the file if it differs, or with `--check` only tells so, and returns false.
    fn write(&self, path: &Path, text: &str) -> Result<bool, Box<dyn std::error::Error>> {
        if std::fs::read(path).is_ok_and(|present| present == text.as_bytes()) {
            return Ok(true);
        }
        if self.check {
            eprintln!("out of date: {}", path.display());
            return Ok(false);
        }
        let io = |error| format!("{}: {error}", path.display());
        path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
        std::fs::write(path, text).map_err(io)?;
        Ok(true)
    }
}
