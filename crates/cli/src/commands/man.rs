//! The command `esatto man`: man pages from the descriptions of the options.

use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::args::{self, Cli};
use crate::failure::{Attempt as _, Failure};

pub(crate) fn run(args: &args::Man) -> Result<ExitCode, Failure> {
    let folder = &args.folder;
    clap_mangen::generate_to(Cli::command(), folder)
        .attempt(|| format!("cannot write the man pages into {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
