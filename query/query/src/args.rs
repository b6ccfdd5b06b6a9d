//! Command line of `esatto-query`.

use std::path::PathBuf;

use crate::{Broken, Format};
use clap::{Parser, ValueEnum};

/// Ask traces with SQL
#[derive(Debug, Parser)]
#[command(name = "esatto-query", version, after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Traces, as files, as patterns such as 'traces/*.pftrace', or as URLs (http:, https:, s3:);
    /// or a lake: its folder or its URL. Without --file, the last argument is the SQL: one or
    /// several statements
    #[arg(value_name = "TRACE… SQL", required = true)]
    pub(crate) arguments: Vec<String>,
    /// Read statements from the terminal, one after the other, with completion and a history; all
    /// arguments are traces
    #[arg(short, long, conflicts_with_all = ["file", "output"])]
    pub(crate) interactive: bool,
    /// Read the SQL from this file; '-' is the standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Give the parameter $NAME of the SQL a value: a number if it looks like one, else a text. The
    /// values of '?' have the names 1, 2, and so on
    #[arg(short, long, value_name = "NAME=VALUE", value_parser = parse_parameter)]
    pub(crate) param: Vec<(String, String)>,
    /// Form of the rows [default: by the name of --output, else 'table']
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Write the rows to this file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Treatment of damaged traces [default: 'keep' for a single trace, else 'skip']
    #[arg(long, value_name = "TREATMENT")]
    pub(crate) broken: Option<BrokenArg>,
    /// Give all tables the columns trace_file, trace_uuid and so on, as several traces have them
    #[arg(long)]
    pub(crate) trace_columns: bool,
    /// Memory for traces and queries, such as 512M or 8G [default: half of the machine's memory].
    /// Sorting and grouping use temporary files beyond it
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<usize>,
    /// Run the statements on the Ballista cluster whose scheduler is at this address. Needs the
    /// program esatto-cluster
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) cluster: Option<String>,
    /// Seconds after which a job of the cluster that makes no progress is given up; 0 waits without
    /// end [default: 1800]
    #[arg(long, value_name = "SECONDS", requires = "cluster")]
    pub(crate) cluster_timeout: Option<u32>,
    /// Threads that work on a query [default: the number of processors]. With --cluster: the
    /// partitions into which joins and groups are split [default: 16]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum BrokenArg {
    /// They have no rows
    Skip,
    /// They have the rows that can be read
    Keep,
}

impl From<BrokenArg> for Broken {
    fn from(arg: BrokenArg) -> Self {
        match arg {
            BrokenArg::Skip => Self::Skip,
            BrokenArg::Keep => Self::Keep,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  esatto-query demo.pftrace 'select name, count(*), sum(dur) from slice group by name'
  esatto-query 'traces/*.pftrace' 'select trace_file, count(*) from sched group by 1' -o sched.csv
  esatto-query --interactive demo.pftrace
  esatto-query demo.pftrace -f report.sql --param pid=42 --format json

Lakes: `esatto export TRACE… --to LAKE` writes the tables of traces as Parquet, `esatto lake check LAKE`
checks them, and `esatto-query LAKE SQL` asks them.

Exit status: 0 done, 1 an error of SQL or of writing, 2 wrong usage, 3 done, but traces are damaged.
Tables: 'show tables', 'describe slice'. Docs: docs/how-to/query-a-trace.md";

fn parse_parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.trim_start_matches(['$', ':']);
    if name.is_empty() {
        return Err("the name is empty".to_owned());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Reads a size such as `512M` or `8G`.
///
/// # Errors
///
/// It is none, or nothing fits into it.
pub fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|ch: char| !ch.is_ascii_digit());
    let number: usize = digits.parse().map_err(|_| format!("'{text}' is no size; write 512M or 8G"))?;
    let shift = match text[digits.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        other => return Err(format!("'{other}' is no unit; there are K, M, G and T")),
    };
    let bytes = number.checked_mul(1 << shift).ok_or("it is too large")?;
    if bytes < 1 << 20 {
        return Err("it is less than 1M; nothing could be read".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_parameters() {
        assert_eq!(parse_size("512M"), Ok(512 << 20));
        assert_eq!(parse_size("8GiB"), Ok(8 << 30));
        assert!(parse_size("8Q").is_err() && parse_size("").is_err() && parse_size("10").is_err());
        assert!(parse_size("99999999999999T").is_err());
        assert_eq!(parse_parameter("$a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(parse_parameter("a").is_err() && parse_parameter("=a").is_err());
    }
}
