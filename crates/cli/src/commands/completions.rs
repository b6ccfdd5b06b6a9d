//! The command `esatto completions`: scripts that let a shell complete the command line.

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{Cli, Shell};
use crate::console;
use crate::failure::{Attempt as _, Failure};

pub(crate) fn run(shell: Shell) -> Result<ExitCode, Failure> {
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_commands(), "esatto", &mut script);
    console::print(&String::from_utf8_lossy(&script)).attempt(|| "cannot print the completions".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the command line without its hidden commands, which scripts would offer.
fn visible_commands() -> clap::Command {
    let all = Cli::command();
    let visible = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let about = all.get_about().cloned().unwrap_or_default();
    clap::Command::new("esatto").version(env!("CARGO_PKG_VERSION")).about(about).subcommands(visible)
}
