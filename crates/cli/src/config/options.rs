//! Command line of `esatto config`.

use core::time::Duration;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::document::Form;
use crate::quantities::{parse_size_kb, parse_time};

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Write a config, from a preset and a few questions
    New(New),
    /// Report the mistakes of configs, and what would record nothing or lose data
    Check(Check),
    /// Print a config with a comment before each line
    Explain(Explain),
    /// Convert a config between text, binary and JSON
    Convert(Convert),
    /// List the presets
    Presets(Presets),
    /// Print a preset
    Show(Show),
}

const NEW_HELP: &str = "\
On a terminal, and without options but -o and --force, the command asks. Otherwise the options are the answers.

The config keeps the comments of the preset. `esatto record -c FILE` records with it.";

#[derive(Debug, Args)]
#[command(after_help = NEW_HELP)]
pub(crate) struct New {
    /// Config file to write; - for standard output [default: standard output, or a question]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite FILE
    #[arg(long)]
    pub(crate) force: bool,
    /// Base of the config: a preset, or "events", the events of programs only [default: default]
    #[arg(short, long, value_name = "NAME", value_parser = crate::presets::names_with_events())]
    pub(crate) preset: Option<String>,
    /// Record only these categories of events: names, patterns such as "db.*", "tag:slow" for those
    /// with a tag also, and "-db.rows" to leave some out; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',', value_parser = crate::category_patterns::parse)]
    pub(crate) category: Vec<String>,
    /// End after this time: 500ms, 10s, 1m, 2h; with --trigger, the longest wait for it
    #[arg(short, long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) time: Option<Duration>,
    /// Keep the newest data in buffers that have this size together: 512K, 64M, 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_size_kb)]
    pub(crate) ring: Option<u32>,
    /// Write into the file while recording, for recordings that are larger than the memory
    #[arg(long, conflicts_with_all = ["ring", "trigger"])]
    pub(crate) long: bool,
    /// With --long: end before the file is larger than this
    #[arg(long, value_name = "SIZE", value_parser = parse_size_kb, requires = "long")]
    pub(crate) max_size: Option<u32>,
    /// End at this trigger
    #[arg(long, value_name = "NAME")]
    pub(crate) trigger: Option<String>,
}

impl New {
    /// Returns whether options say what to record.
    pub(crate) fn has_answers(&self) -> bool {
        self.preset.is_some()
            || !self.category.is_empty()
            || self.time.is_some()
            || self.ring.is_some()
            || self.long
            || self.trigger.is_some()
    }
}

const CHECK_HELP: &str = "\
A mistake is a field that does not exist, a value that does not fit, or a value that the tracing service refuses. A
warning is about a field without effect, a data source that records nothing, or data that may be lost.

Exit status: 0 no mistakes, 1 mistakes (with --strict also warnings), 2 wrong usage.";

#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub(crate) struct Check {
    /// Config in text format, binary or JSON; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Exit status 1 also for warnings
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXPLAIN_HELP: &str = "\
The output is a config in text format: the lines of FILE, with comments that tell what each one does, and what holds for
fields that are not set.";

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_HELP)]
pub(crate) struct Explain {
    /// Config in text format, binary or JSON; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

const CONVERT_HELP: &str = "\
The form of the input is found from its content. The form of the output is --to, or that of the ending of OUT: .cfg,
.txt, .txtpb, .textproto and .pbtxt are text, .json is JSON, .pb, .bin and .binpb are binary. Without both, the output is
text. JSON is protobuf's own mapping (\"proto3 JSON\"). Comments of a text are not kept.";

#[derive(Debug, Args)]
#[command(after_help = CONVERT_HELP)]
pub(crate) struct Convert {
    /// Config in text format, binary or JSON; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// File to write [default: standard output]
    #[arg(short, long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    /// Form of the input [default: found from its content]
    #[arg(long, value_name = "FORM")]
    pub(crate) from: Option<Form>,
    /// Form of the output [default: from the ending of OUT, else text]
    #[arg(long, value_name = "FORM")]
    pub(crate) to: Option<Form>,
}

#[derive(Debug, Args)]
pub(crate) struct Presets {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name of the preset
    #[arg(value_name = "PRESET", value_parser = crate::presets::names())]
    pub(crate) preset: String,
}

impl ValueEnum for Form {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Text, Self::Binary, Self::Json]
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()))
    }
}
