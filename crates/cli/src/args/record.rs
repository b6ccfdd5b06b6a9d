//! Command line of `esatto record`.

use core::time::Duration;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser as _, ValueEnum};

use super::{Cli, Command};
use crate::quantities::{parse_size_kb, parse_time};
use crate::start_time::StartTime;
use crate::trace_config::is_config;
use crate::trace_output::Output;
use crate::{category_patterns, presets};

const RECORD_HELP: &str = "\
With COMMAND, a private tracing service starts, and records the command and the programs that it starts. Without it, the
running tracing service records all programs that are connected to it; PERFETTO_CONSUMER_SOCK_NAME names its address. If
none runs, this command is the service until it ends. It also offers the data sources of the machine (scheduling,
processes, counters) that the config or the preset has, if no other program does.

Ctrl-C, SIGTERM and SIGHUP end the recording in order, and the trace is saved. A second signal ends this command at once.

With --trigger, `esatto trigger NAME` or a program activates the trigger. With COMMAND, only COMMAND and its children can.

Exit status: 0 recorded, 1 failed, 2 wrong usage, 3 recorded no event, 4 the trigger did not come. If COMMAND ends with
another status than 0, that is the status, unless the recording failed. Then, and if the file is full, COMMAND goes on
to its end.";

/// Last arguments of a command that may be options of `record`.
const MISPLACED_ARGS: usize = 16;

/// Amount of text that a command prints beside its result.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Voice {
    /// Print only errors and what the trace lacks
    #[arg(long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print also what is recorded, and the progress if standard error is no terminal
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Print a summary as JSON at the end
    #[arg(long)]
    pub(crate) json: bool,
}

/// Effect of a trigger on a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnTrigger {
    /// End the recording one second later, and save the ring. Without the trigger, nothing is saved
    #[default]
    Stop,
    /// Begin the recording. TIME counts from then on
    Start,
    /// Save the ring one second later, as FILE.0, FILE.1 and so on, and go on
    Snapshot,
}

