//! The program `esatto-query`, and the same with a cluster.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser as _;

use crate::answer::{Stop, last_answer};
use crate::args::Args;
pub use crate::args::parse_size;
use crate::lake_args::{ExportArgs, LakeArgs};
use crate::remote::Remote;
use crate::{Broken, Format, OpenOptions, Session, interactive, lake_commands, open};

/// Exit status if traces are damaged.
pub(crate) const BROKEN_TRACES: u8 = 3;
/// Damaged traces that are named.
pub(crate) const NAMED_TRACES: usize = 20;
/// Partitions of a query on a cluster.
const CLUSTER_PARTITIONS: usize = 16;
/// Stack of a thread: plans of nested statements are deep.
pub const STACK: usize = 64 << 20;

/// The program that asks a cluster.
const CLUSTER_PROGRAM: &str = "esatto-cluster";

/// Connects to the cluster at an address.
pub type Connect = fn(&str) -> Result<std::sync::Arc<dyn Remote>, String>;

/// Runs the program with its arguments, the first of which is its name. Without `connect`, the
/// program `esatto-cluster` runs statements for a cluster.
pub fn run_program(arguments: impl IntoIterator<Item = OsString>, connect: Option<Connect>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let result = match subcommand(&arguments) {
        Some("export") => lake_commands::export(&ExportArgs::parse_from(&arguments[1..])),
        Some(_) => lake_commands::lake(&LakeArgs::parse_from(&arguments[1..])),
        None => {
            let args = Args::parse_from(&arguments);
            if args.cluster.is_some() && connect.is_none() {
                return run_cluster_program(&arguments[1..]);
            }
            run(&args, connect)
        }
    };
    match result {
        Ok(status) => status,
        Err(Failure(message)) => {
            eprintln!("esatto-query: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the subcommand that the arguments ask for. A trace or a lake can have the same name.
fn subcommand(words: &[OsString]) -> Option<&str> {
    let word = words.get(1)?.to_str()?;
    let rest = || words[2..].iter().filter_map(|word| word.to_str());
    let is_help = |word: &str| matches!(word, "--help" | "-h" | "help" | "--version" | "-V");
    let is_meant = match word {
        "export" => rest().any(|word| word.starts_with("--to") || is_help(word)),
        "lake" => rest().next().is_some_and(|word| word == "check" || is_help(word)),
        _ => return None,
    };
    (is_meant || !Path::new(word).exists()).then_some(word)
}

pub(crate) struct Failure(pub(crate) String);

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self(message)
    }
}

/// Runs the program that asks a cluster, with the same arguments.
fn run_cluster_program(arguments: &[OsString]) -> ExitCode {
    let own = std::env::current_exe().ok();
    let neighbour = own.and_then(|own| Some(own.parent()?.join(CLUSTER_PROGRAM))).filter(|path| path.is_file());
    let program = neighbour.unwrap_or_else(|| PathBuf::from(CLUSTER_PROGRAM));
    let status = std::process::Command::new(&program).arg("query").args(arguments).status();
    match status {
        Ok(status) => status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!(
                "esatto-query: --cluster needs the program '{CLUSTER_PROGRAM}', which is neither beside \
                 esatto-query nor in PATH; install it: cargo install --path query/cluster"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("esatto-query: cannot run {}: {error}", program.display());
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args, connect: Option<Connect>) -> Result<ExitCode, Failure> {
    let (files, sql) = split_arguments(args)?;
    let format = format_of(args);
    let mut options = OpenOptions { has_trace_columns: args.trace_columns, ..OpenOptions::default() };
    options.broken = args.broken.map(Broken::from);
    options.memory_limit = args.memory_limit.unwrap_or(options.memory_limit);
    if let Some(threads) = args.threads {
        options.threads = threads.into();
    }
    let threads = options.threads;
    if let (Some(address), Some(connect)) = (&args.cluster, connect) {
        let remote = connect(address)?;
        if let Some(seconds) = args.cluster_timeout {
            remote.set_timeout(seconds.into());
        }
        options.remote = Some(remote);
        if args.threads.is_none() {
            options.threads = CLUSTER_PARTITIONS;
        }
    }
    let remote = options.remote.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_stack_size(STACK)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let session = open(&files, &options, runtime.handle())?;
    for (name, value) in &args.param {
        session.set_parameter(name, value);
    }
    let session = std::sync::Arc::new(session);
    if args.interactive {
        return Ok(interactive::run(&runtime, &session, remote, format));
    }
    let (in_task, output) = (std::sync::Arc::clone(&session), args.output.clone());
    let text = sql.clone();
    let task = runtime.spawn(async move { last_answer(&in_task, &text, format, output.as_deref()).await });
    let done = runtime.block_on(task).map_err(|error| format!("a thread failed: {error}"))?;
    report_notes(remote.as_deref());
    let has_defects = report_defects(&session, remote.as_deref());
    match done {
        Ok(_) => {}
        Err(Stop::Sql(error)) => return Err(Failure(error.with_line(&sql))),
        Err(Stop::Output(error)) if error.is_broken_pipe() => {}
        Err(Stop::Output(error)) => {
            let place = args.output.as_ref().map_or_else(|| "the output".to_owned(), |path| path.display().to_string());
            return Err(Failure(format!("cannot write {place}: {error}")));
        }
        Err(Stop::Usage(message)) => return Err(Failure(message)),
    }
    Ok(if has_defects { ExitCode::from(BROKEN_TRACES) } else { ExitCode::SUCCESS })
}

/// Splits the arguments into traces and SQL.
fn split_arguments(args: &Args) -> Result<(Vec<String>, String), Failure> {
    let mut files = args.arguments.clone();
    if args.interactive {
        return Ok((files, String::new()));
    }
    let sql = match &args.file {
        Some(path) if path == Path::new("-") => {
            let mut sql = String::new();
            io::stdin().read_to_string(&mut sql).map_err(|error| format!("cannot read the SQL: {error}"))?;
            sql
        }
        Some(path) => {
            std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?
        }
        None => files.pop().unwrap_or_default(),
    };
    if files.is_empty() {
        let missing = "no trace is named: give the traces first, then the SQL in quotes";
        return Err(Failure(missing.to_owned()));
    }
    if args.file.is_none() && Path::new(&sql).exists() {
        return Err(Failure(format!(
            "the last argument is the SQL, but '{sql}' is a file; use --file to read SQL from it"
        )));
    }
    Ok((files, sql))
}

fn format_of(args: &Args) -> Format {
    let of_name = || args.output.as_ref()?.extension()?.to_str().and_then(Format::of_extension);
    args.format.or_else(of_name).unwrap_or(Format::Table)
}

/// Half of the memory of the machine.
pub fn half_of_memory() -> usize {
    let read = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().trim_end_matches(" kB").parse::<usize>().ok()
    };
    read().map_or(2 << 30, |kilobytes| kilobytes / 2 * 1024)
}

/// Reports what a cluster has to say about the statements so far.
pub(crate) fn report_notes(remote: Option<&dyn Remote>) {
    for note in remote.iter().flat_map(|remote| remote.take_notes()) {
        eprintln!("esatto-query: note: {note}");
    }
}

/// Returns the damaged traces that were found so far, and the reasons.
pub(crate) fn defects(session: &Session, remote: Option<&dyn Remote>) -> Vec<(PathBuf, String)> {
    let own = session.traces().defects().into_iter().map(|(path, defect)| (path.to_owned(), defect));
    let mut defects: Vec<(PathBuf, String)> = own.chain(remote.iter().flat_map(|remote| remote.defects())).collect();
    defects.sort();
    defects.dedup_by(|(a, _), (b, _)| a == b);
    defects
}

/// Reports damaged traces. Returns whether there are any.
fn report_defects(session: &Session, remote: Option<&dyn Remote>) -> bool {
    let defects = defects(session, remote);
    for (path, defect) in defects.iter().take(NAMED_TRACES) {
        eprintln!("esatto-query: {}: {defect}", path.display());
    }
    if defects.len() > NAMED_TRACES {
        eprintln!("esatto-query: … and {} more", defects.len() - NAMED_TRACES);
    }
    if !defects.is_empty() {
        let (count, all) = (defects.len(), session.traces().len());
        let traces = if all == 1 { "trace is" } else { "traces are" };
        let skipped = match remote {
            None => session.traces().skipped(),
            Some(_) if session.traces().broken() == Broken::Skip => count,
            Some(_) => 0,
        };
        eprintln!("esatto-query: {count} of {all} {traces} damaged; rows of {skipped} are left out");
    }
    !defects.is_empty()
}
