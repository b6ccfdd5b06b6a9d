//! Command line of `esatto config`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::document::Form;

#[derive(Debug, Args)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) action: Action,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Report the mistakes of configs, and what would record nothing or lose data
    Check(Check),
    /// Convert a config between text, binary and JSON
    Convert(Convert),
    /// List the presets
    Presets(Presets),
    /// Print a preset
    Show(Show),
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