#[derive(Debug, Args)]
#[command(after_help = RECORD_HELP)]
pub(crate) struct Record {
    /// Trace file to write; - for stdout [default: a new file NAME-DATE.pftrace, where NAME is the
    /// command's name or "trace"]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// End after this time: 500ms, 10s, 1m, 2h; with --trigger, the longest wait for it; not with a
    /// config that has triggers [default: until the command ends or Ctrl-C is pressed]
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
    /// Record only the events of these categories: names, patterns such as "db.*", "tag:slow" for
    /// those with a tag also, and "-db.rows" to leave some out; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = category_patterns::parse)]
    pub(crate) category: Vec<String>,
    /// Keep only the newest data, in buffers that have this size together, and save them at the
    /// end: 512K, 64M, 1G
    #[arg(long = "ring", value_name = "SIZE", value_parser = parse_size_kb)]
    pub(crate) ring_kb: Option<u32>,
    /// Write into FILE while recording, for recordings that are larger than the memory
    #[arg(long, value_name = "FILE")]
    pub(crate) long: Option<PathBuf>,
    /// With --long: end before the file is larger than this. COMMAND goes on
    #[arg(long = "max-size", value_name = "SIZE", value_parser = parse_size_kb, requires = "long")]
    pub(crate) max_size_kb: Option<u32>,
    /// Keep the newest data, and end at the first of these triggers; repeatable
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) trigger: Vec<String>,
    /// With --trigger: what a trigger does
    #[arg(long, value_name = "EFFECT", requires = "trigger", default_value_t, value_enum)]
    pub(crate) on_trigger: OnTrigger,
    /// Start at this time, for instance on several machines at once: /10s for the next full 10 s of
    /// the clock, @SECONDS since 1970, or 2030-12-31T23:59:00Z
    #[arg(long, value_name = "WHEN", value_parser = StartTime::parse)]
    pub(crate) at: Option<StartTime>,
    /// Write also an HTML page beside FILE that shows the trace without a network
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) voice: Voice,
    /// Command to record, with its arguments. Options of record come before it
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl Record {
    /// Returns whether the newest data stay in memory until the end of the recording.
    pub(crate) fn keeps_ring(&self) -> bool {
        self.ring_kb.is_some() || !self.trigger.is_empty() && self.on_trigger != OnTrigger::Start
    }

    /// Fails if options exclude each other, with the reason and a remedy.
    pub(crate) fn check(&self) -> Result<(), clap::Error> {
        let conflict = self.conflict().map(str::to_owned).or_else(|| category_patterns::without_effect(&self.category));
        let Some(why) = conflict else { return Ok(()) };
        let mut command = Cli::command();
        command.build();
        let record = command.find_subcommand("record").cloned().unwrap_or(command);
        Err({ record }.error(ErrorKind::ArgumentConflict, why))
    }

    fn conflict(&self) -> Option<&'static str> {
        let takes_start = self.on_trigger == OnTrigger::Start;
        let triggers = !self.trigger.is_empty();
        let of_config = [
            (
                !self.category.is_empty(),
                "--category is not possible with -c: the config names the categories; add them to the \
                 track_event_config of the config, or leave out -c",
            ),
            (
                self.ring_kb.is_some(),
                "--ring is not possible with -c: the config has the sizes of its buffers; change size_kb in the \
                 config, or leave out -c",
            ),
            (
                self.long.is_some(),
                "--long is not possible with -c: the config says who writes the file; add `write_into_file: true` to \
                 the config and name the file with -o, or leave out -c",
            ),
            (
                triggers,
                "--trigger is not possible with -c: the config names its triggers; add a trigger_config to the config, \
                 or leave out -c",
            ),
        ];
        let cases = [
            (
                self.all_categories && !self.category.is_empty(),
                "--all-categories is not possible with --category, which names the categories; add their tags to it: \
                 `--category tag:slow,tag:debug`",
            ),
            (
                self.long.is_some() && self.out.is_some(),
                "-o is not possible with --long, which also names the file; leave out -o",
            ),
            (
                self.long.is_some() && self.ring_kb.is_some(),
                "--ring is not possible with --long: a ring keeps only the newest events, a long recording all of them; \
                 leave out one of both",
            ),
            (
                self.long.is_some() && triggers && !takes_start,
                "--trigger is not possible with --long: nothing may be written before the trigger; leave out --long, or \
                 let the trigger begin the recording with `--on-trigger start`",
            ),
            (
                self.voice.json && (self.out.as_deref().or(self.long.as_deref())).is_some_and(Output::is_stdout),
                "--json is not possible with a trace on standard output, where the summary goes; name a file with -o",
            ),
        ];
        let is_config = self.config.is_some();
        let of_config = of_config.into_iter().map(|(is_given, why)| (is_given && is_config, why));
        of_config.chain(cases).find_map(|(is_wrong, why)| is_wrong.then_some(why))
    }

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
            || self.report
            || self.ring_kb.is_some()
            || self.long.is_some()
            || self.at.is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Record {
        let cli = Cli::parse_from(["esatto", "record"].iter().chain(args));
        let Command::Record(record) = cli.command else { panic!("not a record") };
        record
    }

    #[test]
    fn options_that_exclude_each_other_are_refused_with_a_reason() {
        let cases: [(&[&str], &str); 8] = [
            (&["-c", "x", "--category", "net"], "leave out -c"),
            (&["-c", "x", "--ring", "1M"], "size_kb in the config"),
            (&["-c", "x", "--long", "y"], "write_into_file"),
            (&["-c", "x", "--trigger", "y"], "trigger_config"),
            (&["--all-categories", "--category", "net"], "tag:slow"),
            (&["--long", "x", "-o", "y"], "leave out -o"),
            (&["--long", "x", "--trigger", "y"], "--on-trigger start"),
            (&["-o", "-", "--json"], "name a file"),
        ];
        for (args, why) in cases {
            let error = parsed(args).check().unwrap_err();
            assert!(error.exit_code() == 2 && error.to_string().contains(why), "{args:?}: {error}");
        }
        let fine: [&[&str]; 4] = [
            &["--long", "x", "--trigger", "y", "--on-trigger", "start"],
            &["--ring", "1M", "--trigger", "y", "--trigger", "z", "--on-trigger", "snapshot"],
            &["-c", "x", "--at", "/10s"],
            &["--preset", "sched", "--category", "net,db.*", "--category=-db.rows", "--ring", "64M", "--", "app"],
        ];
        for args in fine {
            parsed(args).check().unwrap();
        }
    }

    #[test]
    fn patterns_are_checked() {
        for good in ["net", "db.*", "*", "tag:slow", "-db.rows"] {
            assert_eq!(category_patterns::parse(good).as_deref(), Ok(good));
        }
        for bad in ["", "-", "tag:", "-tag:slow", "a*b", "*.rows"] {
            assert!(category_patterns::parse(bad).is_err(), "{bad}");
        }
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
