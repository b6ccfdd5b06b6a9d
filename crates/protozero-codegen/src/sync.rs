//! Comparison of checked-in code with its `.proto` files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::Error;

/// The configuration file in the folder that [`sync`] takes.
const CONFIG_FILE: &str = "codegen.conf";

/// Generates the code of a crate again, with the options of its `codegen.conf`. Returns the files
/// that were not up to date.
///
/// With `check` it writes nothing. Other files in the output folder count as out of date and are
/// removed.
///
/// The configuration has one directive per line. `#` begins a comment. Paths are relative to
/// `root`. Patterns are those of [`Config::owned`]:
///
/// | directive | meaning |
/// |---|---|
/// | `proto DIR` | folder of the `.proto` files; their paths and imports are relative to it |
/// | `out DIR` | folder of the generated files |
/// | `file PATH` | generates this file below `proto` only; may be repeated; without it, all files |
/// | `descriptor FILE` | file for the serialized descriptors |
/// | `NAME VALUE`, `feature NAME PATTERN`, … | see [`Config::option`]; a pair is two words |
///
/// # Errors
///
/// If the configuration or the `.proto` files are wrong, or a file cannot be read or written.
pub fn sync(root: &Path, check: bool) -> Result<Vec<PathBuf>, Error> {
    let job = Job::read(&root.join(CONFIG_FILE))?;
    let include = root.join(&job.proto);
    let protos = match &job.files[..] {
        [] => list(&include, &|path| path.extension().is_some_and(|extension| extension == "proto"))?,
        files => files.iter().map(PathBuf::from).collect(),
    };
    let output = job.config.compile(&protos.iter().map(|path| include.join(path)).collect::<Vec<_>>(), &[&include])?;

    let out = root.join(&job.out);
    let mut wanted: BTreeMap<PathBuf, &[u8]> =
        output.files().iter().map(|(path, text)| (out.join(path), text.as_bytes())).collect();
    if let Some(path) = &job.descriptor {
        wanted.insert(root.join(path), output.descriptor_set());
    }
    let mut stale = Vec::new();
    for (path, content) in &wanted {
        if fs::read(path).is_ok_and(|present| present == *content) {
            continue;
        }
        stale.push(path.clone());
        if !check {
            let folder = path.parent().unwrap_or(root);
            fs::create_dir_all(folder).map_err(|source| Error::Io { path: folder.to_owned(), source })?;
            fs::write(path, content).map_err(|source| Error::Io { path: path.clone(), source })?;
        }
    }
    for path in list(&out, &|_| true)?.into_iter().map(|path| out.join(path)).filter(|path| !wanted.contains_key(path))
    {
        if !check {
            fs::remove_file(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
        }
        stale.push(path);
    }
    Ok(stale)
}

/// The content of a configuration file.
#[derive(Debug)]
struct Job {
    config: Config,
    proto: String,
    out: String,
    descriptor: Option<String>,
    /// The `.proto` files; all if it is empty.
    files: Vec<String>,
}

impl Job {
    fn read(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
        let mut job = Self {
            config: Config::new(),
            proto: "proto".to_owned(),
            out: "src/gen".to_owned(),
            descriptor: None,
            files: Vec::new(),
        };
        for (index, text) in text.lines().enumerate() {
            let words: Vec<&str> = text.split('#').next().unwrap_or_default().split_whitespace().collect();
            let config = job.config.clone();
            let set = |name: &str, value: &str| {
                let context = |error| Error::Option(format!("{}:{}: {error}", path.display(), index + 1));
                config.option(name, value).map_err(context)
            };
            match words[..] {
                [] => {}
                ["proto", folder] => job.proto = folder.to_owned(),
                ["out", folder] => job.out = folder.to_owned(),
                ["descriptor", file] => job.descriptor = Some(file.to_owned()),
                ["file", file] => job.files.push(file.to_owned()),
                [name, value] => job.config = set(name, value)?,
                [name, first, second] => job.config = set(name, &format!("{first}:{second}"))?,
                _ => {
                    let text = text.to_owned();
                    return Err(Error::Directive { path: path.to_owned(), line: index + 1, text });
                }
            }
        }
        Ok(job)
    }
}

/// Returns the files below `folder` for which `wanted` returns true. Their paths are relative to it
/// and sorted. If there is no such folder, it returns none.
fn list(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(dir) = todo.pop() {
        let io = |source| Error::Io { path: dir.clone(), source };
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && dir == folder => return Ok(found),
            entries => entries.map_err(io)?,
        };
        for entry in entries {
            let entry = entry.map_err(io)?;
            if entry.file_type().map_err(io)?.is_dir() {
                todo.push(entry.path());
            } else if wanted(&entry.path()) {
                let path = entry.path();
                found.extend(path.strip_prefix(folder).map(Path::to_owned));
            }
        }
    }
    found.sort();
    Ok(found)
}
