//! `esatto config new`: writes a config, from a preset and a few answers.

mod questions;
mod wish;

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use esatto_trace::escape::Line;

use self::questions::Questions;
use self::wish::Wish;
use super::options;
use crate::category_patterns;
use crate::console::{self, say};
use crate::failure::{Attempt as _, Failure};
use crate::presets::EVENTS;
use crate::shell_word::ShellWord;
use crate::terminal::Terminal;

pub(crate) fn run(args: &options::New) -> Result<ExitCode, Failure> {
    let asks = !args.has_answers() && io::stdin().is_terminal() && io::stderr().is_terminal();
    // Refuse the file before the questions.
    if let Some(path) = args.out.as_deref().filter(|path| path.as_os_str() != "-" && !args.force && path.exists()) {
        return Err(exists(path));
    }
    let (wish, out) = if asks {
        let mut questions = Questions::new(io::stdin().lock(), Terminal::of_stderr());
        let wish = questions.wish()?;
        let out = match &args.out {
            Some(out) => out.clone(),
            None => questions.file()?,
        };
        (wish, out)
    } else {
        if let Some(why) = category_patterns::without_effect(&args.category) {
            return Err(Failure::new("cannot write the config", why));
        }
        (wish_of(args), args.out.clone().unwrap_or_else(|| "-".into()))
    };
    let text = wish.text()?;
    if out.as_os_str() == "-" {
        console::print(&text).attempt(|| "cannot print the config".to_owned())?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&out, &text, args.force)?;
    let name = Line(out.display());
    let word = ShellWord::new(&out);
    say!("Wrote {name}. Record with it: `esatto record -c {word}`. What it does: `esatto config explain {word}`.");
    Ok(ExitCode::SUCCESS)
}

fn wish_of(args: &options::New) -> Wish {
    let preset = args.preset.clone().unwrap_or_else(|| match args.category.is_empty() {
        true => esatto_probes::presets::DEFAULT.to_owned(),
        false => EVENTS.to_owned(),
    });
    Wish {
        preset,
        categories: args.category.clone(),
        time: args.time,
        ring_kb: args.ring,
        streams: args.long,
        max_size_kb: args.max_size,
        trigger: args.trigger.clone(),
    }
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    let mut file = match options.open(path) {
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => return Err(exists(path)),
        file => file.attempt(|| cannot_write(path))?,
    };
    file.write_all(text.as_bytes()).attempt(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write the config {}", path.display())
}

fn exists(path: &Path) -> Failure {
    Failure::new(cannot_write(path), "the file exists").hint("name another one, or add --force to overwrite it")
}

/// Returns the name of a file that does not exist.
fn free_name() -> PathBuf {
    let names = core::iter::once("trace.cfg".to_owned()).chain((2..).map(|number| format!("trace-{number}.cfg")));
    names.map(PathBuf::from).find(|name| !name.exists()).unwrap_or_default()
}
