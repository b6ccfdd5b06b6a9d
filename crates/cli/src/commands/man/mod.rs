//! The command `esatto man`: man pages from the descriptions of the options.
//!
//! ```text
//! clap's pages of esatto and its commands
//! programs ── the programs with a command line of their own: their help, and facts beside it
//!   └ help_text   the help of a program, taken apart
//!   └ page        the page in roff
//! ```

mod help_text;
mod page;
mod programs;

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{self, Cli};
use crate::failure::{Attempt as _, Failure};

pub(crate) fn run(args: &args::Man) -> Result<ExitCode, Failure> {
    let folder = &args.folder;
    let why = || format!("cannot write the man pages into {}", folder.display());
    let mut pages = BTreeMap::new();
    let mut esatto = Cli::command().disable_help_subcommand(true);
    esatto.build();
    add_commands(&mut pages, esatto).attempt(why)?;
    // The pages of commands that are such programs take the place of clap's, which know no option.
    pages.extend(programs::pages());
    std::fs::create_dir_all(folder).attempt(why)?;
    for (name, page) in pages {
        std::fs::write(folder.join(format!("{name}.1")), titled(&name, &page)).attempt(why)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds the pages of a command and of its own commands.
fn add_commands(pages: &mut BTreeMap<String, String>, command: clap::Command) -> io::Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        add_commands(pages, command.clone())?;
    }
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    pages.insert(name, String::from_utf8_lossy(&page).into_owned());
    Ok(())
}

/// Replaces the title of a page. The library for roff drops an empty date, so the version would
/// become the date.
fn titled(name: &str, page: &str) -> String {
    let title = concat!("1 \"\" \"Esatto ", env!("CARGO_PKG_VERSION"), "\"");
    let line = |line: &str| match line.starts_with(".TH ") {
        true => format!(".TH {name} {title}\n"),
        false => format!("{line}\n"),
    };
    page.lines().map(line).collect()
}
