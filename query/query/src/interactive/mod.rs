//! Statements from a terminal, one after the other.
//!
//! ```text
//! mod ─┬─ input      lines of a terminal, or of a pipe; the history
//!      ├─ statement  where a statement ends
//!      ├─ completion names for what is being written
//!      └─ command    .tables and the like
//! ```

mod command;
mod completion;
mod input;
mod statement;

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use crate::{Format, Session};
use tokio::runtime::Runtime;

use self::command::{Command, Next};
use self::input::{Input, Line};
use crate::answer::{Counts, Stop, answer};
use crate::program::{BROKEN_TRACES, NAMED_TRACES, defects, report_notes};
use crate::remote::Remote;

/// Exit status after a second Ctrl-C.
const INTERRUPTED: i32 = 130;

/// The state that commands change.
struct Shell {
    session: Arc<Session>,
    remote: Option<Arc<dyn Remote>>,
    format: Format,
    /// The place of the rows of the next statements; `None` is the standard output.
    output: Option<PathBuf>,
    has_timer: bool,
    has_failed: bool,
    /// Damaged traces that the user knows.
    told: BTreeSet<PathBuf>,
}

/// Reads statements until the input ends. The status tells of damaged traces, and of errors if the
/// input is no terminal.
pub(crate) fn run(
    runtime: &Runtime,
    session: &Arc<Session>,
    remote: Option<Arc<dyn Remote>>,
    format: Format,
) -> ExitCode {
    // An interrupt ends a statement, here and elsewhere.
    remote.iter().for_each(|remote| remote.leave_interrupts());
    let is_terminal = std::io::stdin().is_terminal();
    let mut shell = Shell {
        session: Arc::clone(session),
        remote,
        format,
        output: None,
        has_timer: is_terminal,
        has_failed: false,
        told: BTreeSet::new(),
    };
    if is_terminal {
        let traces = match session.traces().len() {
            _ if session.traces().are_of_lake() => "A lake".to_owned(),
            1 => "1 trace".to_owned(),
            many => format!("{many} traces"),
        };
        println!("{traces}. A statement ends with ';'. '.help' lists the commands, Ctrl-D ends.");
    }
    let mut input = match Input::new(session, is_terminal) {
        Ok(input) => input,
        Err(error) => {
            eprintln!("esatto-query: cannot read the terminal: {error}");
            return ExitCode::FAILURE;
        }
    };
    loop {
        let next = match input.next() {
            Ok(Line::Command(line)) => shell.command(runtime, &line),
            Ok(Line::Sql(sql)) => shell.statements(runtime, &sql),
            Ok(Line::End) => Next::End,
            Err(error) => {
                eprintln!("esatto-query: cannot read the input: {error}");
                shell.has_failed = true;
                Next::End
            }
        };
        if matches!(next, Next::End) {
            break;
        }
    }
    input.save_history();
    match () {
        () if shell.has_failed && !is_terminal => ExitCode::FAILURE,
        () if !shell.told.is_empty() => ExitCode::from(BROKEN_TRACES),
        () => ExitCode::SUCCESS,
    }
}

impl Shell {
    fn command(&mut self, runtime: &Runtime, line: &str) -> Next {
        match Command::parse(line) {
            Ok(Command::Sql(sql)) => self.statements(runtime, &sql),
            Ok(command) => match command.run(self) {
                Ok(next) => next,
                Err(message) => self.fail(&message),
            },
            Err(message) => self.fail(&message),
        }
    }

    /// Runs statements. Ctrl-C ends them, a second one the program.
    fn statements(&mut self, runtime: &Runtime, sql: &str) -> Next {
        let started = Instant::now();
        let (session, text) = (Arc::clone(&self.session), sql.to_owned());
        let (format, output) = (self.format, self.output.clone());
        let mut task = runtime.spawn(async move { answer(&session, &text, format, output.as_deref()).await });
        let abort = task.abort_handle();
        let done = runtime.block_on(async {
            tokio::select! {
                done = &mut task => done,
                Ok(()) = tokio::signal::ctrl_c() => {
                    abort.abort();
                    tokio::select! {
                        done = &mut task => done,
                        // The import of a trace does not end before its time.
                        Ok(()) = tokio::signal::ctrl_c() => std::process::exit(INTERRUPTED),
                    }
                }
            }
        });
        report_notes(self.remote.as_deref());
        self.report_defects();
        match done {
            Ok(Ok(counts)) => self.report(counts, started),
            Ok(Err(Stop::Sql(error))) => return self.fail(&error.with_line(sql)),
            Ok(Err(Stop::Output(error))) if error.is_broken_pipe() => return Next::End,
            Ok(Err(Stop::Output(error))) => return self.fail(&format!("cannot write the rows: {error}")),
            Ok(Err(Stop::Usage(message))) => return self.fail(&message),
            Err(error) if error.is_cancelled() => return self.fail("stopped"),
            Err(error) => return self.fail(&format!("a thread failed: {error}")),
        }
        Next::Line
    }

    /// Tells of damaged traces that the last statements found.
    fn report_defects(&mut self) {
        let mut found = defects(&self.session, self.remote.as_deref());
        found.retain(|(path, _)| !self.told.contains(path));
        for (path, defect) in found.iter().take(NAMED_TRACES) {
            eprintln!("{}: {defect}", path.display());
        }
        if found.len() > NAMED_TRACES {
            eprintln!("… and {} more damaged traces", found.len() - NAMED_TRACES);
        }
        self.told.extend(found.into_iter().map(|(path, _)| path));
    }

    fn report(&self, counts: Counts, started: Instant) {
        if self.has_timer {
            let (rows, plural) = (counts.rows, if counts.rows == 1 { "" } else { "s" });
            println!("({rows} row{plural}, {:.3} s)", started.elapsed().as_secs_f64());
        }
        let _nobody_reads = std::io::stdout().flush();
    }

    fn fail(&mut self, message: &str) -> Next {
        self.has_failed = true;
        eprintln!("{message}");
        Next::Line
    }
}
