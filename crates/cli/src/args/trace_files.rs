//! Command lines of the commands that make files of traces.

use std::path::PathBuf;

use clap::Args;

use super::Traces;
use crate::trace_point::TracePoint;

const CONVERT_HELP: &str = "\
chrome-json is the format of Chrome's about:tracing, which many viewers read. folded is for flame graphs: a line for
each stack. speedscope is for https://www.speedscope.app. pprof is for `go tool pprof` and others.

folded and pprof show one kind of content. Without --of it is the first of these that the trace has: slices, samples,
heap. docs/how-to/convert-a-trace.md tells what each format keeps.

Exit status: 0 written, 1 failed, 2 wrong usage, 3 written, but a part of the input is damaged and missing.";

#[derive(Debug, Args)]
#[command(after_help = CONVERT_HELP)]
pub(crate) struct Convert {
    #[command(flatten)]
    pub(crate) traces: Traces,
    /// Format of the result [default for Chrome JSON: perfetto]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<ToFormat>,
    /// Format of the file [default: found from its first bytes]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<FromFormat>,
    /// File for the result; - is standard output [default: that of the trace, with an extension for
    /// the format]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Content that the result shows
    #[arg(long, value_name = "CONTENT")]
    pub(crate) of: Option<ContentKind>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

const CUT_HELP: &str = "\
A TIME is one of these:
  +1.5s, 10ms, 2m           after the first event of the trace; units: ns, us, ms, s, m, h
  1234567890                nanoseconds of the trace clock, as in Perfetto's UI and trace processor
  2026-11-27T14:03:20.5Z    the time of day in UTC, if the trace tells it

Slices that overlap the interval are kept whole. Of everything else, the events in the interval are kept, and all
descriptors, clocks and configs.

Exit status: 0 written, 1 failed, 2 wrong usage, 3 written, but a part of the input is damaged and missing.";

#[derive(Debug, Args)]
#[command(after_help = CUT_HELP)]
pub(crate) struct Cut {
    /// Trace file to cut; - is standard input
    pub(crate) file: PathBuf,
    /// Begin of the part [default: that of the trace]
    #[arg(long, value_name = "TIME", required_unless_present = "to", value_parser = TracePoint::parse)]
    pub(crate) from: Option<TracePoint>,
    /// End of the part [default: that of the trace]
    #[arg(long, value_name = "TIME", value_parser = TracePoint::parse)]
    pub(crate) to: Option<TracePoint>,
    /// File for the part; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

const REDACT_HELP: &str = "\
With --filter, each packet becomes what a service with that config would have written: docs/how-to/redact-a-trace.md
tells how to make such a config. With --strings and --drop-args everything passes, except:
  --strings     texts that contain a match are overwritten: names of events, arguments, log messages, command lines,
                and what programs print into the kernel's trace
  --drop-args   arguments of events are left out

Exit status: 0 written, 1 failed, 2 wrong usage, 3 written, but a part of the input is damaged and missing.";

#[derive(Debug, Args)]
#[command(after_help = REDACT_HELP)]
#[command(group = clap::ArgGroup::new("rules").required(true).multiple(true))]
pub(crate) struct Redact {
    /// Trace file to redact; - is standard input
    pub(crate) file: PathBuf,
    /// TraceConfig, in text format or encoded, whose trace_filter is applied
    #[arg(long, value_name = "CONFIG", group = "rules", conflicts_with_all = ["strings", "drop_args"])]
    pub(crate) filter: Option<PathBuf>,
    /// ECMAScript regular expression: texts that contain a match are overwritten; repeatable
    #[arg(long, value_name = "REGEX", group = "rules")]
    pub(crate) strings: Vec<String>,
    /// Leave out the arguments of events
    #[arg(long, group = "rules")]
    pub(crate) drop_args: bool,
    /// File for the result; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

const MERGE_HELP: &str = "\
A FILE for the result that ends in .zip, .tar, .tar.gz or .tgz becomes an archive: the traces as they are, and a manifest
that names their machines. Esatto's commands read it as one trace, and so do Perfetto's UI and trace processor (with the
manifest since v58). Traces whose time of day is equally far ahead of their clock are of one machine; --machines names
the machines instead. docs/how-to/merge-traces.md tells more.

Any other FILE becomes one trace. Then the traces must be of one machine and one boot, and have the same trace clock. An
event that is in two of them is in the result twice.

Exit status: 0 written, 1 failed, 2 wrong usage, 3 written, but a part of the input is damaged and missing.";

#[derive(Debug, Args)]
#[command(after_help = MERGE_HELP)]
pub(crate) struct Merge {
    /// Trace files to merge
    #[arg(required = true, num_args = 2..)]
    pub(crate) files: Vec<PathBuf>,
    /// Machines of the files, in their order; files with the same name are of one machine
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) machines: Vec<String>,
    /// File for the result; - is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
}

/// A format that a trace is converted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ToFormat {
    ChromeJson,
    Folded,
    Speedscope,
    Pprof,
    Perfetto,
}

/// A format that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum FromFormat {
    Perfetto,
    ChromeJson,
}

/// Content of a trace that has stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ContentKind {
    /// Slices, by the time that they took without the slices inside them
    Slices,
    /// Samples of call stacks, by their number
    Samples,
    /// Allocations of heap profiles, by their bytes
    Heap,
}
