//! Command line of `esatto`.

use core::time::Duration;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::config::options::Config;
use crate::presets;
use crate::quantities::{parse_size_kb, parse_time};
use crate::trace_config::is_config;

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
    #[command(disable_help_flag = true)]
    Trigger(Trigger),
    /// List the programs that are connected to the tracing service, and what they offer
    List(List),
    /// List the sessions of the tracing service, or end one
    Sessions(Sessions),
    /// Keep a flight recorder: start one in the background, save snapshots of it, end it
    Snapshot(Snapshot),
    /// Watch the sessions of the tracing service: rates, fill, losses and what helps
    Top(Top),
    /// Summarize the content of a trace file
    Info(Info),
    /// Write an HTML page that shows a trace; it needs no network
    Report(Report),
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

const RECORD_HELP: &str = "\
With COMMAND, a private tracing service starts, and records the command and the programs that it starts. Without it, the
running tracing service records all programs that are connected to it; PERFETTO_CONSUMER_SOCK_NAME names its address. If
none runs, this command is the service until it ends. It also offers the data sources of the machine (scheduling,
processes, counters) that the config or the preset has, if no other program does.

Exit status: 0 recorded, 1 failed, 2 wrong usage, 3 recorded no event, 4 the config's trigger did not come. If COMMAND ends
with another status than 0, that is the status, unless the recording failed. Then COMMAND goes on to its end.";

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
#[command(after_help = RECORD_HELP)]
pub(crate) struct Record {
    /// Trace file to write; - for stdout [default: a new file NAME-DATE.pftrace, where NAME is the
    /// command's name or "trace"]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// End after this time: 500ms, 10s, 1m, 2h; not with a config that has triggers [default: until
    /// the command ends or Ctrl-C is pressed]
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time: Option<Duration>,
    /// TraceConfig in protobuf's text format, or encoded; - for stdin [default: all track events,
    /// except those of categories with the tag slow or debug; without COMMAND also the preset
    /// default, if this command starts the service or a program offers data sources of the machine]
    #[arg(short, long, value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Record also what the machine does
    #[arg(short, long, value_name = "NAME", conflicts_with = "config", value_parser = presets::names())]
    pub(crate) preset: Option<String>,
    /// Overwrite FILE even if its content is no trace
    #[arg(long)]
    pub(crate) force: bool,
    /// Record also the categories with the tag slow or debug
    #[arg(long, conflicts_with = "config")]
    pub(crate) all_categories: bool,
    /// Command to record, with its arguments. Options of record come before it
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Record {
    /// Returns the last arguments of the command if they were probably meant for `record`. If a
    /// `--` precedes the command, they were not.
    pub(crate) fn misplaced_options(&self) -> Option<String> {
        let (options, record) = misplaced_options(&self.command).filter(|_| !self.has_separator())?;
        record.is_meant().then_some(options)
    }

    /// Like [`misplaced_options`](Self::misplaced_options), but only if they name a trace that is
    /// not there.
    pub(crate) fn misplaced_output(&self) -> Option<String> {
        let (options, record) = misplaced_options(&self.command).filter(|_| !self.has_separator())?;
        record.out.is_some_and(|out| is_trace_name(&out) && !out.exists()).then_some(options)
    }

    fn has_separator(&self) -> bool {
        let mut args = std::env::args_os().rev().skip(self.command.len());
        args.next().is_some_and(|before| before == "--")
    }

    /// Returns whether the values fit `record`. Other programs have options of the same names.
    fn is_meant(&self) -> bool {
        self.time.is_some()
            || self.force
            || self.all_categories
            || self.out.as_deref().is_some_and(is_trace_name)
            || self.config.as_deref().is_some_and(is_config)
    }
}

fn is_trace_name(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["pftrace", "perfetto-trace", "pb", "trace"].iter().any(|usual| extension == *usual))
}

fn misplaced_options(command: &[OsString]) -> Option<(String, Record)> {
    let is_option = |arg: &OsString| arg.as_encoded_bytes().starts_with(b"-") && arg != "-" && arg != "--";
    let first = command.len().saturating_sub(MISPLACED_ARGS).max(1);
    let starts = (first..command.len()).filter(|&start| is_option(&command[start]));
    starts.map(|start| &command[start..]).find_map(|options| {
        let words = ["esatto", "record"].map(OsString::from).into_iter().chain(options.iter().cloned());
        let Ok(Cli { command: Command::Record(record) }) = Cli::try_parse_from(words) else { return None };
        let text = options.iter().map(|option| option.to_string_lossy()).collect::<Vec<_>>().join(" ");
        record.command.is_empty().then_some((text, record))
    })
}

#[derive(Debug, Args)]
pub(crate) struct Traced {
    /// Options of traced; see `esatto traced --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTION")]
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
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "TRIGGER")]
    pub(crate) args: Vec<OsString>,
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
    /// Size of the ring: 512K, 64M, 2G [default: 64M; with CONFIG, that of its buffers]
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
    /// Folder for the pages; it must exist
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Trace file to show; - is standard input
    pub(crate) file: PathBuf,
    /// File for the page; - is standard output [default: that of the trace, with .html at its end]
    #[arg(short, long, value_name = "PAGE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file also if it is no report
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Info {
    /// Trace file to read; - is standard input
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Last arguments of a command that may be options of `record`.
const MISPLACED_ARGS: usize = 16;

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

    #[test]
    fn arguments_after_two_dashes_are_the_command() {
        let cli = Cli::parse_from(["esatto", "record", "-o", "x", "-t", "1s", "--", "ls", "-o", "--time"]);
        let Command::Record(record) = cli.command else { panic!("not a record") };
        assert_eq!(record.command, ["ls", "-o", "--time"]);
    }

    #[test]
    fn options_at_the_end_of_a_command_may_be_misplaced() {
        let misplaced = |command: &[&str]| {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            misplaced_options(&command).filter(|(_, record)| record.is_meant()).map(|(options, _)| options)
        };
        assert_eq!(misplaced(&["./app", "x", "-o", "x.pftrace"]).as_deref(), Some("-o x.pftrace"));
        assert_eq!(misplaced(&["sh", "-c", "exit 7"]), None);
        assert_eq!(misplaced(&["cc", "x.c", "-o", "x"]), None);
        assert_eq!(misplaced(&["./app", "--time=5s", "-c", "my.cfg"]).as_deref(), Some("--time=5s -c my.cfg"));
        assert_eq!(misplaced(&["./app", "-v", "-t", "5s"]).as_deref(), Some("-t 5s"));
        for command in [&["-o"][..], &["./app"], &["./app", "-o"], &["cc", "-o", "x", "x.c"], &["./app", "-t", "soon"]]
        {
            assert_eq!(misplaced(command), None, "{command:?}");
        }
        assert_eq!(misplaced(&["./app", "--help"]), None);
        assert_eq!(misplaced(&["./app", "--"]), None);
    }

    #[test]
    fn a_command_takes_all_arguments_after_its_name() {
        for args in [&["ls", "-o", "--time", "--", "x"][..], &["--", "ls", "-o", "--time", "--", "x"]] {
            let cli = Cli::parse_from(["esatto", "record", "-t", "1s"].iter().chain(args));
            let Command::Record(record) = cli.command else { panic!("not a record") };
            assert_eq!(record.command, ["ls", "-o", "--time", "--", "x"], "{args:?}");
            assert_eq!(record.out, None);
        }
    }
}
