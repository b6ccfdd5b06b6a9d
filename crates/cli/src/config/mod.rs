//! The command `esatto config`: writes, checks, explains and converts configs.

mod check;
mod convert;
mod document;
mod explain;
mod field_path;
mod finding;
mod json;
mod known_sources;
mod new;
pub(crate) mod options;
mod presets;
mod rules;

use std::process::ExitCode;

use self::options::{Action, Config};
use crate::failure::Failure;

pub(crate) fn run(args: &Config) -> Result<ExitCode, Failure> {
    match &args.action {
        Action::New(args) => new::run(args),
        Action::Check(args) => check::run(args),
        Action::Explain(args) => explain::run(args),
        Action::Convert(args) => convert::run(args),
        Action::Presets(args) => presets::run(args),
        Action::Show(args) => presets::show(args),
    }
}
