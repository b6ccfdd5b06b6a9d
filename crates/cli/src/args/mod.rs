//! Command line of `esatto`.

mod record;
mod trace_files;
mod view;

use core::time::Duration;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub(crate) use self::record::{OnTrigger, Record, Voice};
pub(crate) use self::trace_files::{ContentKind, Convert, Cut, FromFormat, Merge, Redact, ToFormat};
pub(crate) use self::view::{UiBridge, View};

use crate::config::options::Config;
use crate::presets;
use crate::quantities::{parse_size_kb, parse_time};

/// Record, inspect and serve Perfetto traces
#[derive(Debug, Parser)]
#[command(name = "esatto", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Record a demo: three processes hash, compress and index files of this machine
    Demo(Demo),
    /// Record a command, or the programs of the running tracing service, into a file
    Record(Record),
    /// Run the tracing service
    // The program `traced` parses its own options.
    #[command(disable_help_flag = true)]
    Traced(Traced),
    /// Record what the machine does: scheduling, processes, counters, the journal
    #[command(disable_help_flag = true)]
    Probes(Probes),
    /// Connect the producers of this machine to the tracing service of another machine
    #[command(disable_help_flag = true)]
    Relay(Relay),
    /// Record with the options of Perfetto's command
    #[command(disable_help_flag = true)]
    Perfetto(Perfetto),
    /// Activate triggers that sessions wait for
    Trigger(Trigger),
    /// List the programs that are connected to the tracing service, and what they offer
    List(List),
    /// List the sessions of the tracing service, end one, or take one over
    Sessions(Sessions),
    /// Keep a flight recorder: start one in the background, save snapshots of it, end it
    Snapshot(Snapshot),
    /// Watch the sessions of the tracing service: rates, fill, losses and what helps
    Top(Top),
    /// Summarize the content of a trace file
    Info(Info),
    /// Write an HTML page that shows a trace; it needs no network
    Report(Report),
    /// Show a trace in the browser, offline: in Perfetto's UI if a copy is here, else as a report
    View(View),
    /// Let Perfetto's UI in the browser record with the tracing service of this machine
    UiBridge(UiBridge),
    /// Find out whether traces are sound, what they lost, and what would have prevented it
    Check(Check),
    /// Print the packets of a trace
    Dump(Dump),
    /// Ask traces with SQL; runs the program esatto-query, which is installed apart
    #[command(disable_help_flag = true)]
    Query(Query),
    /// Write the tables of traces as Parquet into a lake; runs the program esatto-query
    #[command(disable_help_flag = true)]
    Export(Query),
    /// Check and repair a lake of traces; runs the program esatto-query
    #[command(disable_help_flag = true)]
    Lake(Query),
    /// Convert a trace to another format
    Convert(Convert),
    /// Write the part of a trace between two times as a trace of its own
    Cut(Cut),
    /// Write several traces of one machine as one
    Merge(Merge),
    /// Write a trace without some of its fields and texts
    Redact(Redact),
    /// Write, check, explain and convert configs of recordings
    Config(Config),
    /// Find out whether this machine is ready to record
    Doctor(Doctor),
    /// Print the completions of a shell for this command
    Completions(Completions),
    /// Write the man pages of this command
    Man(Man),
    /// Run one process of the demo
    #[command(hide = true)]
    DemoStage(DemoStage),
}

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Trace file to write
    #[arg(short, long, value_name = "FILE", default_value = "demo.pftrace")]
    pub(crate) out: PathBuf,
    /// Time for which the demo records: 500ms, 5s, 1m
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Folders whose files are processed [default: /usr/include /usr/share /usr/lib /etc]
    #[arg(value_name = "FOLDER")]
    pub(crate) roots: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoStage {
    pub(crate) stage: Stage,
    #[arg(long, value_parser = parse_time, default_value = "5s")]
    pub(crate) time: Duration,
    #[arg(long, default_value_t = u64::MAX)]
    pub(crate) max_files: u64,
    pub(crate) roots: Vec<PathBuf>,
}

/// The processes of the pipeline, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    Scanner,
    Cruncher,
    Indexer,
}

