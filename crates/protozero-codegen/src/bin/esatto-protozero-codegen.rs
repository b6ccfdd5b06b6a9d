//! The generator as a command: `esatto-protozero-codegen -I proto -o src/protos shop.proto`.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use esatto_protozero_codegen::{Config, option_help, options_proto};
use lexopt::prelude::*;

const USAGE: &str = "\
Generates Rust from .proto files: zero-copy writers and readers, value types, services.

Usage: esatto-protozero-codegen [OPTIONS] -o FOLDER FILE.proto...

Name the files by their path, or relative to a folder of -I. The output folder gets a file for
each .proto file, and mod.rs, which declares them: put it where `mod NAME;` finds it.

  -I, --include FOLDER        search imports here; may be repeated (default: .)
  -o, --out FOLDER            write the files here
      --bundle FILE           write all code into one file, for include!
      --descriptor-set FILE   also write a serialized FileDescriptorSet
      --check                 write nothing, and fail if a file is not up to date
      --write-options FOLDER  write FOLDER/esatto/options.proto, for protoc and editors: this
                              program has the file built in
  -h, --help                  print this
  -V, --version               print the version
";

const EXIT: &str = "
Exit status: 0 on success; 1 if the files do not compile, if code cannot be generated or written,
or if a file is not up to date with --check; 2 if the arguments are wrong.
";

fn main() -> ExitCode {
    let job = match Job::from_args() {
        Ok(Some(job)) => job,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("esatto-protozero-codegen: {error} (see --help)");
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
    includes: Vec<PathBuf>,
    files: Vec<PathBuf>,
    out: Option<PathBuf>,
    bundle: Option<PathBuf>,
    descriptor_set: Option<PathBuf>,
    check: bool,
    options: Option<PathBuf>,
}

impl Job {
    /// Returns `None` for `--help` and `--version`, which it has answered.
    fn from_args() -> Result<Option<Self>, Box<dyn std::error::Error>> {
        let mut job = Self::default();
        let mut args = lexopt::Parser::from_env();
        while let Some(arg) = args.next()? {
            match arg {
                Short('h') | Long("help") => {
                    print!("{USAGE}\nWhat is generated:\n\n{}{EXIT}", option_help("--", " "));
                    return Ok(None);
                }
                Short('V') | Long("version") => {
                    println!("esatto-protozero-codegen {}", env!("CARGO_PKG_VERSION"));
                    return Ok(None);
                }
                Short('I') | Long("include") => job.includes.push(args.value()?.into()),
                Short('o') | Long("out") => job.out = Some(args.value()?.into()),
                Long("bundle") => job.bundle = Some(args.value()?.into()),
                Long("descriptor-set") => job.descriptor_set = Some(args.value()?.into()),
                Long("check") => job.check = true,
                Long("write-options") => job.options = Some(args.value()?.into()),
                Long(name) => {
                    let name = name.to_owned();
                    // The name is checked first, so that a mistake in it is not reported as a
                    // missing value.
                    if !Config::option_names().any(|known| known == name) {
                        return Err(Long(&name).unexpected().into());
                    }
                    let value = args.value()?.string()?;
                    job.config = job.config.option(&name, &value)?;
                }
                Value(file) => job.files.push(file.into()),
                Short(_) => return Err(arg.unexpected().into()),
            }
        }
        if job.files.is_empty() {
            return if job.options.is_some() { Ok(Some(job)) } else { Err("no .proto file".into()) };
        }
        if job.out.is_none() && job.bundle.is_none() {
            return Err("no output: add -o FOLDER or --bundle FILE".into());
        }
        if job.includes.is_empty() {
            job.includes.push(".".into());
        }
        Ok(Some(job))
    }

    /// Returns false if a file is not up to date.
    fn run(&self) -> Result<bool, Box<dyn std::error::Error>> {
        let mut wanted: Vec<(PathBuf, &[u8])> = Vec::new();
        if let Some(folder) = &self.options {
            wanted.push((folder.join("esatto/options.proto"), options_proto().as_bytes()));
        }
        if self.files.is_empty() {
            return self.write(wanted);
        }
        let output = self.config.compile(&self.files, &self.includes)?;
        if let Some(out) = &self.out {
            if !self.check {
                output.write_to(out)?;
            }
            wanted.extend(output.files().iter().map(|(name, text)| (out.join(name), text.as_bytes())));
        }
        wanted.extend(self.bundle.iter().map(|path| (path.clone(), output.bundle().as_bytes())));
        wanted.extend(self.descriptor_set.iter().map(|path| (path.clone(), output.descriptor_set())));
        self.write(wanted)
    }

    /// Writes the files that differ, or with `--check` only tells them.
    fn write(&self, wanted: Vec<(PathBuf, &[u8])>) -> Result<bool, Box<dyn std::error::Error>> {
        let mut good = true;
        for (path, content) in wanted {
            if std::fs::read(&path).is_ok_and(|present| present == content) {
                continue;
            }
            if self.check {
                eprintln!("out of date: {}", path.display());
                good = false;
            } else {
                let io = |error| format!("{}: {error}", path.display());
                path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(io)?;
                std::fs::write(&path, content).map_err(io)?;
            }
        }
        Ok(good)
    }
}
