//! Command lines of `esatto-query export` and `esatto-query lake`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use esatto_lake::PartitionKey;

use crate::args::{BrokenArg, parse_size};

/// Write the tables of traces as Parquet into a lake: a folder, or a part of an object store
#[derive(Debug, Parser)]
#[command(name = "esatto export", bin_name = "esatto export", version, after_help = EXPORT_EXAMPLES)]
pub(crate) struct ExportArgs {
    /// Traces, as files, as patterns such as 'traces/*.pftrace', or as URLs (http:, https:, s3:)
    #[arg(value_name = "TRACE", required = true)]
    pub(crate) traces: Vec<String>,
    /// The lake: a folder, or a URL such as s3://BUCKET/PATH. It is made if it does not exist
    #[arg(long, value_name = "LAKE")]
    pub(crate) to: String,
    /// Keys whose values become folders, such as date,host. Those of a lake never change
    #[arg(long, value_name = "KEYS", value_delimiter = ',')]
    pub(crate) partition: Option<Vec<KeyArg>>,
    /// Give a partition key this value, for all traces of this export
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_attribute)]
    pub(crate) attribute: Vec<(PartitionKey, String)>,
    /// Traces that are exported at a time [default: the number of processors]
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) jobs: Option<u16>,
    /// Treatment of damaged traces
    #[arg(long, value_name = "TREATMENT", default_value = "skip")]
    pub(crate) broken: BrokenArg,
    /// Size of the traces that may be open at a time, such as 512M or 8G; each job has its share
    /// [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<usize>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// A key whose values become folders.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum KeyArg {
    /// The day on which the trace begins, in UTC
    Date,
    /// The machine
    Host,
    /// The version of the traced programs
    Version,
}

impl From<KeyArg> for PartitionKey {
    fn from(key: KeyArg) -> Self {
        match key {
            KeyArg::Date => Self::Date,
            KeyArg::Host => Self::Host,
            KeyArg::Version => Self::Version,
        }
    }
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  esatto export 'traces/*.pftrace' --to lake
  esatto export 'traces/*.pftrace' --to s3://bucket/lake --partition date,host
  esatto export ci.pftrace --to lake --attribute version=1.4.2

A trace that is in the lake already is left alone, whatever its name. An export that was killed can be
repeated: it goes on where it stopped.

Exit status: 0 done, 1 the lake cannot be written, 2 wrong usage, 3 done, but traces are damaged or
cannot be read. Docs: docs/how-to/lake-of-traces.md";

/// Check and repair a lake
#[derive(Debug, Parser)]
#[command(name = "esatto lake", bin_name = "esatto lake", version)]
pub(crate) struct LakeArgs {
    #[command(subcommand)]
    pub(crate) action: LakeAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LakeAction {
    /// Find out whether every trace has its files, and every file its trace
    #[command(after_help = CHECK_HELP)]
    Check {
        /// The lake: a folder, or a URL
        #[arg(value_name = "LAKE")]
        lake: String,
        /// Compare sizes only; do not read the files of tables
        #[arg(long)]
        quick: bool,
        /// Complete or take back interrupted exports, remove files without a trace, and remove
        /// traces whose files are missing or have changed
        #[arg(long)]
        repair: bool,
    },
}

const CHECK_HELP: &str = "\
Exit status: 0 the lake is sound, or repaired; 1 it has problems, or cannot be read; 2 wrong usage.";

fn parse_attribute(text: &str) -> Result<(PartitionKey, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let key = PartitionKey::ALL.into_iter().find(|key| key.name() == name);
    let key = key.ok_or_else(|| format!("there is no key '{name}'; there are date, host and version"))?;
    if value.is_empty() {
        return Err(format!("the value of '{name}' is empty"));
    }
    Ok((key, value.to_owned()))
}

/// The list of keys, each once.
pub(crate) fn partition_keys(keys: &[KeyArg]) -> Result<Vec<PartitionKey>, String> {
    let mut all = Vec::new();
    for key in keys.iter().map(|key| PartitionKey::from(*key)) {
        if all.contains(&key) {
            return Err(format!("--partition names '{}' twice", key.name()));
        }
        all.push(key);
    }
    Ok(all)
}

/// Names of files, for `crate::find_files`.
pub(crate) fn files_of(traces: &[String]) -> Result<Vec<PathBuf>, String> {
    crate::find_files(traces).map(|(files, _)| files)
}
