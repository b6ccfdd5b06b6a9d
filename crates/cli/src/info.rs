//! placeholder
use crate::args;
use crate::failure::Failure;
use std::path::Path;
use std::process::ExitCode;
pub(crate) fn run(_args: &args::Info) -> Result<ExitCode, Failure> {
    Ok(ExitCode::SUCCESS)
}
pub(crate) fn table(_path: &Path) -> Result<String, Failure> {
    Ok(String::new())
}
