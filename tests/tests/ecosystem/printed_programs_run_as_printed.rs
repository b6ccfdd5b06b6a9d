//! The programs that the documentation prints, built from the printed `Cargo.toml` and `main.rs`,
//! and run by the printed commands.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use esatto_tests::{Harness, Skip, esatto_bin, skip};
use esatto_trace::Trace;

/// The effect of a program.
enum Effect {
    /// A trace with events of these names. `<line>` stands for a line number.
    Trace(&'static [&'static str]),
    /// A line on standard output.
    Output(&'static str),
}

use Effect::{Output, Trace as Records};

/// The pages, and the effects of their programs.
const PAGES: &[(&str, &[Effect])] = &[
    (
        "README.md",
        &[
            Records(&["done", "read"]),
            Records(&["everything"]),
            Records(&["app:<line>", "request"]),
            Output("LEVEL_ERROR: too hot"),
        ],
    ),
    ("docs/how-to/rust-program.md", &[Records(&["handle", "parse", "queued"]), Records(&["the interesting part"])]),
    (
        "docs/how-to/async-server.md",
        &[Records(&["answer", "look_up"]), Records(&["answer", "answered"]), Records(&["app:<line>"])],
    ),
    ("docs/how-to/data-source.md", &[Output("recorded"), Output("db-1: 0.7")]),
];

/// A program with everything that a reader needs to run it.
struct Printed {
    /// Paths and contents.
    files: Vec<(String, String)>,
    commands: String,
}

/// Returns the programs of a page: the files, up to the commands that run them. A manifest also
/// serves the programs after it.
fn programs(page: &str) -> Vec<Printed> {
    let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
    let mut programs = Vec::new();
    let (mut manifest, mut files) = (None, Vec::new());
    for Block { language, title, text } in blocks(&text) {
        let path = match language.split(',').next() {
            Some("toml") if text.contains("[dependencies]") => {
                manifest = Some(text);
                continue;
            }
            Some("rust" | "rs") if is_whole(&text) => title.unwrap_or("src/main.rs"),
            Some("proto") => title.expect("the page names the file"),
            Some("sh") if !files.is_empty() => {
                let manifest = manifest.clone().unwrap_or_else(|| panic!("{page}: a program without dependencies"));
                files.push(("Cargo.toml".to_owned(), manifest));
                programs.push(Printed { files: std::mem::take(&mut files), commands: text });
                continue;
            }
            _ => continue,
        };
        assert!(files.iter().all(|(other, _)| other != path), "{page}: a program without the commands that run it");
        files.push((path.to_owned(), text));
    }
    assert!(files.is_empty(), "{page}: a program without the commands that run it");
    programs
}

/// Returns whether a block has a `main` that readers see.
fn is_whole(block: &str) -> bool {
    block.lines().any(|line| line.contains("fn main()") && !line.starts_with("# "))
}

/// A code block of a page.
struct Block<'a> {
    language: &'a str,
    /// The path of the file, if it is on the line before: "`src/main.rs`:".
    title: Option<&'a str>,
    text: String,
}

/// Returns the code blocks of a page.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut is_open, mut title) = (false, None);
    for line in text.lines() {
        match (line.strip_prefix("```"), blocks.last_mut()) {
            (Some(_), _) if is_open => is_open = false,
            (Some(language), _) => {
                blocks.push(Block { language, title, text: String::new() });
                is_open = true;
            }
            (None, Some(block)) if is_open => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            _ if line.is_empty() => continue,
            _ => title = line.strip_prefix('`').and_then(|line| line.strip_suffix("`:")),
        }
        if is_open {
            title = None;
        }
    }
    blocks
}

/// A folder with a clone of the repository, the command in the `PATH`, and a package beside them.
struct Desk {
    folder: PathBuf,
    harness: Harness,
}

impl Desk {
    fn new() -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("printed");
        let link = |original: PathBuf, name: &str| {
            let link = folder.join(name);
            let _ = std::fs::remove_file(&link);
            std::os::unix::fs::symlink(original, link).expect("the folder is ours");
        };
        std::fs::create_dir_all(folder.join("bin")).expect("the folder is ours");
        std::fs::create_dir_all(folder.join("app")).expect("the folder is ours");
        link(std::fs::canonicalize(root()).expect("it is there"), "esatto");
        link(esatto_bin(), "bin/esatto");
        Self { folder, harness: Harness::new() }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.harness.command(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        command.current_dir(self.folder.join("app")).env_remove("CARGO_TARGET_DIR").env_remove("LD_LIBRARY_PATH");
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
        command
    }