impl Stage {
    pub(crate) const ALL: [Self; 3] = [Self::Scanner, Self::Cruncher, Self::Indexer];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scanner => "scanner",
            Self::Cruncher => "cruncher",
            Self::Indexer => "indexer",
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Traced {
    /// Options of traced; see `esatto traced --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Query {
    /// Arguments of esatto-query; `--help` explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Probes {
    /// Options of traced_probes; see `esatto probes --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Relay {
    /// Options of traced_relay; see `esatto relay --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Perfetto {
    /// Options of perfetto; see `esatto perfetto --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
    pub(crate) args: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Trigger {
    /// Names of the triggers
    #[arg(required = true, value_name = "TRIGGER")]
    pub(crate) names: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct Sessions {
    #[command(subcommand)]
    pub(crate) action: Option<SessionsAction>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsAction {
    /// End a session in order: all programs deliver their last events
    Stop {
        /// Its name, its id, or the key of a detached one
        session: String,
    },
    /// Take over a session that its program has left, show its progress, and save its trace
    Attach(Attach),
}

const ATTACH_HELP: &str = "\
Such sessions are flight recorders (`esatto snapshot start`) and those that `perfetto --detach` has left. The command
waits until the session ends. Ctrl-C, SIGTERM and SIGHUP end it in order. Then the trace is saved. A second signal ends
this command at once, and the session with it.

Exit status: 0 saved, 1 failed, 2 wrong usage, 3 recorded no event, 4 the trigger of the session did not come.";

#[derive(Debug, Args)]
#[command(after_help = ATTACH_HELP)]
pub(crate) struct Attach {
    /// Its name, its id, or its key
    pub(crate) session: String,
    /// Trace file to write; - for stdout; not if the service writes the trace itself [default: a
    /// new file NAME-DATE.pftrace]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) voice: Voice,
}

#[derive(Debug, Args)]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    pub(crate) action: SnapshotAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotAction {
    /// Start a session that records into a ring until it is ended
    Start(SnapshotStart),
    /// Save what a session has recorded. It goes on
    Take {
        /// Its name, or its id
        name: String,
        /// Trace file to write; - for stdout [default: a new file NAME-DATE.pftrace]
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// End the session
    Stop {
        /// Its name
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotStart {
    /// Name of the flight recorder
    pub(crate) name: String,
    /// Size of all buffers together: 512K, 64M, 2G [default: 64M; with CONFIG, its own sizes]
    #[arg(long = "ring", value_name = "SIZE", value_parser = parse_size_kb)]
    pub(crate) ring_kb: Option<u32>,
    /// TraceConfig in protobuf's text format, or encoded [default: all track events]
    #[arg(short, long, value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Record also what the machine does
    #[arg(short, long, value_name = "NAME", conflicts_with = "config", value_parser = presets::names())]
    pub(crate) preset: Option<String>,
    /// Record categories with the tags slow and debug too
    #[arg(long, conflicts_with = "config")]
    pub(crate) all_categories: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Top {
    /// Name or id of a session [default: all]
    pub(crate) session: Option<String>,
    /// Time between two looks
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub(crate) interval: Duration,
    /// Look twice, print the difference, and end; so it is without a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON, one line for each look
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const DOCTOR_HELP: &str = "\
Each line is a check. `ok` and `note` need no action. `missing` comes with the reason and a remedy.

Exit status: 0 ready, 1 something is missing, 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_HELP)]
pub(crate) struct Doctor {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const COMPLETIONS_HELP: &str = "\
To use them in this shell:
  bash: source <(esatto completions bash)
  zsh:  source <(esatto completions zsh)
  fish: esatto completions fish | source";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub(crate) struct Completions {
    /// Shell that completes
    pub(crate) shell: Shell,
}

/// A shell with completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder for the pages; it is made if it does not exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Traces that a command reads as one.
#[derive(Debug, Args)]
pub(crate) struct Traces {
    /// Trace files, read as one; or an archive (zip, tar) of traces; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The files are pieces of one trace, in this order
    #[arg(long = "pieces")]
    pub(crate) are_pieces: bool,
}

const CHECK_HELP: &str = "\
Each file is checked alone, and each trace of an archive.

Large traces are sorted in a temporary file of up to half of their size, in the folder that TMPDIR names.

Exit status: 0 sound, 1 damaged or not readable wholly, 2 wrong usage, 3 data is missing.";

#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct Check {
    /// Trace files to check, or archives (zip, tar) of traces; - is standard input
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// The files are pieces of one trace, in this order
    #[arg(long = "pieces")]
    pub(crate) are_pieces: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(crate) traces: Traces,
    /// Print only packets that have this field, such as track_event or trace_config; repeatable
    #[arg(long = "type", value_name = "FIELD", value_delimiter = ',')]
    pub(crate) types: Vec<String>,
    /// Print only packets of this sequence; repeatable
    #[arg(long = "sequence", value_name = "ID", value_delimiter = ',')]
    pub(crate) sequences: Vec<u32>,
    /// Print only packets whose timestamp, as written, is at least this one, in nanoseconds
    #[arg(long, value_name = "NS")]
    pub(crate) from: Option<u64>,
    /// Print only packets whose timestamp, as written, is at most this one, in nanoseconds
    #[arg(long, value_name = "NS")]
    pub(crate) to: Option<u64>,
    /// Print at most this many packets
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Print JSON, one packet per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    pub(crate) traces: Traces,
    /// File for the page; - is standard output [default: that of the first trace, with .html at its
    /// end]
    #[arg(short, long, value_name = "PAGE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file also if it is no report
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    #[command(flatten)]
    pub(crate) traces: Traces,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn all_arguments_of_a_daemon_are_its_own() {
        let all = ["-v", "--help", "--version", "--set-socket-permissions", "a:0:b:0", "--", "x"];
        let cli = Cli::parse_from(["esatto", "traced"].into_iter().chain(all));
        let Command::Traced(traced) = cli.command else { panic!("not traced") };
        assert_eq!(traced.args, all);
        let cli = Cli::parse_from(["esatto", "relay"].into_iter().chain(all));
        let Command::Relay(relay) = cli.command else { panic!("not relay") };
        assert_eq!(relay.args, all);
        let cli = Cli::parse_from(["esatto", "probes"].into_iter().chain(all));
        let Command::Probes(probes) = cli.command else { panic!("not probes") };
        assert_eq!(probes.args, all);
    }
}
