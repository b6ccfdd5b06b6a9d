//! The command `esatto doctor`: tells whether this machine is ready to record, and what to do if
//! not.

mod check;
mod daemons;
mod limits;
mod report;
mod rights;
mod service;

use std::process::ExitCode;

use self::check::State;
use self::report::Report;
use crate::args;
use crate::console;
use crate::failure::{Attempt as _, Failure};
use crate::terminal::Terminal;

pub(crate) fn run(args: &args::Doctor) -> Result<ExitCode, Failure> {
    let (service, programs) = service::checks();
    let report = Report {
        sections: vec![
            ("Tracing service", [service, daemons::checks()].concat()),
            ("Data sources of the machine", rights::checks(programs.as_ref())),
            ("Limits", limits::checks()),
        ],
    };
    let text = if args.json { report.to_json_text() } else { report.to_text(Terminal::of_stdout()) };
    console::print(&text).attempt(|| "cannot show the checks".to_owned())?;
    Ok(if report.has(State::Missing) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