    /// Makes the package, as `cargo new` does, with what is printed.
    fn write(&self, program: &Printed) {
        let app = self.folder.join("app");
        for folder in ["src", "proto"] {
            let _ = std::fs::remove_dir_all(app.join(folder));
            std::fs::create_dir_all(app.join(folder)).expect("the folder is ours");
        }
        let _ = std::fs::remove_file(app.join("build.rs"));
        for (path, text) in &program.files {
            // The folder is inside that of another workspace.
            let head = "[workspace]\n\n[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n";
            let text = if path == "Cargo.toml" { format!("{head}{text}") } else { text.clone() };
            std::fs::write(app.join(path), text).expect("the folder is ours");
        }
        // The same versions of dependencies as here: Cargo has most of them.
        std::fs::copy(root().join("Cargo.lock"), app.join("Cargo.lock")).expect("the folder is ours");
        for trace in self.traces() {
            std::fs::remove_file(trace).expect("the folder is ours");
        }
    }

    /// The traces in the folder of the package.
    fn traces(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.join("app")).expect("the folder is ours");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "pftrace")).collect()
    }

    /// Fetches the dependencies that Cargo does not have.
    fn fetch(&self) -> Result<(), Skip> {
        let is_there = self.command("cargo").args(["fetch", "--offline"]).output().expect("Cargo runs");
        if is_there.status.success() {
            return Ok(());
        }
        let output = self.command("cargo").arg("fetch").output().expect("Cargo runs");
        let error = || Skip::outside_ci(format!("no registry: {}", String::from_utf8_lossy(&output.stderr)));
        if output.status.success() { Ok(()) } else { Err(error()) }
    }

    /// Runs shell commands with the package as the current folder, and returns their output.
    fn run(&self, name: &str, commands: &str) -> String {
        let mut shell = self.command("sh");
        shell.args(["-e", "-c", commands]).env("CARGO_NET_OFFLINE", "true");
        let output = shell.output().expect("a shell runs");
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {commands}\n{said}");
        said
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// Returns the names of all events, with the line of a place as `<line>`.
fn names(trace: &Path) -> BTreeSet<String> {
    let bytes = std::fs::read(trace).unwrap_or_else(|error| panic!("{}: {error}", trace.display()));
    let trace = Trace::read(&bytes[..]);
    assert!(trace.errors.is_empty(), "{:?}", trace.errors);
    let names = trace.events.iter().filter_map(|event| event.name.clone());
    let without_line = |name: String| match name.split_once(':') {
        Some((module, line)) if line.parse::<u32>().is_ok() => format!("{module}:<line>"),
        _ => name,
    };
    names.map(without_line).collect()
}

#[test]
fn and_their_events_are_in_the_trace() {
    skip(|| {
        let desk = Desk::new();
        for (page, expected) in PAGES {
            let programs = programs(page);
            assert_eq!(programs.len(), expected.len(), "{page}: a program is not in the list of this test");
            for (number, (program, effect)) in programs.iter().zip(*expected).enumerate() {
                let name = format!("{page}, program {}", number + 1);
                desk.write(program);
                desk.fetch()?;
                let said = desk.run(&name, &program.commands);
                match effect {
                    Records(events) => {
                        let traces = desk.traces();
                        assert_eq!(traces.len(), 1, "{name}: one trace: {traces:?}");
                        let expected: BTreeSet<String> = events.iter().map(|&event| event.to_owned()).collect();
                        assert_eq!(names(&traces[0]), expected, "{name}");
                    }
                    Output(line) => assert!(said.lines().any(|said| said == *line), "{name}: {said}"),
                }
            }
        }
        Ok(())
    });
}

#[test]
fn and_the_command_is_installed_before_its_first_use() {
    for page in ["README.md", "docs/tutorial.md"] {
        let text = std::fs::read_to_string(root().join(page)).expect("the page is there");
        let blocks = blocks(&text);
        let commands = blocks.iter().filter(|block| block.language == "sh").flat_map(|block| block.text.lines());
        let first = |begin: &str| commands.clone().position(|line| line.starts_with(begin));
        let (installed, used) = (first("cargo install --path crates/cli"), first("esatto "));
        assert!(installed.is_some() && installed < used, "{page}: {installed:?}, {used:?}");
    }
}
