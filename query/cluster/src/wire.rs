//! The bytes in which scans and functions travel inside of a plan.
//!
//! A scan names its table and columns, so programs of different versions could read it. They refuse
//! it nevertheless, because the rows of a table may differ from version to version.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result, exec_datafusion_err, exec_err};
use esatto_query::{Broken, TRACE_COLUMNS, TracePool, TraceScan, Traces};
use esatto_tables::TableDef;
use prost::Message as _;

/// Bytes that nothing of Ballista begins with: they are no message of protobuf.
const MAGIC: &[u8] = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xffesatto";

/// Version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Clone, PartialEq, prost::Message)]
struct ScanMessage {
    #[prost(string, tag = "1")]
    version: String,
    /// The folder in which relative paths begin.
    #[prost(string, tag = "2")]
    folder: String,
    #[prost(string, tag = "3")]
    table: String,
    #[prost(string, repeated, tag = "4")]
    columns: Vec<String>,
    #[prost(sint64, tag = "5")]
    first_ts: i64,
    #[prost(sint64, tag = "6")]
    last_ts: i64,
    #[prost(bool, tag = "7")]
    keeps_broken: bool,
    #[prost(message, repeated, tag = "8")]
    partitions: Vec<PartitionMessage>,
    #[prost(uint64, optional, tag = "9")]
    limit: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PartitionMessage {
    #[prost(message, repeated, tag = "1")]
    traces: Vec<TraceMessage>,
}

/// A trace. The beginning of its path is that of the path before.
#[derive(Clone, PartialEq, prost::Message)]
struct TraceMessage {
    #[prost(uint32, tag = "1")]
    number: u32,
    #[prost(uint32, tag = "2")]
    shared_bytes: u32,
    #[prost(string, tag = "3")]
    rest: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FunctionMessage {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(string, tag = "2")]
    folder: String,
    #[prost(bool, tag = "3")]
    keeps_broken: bool,
    #[prost(message, repeated, tag = "4")]
    traces: Vec<TraceMessage>,
}

/// A scan, with the numbers of the traces of each partition.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) scan: TraceScan,
    pub(crate) partitions: Vec<Vec<usize>>,
    pub(crate) folder: PathBuf,
    pub(crate) limit: Option<usize>,
}

/// Returns whether bytes are a scan.
pub(crate) fn is_scan(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

pub(crate) fn encode_scan(scan: &Scan, bytes: &mut Vec<u8>) -> Result<()> {
    let table = scan.scan.table();
    let name = |column: &usize| column_name(table, *column).to_owned();
    let mut previous = String::new();
    let mut partitions = Vec::new();
    for numbers in &scan.partitions {
        let traces =
            numbers.iter().map(|number| encode_trace(*number, scan.scan.traces().path(*number), &mut previous));
        partitions.push(PartitionMessage { traces: traces.collect::<Result<_>>()? });
    }
    let message = ScanMessage {
        version: VERSION.to_owned(),
        folder: text_of(&scan.folder)?,
        table: table.name.to_owned(),
        columns: scan.scan.columns().iter().map(name).collect(),
        first_ts: *scan.scan.times().start(),
        last_ts: *scan.scan.times().end(),
        keeps_broken: scan.scan.traces().broken() == Broken::Keep,
        partitions,
        limit: scan.limit.map(|limit| limit as u64),
    };
    bytes.extend(MAGIC);
    message.encode(bytes).map_err(|error| exec_datafusion_err!("a scan of traces: {error}"))
}

pub(crate) fn decode_scan(bytes: &[u8], pool: &Arc<TracePool>) -> Result<Scan> {
    let bytes = bytes.strip_prefix(MAGIC).unwrap_or_default();
    let message = ScanMessage::decode(bytes).map_err(|error| exec_datafusion_err!("a scan of traces: {error}"))?;
    check_version(&message.version)?;
    let Some(table) = esatto_tables::table(&message.table) else {
        return exec_err!("a scan of traces: there is no table '{}'", message.table);
    };
    let column = |name: &String| match column_position(table, name) {
        Some(position) => Ok(position),
        None => exec_err!("a scan of traces: the table '{}' has no column '{name}'", table.name),
    };
    let columns: Vec<usize> = message.columns.iter().map(column).collect::<Result<_>>()?;
    let mut previous = String::new();
    let mut paths = Vec::new();
    let mut partitions = Vec::new();
    for partition in &message.partitions {
        let mut numbers = Vec::new();
        for trace in &partition.traces {
            let (number, path) = decode_trace(trace, &mut previous)?;
            numbers.push(number);
            paths.push((number, path));
        }
        partitions.push(numbers);
    }
    let folder = PathBuf::from(message.folder);
    let broken = if message.keeps_broken { Broken::Keep } else { Broken::Skip };
    let traces = Arc::new(Traces::in_pool(pool, &folder, paths, broken));
    let numbers = partitions.iter().flatten().copied().collect();
    let scan = TraceScan::new(traces, numbers, table, columns, message.first_ts..=message.last_ts)?;
    let limit = message.limit.and_then(|limit| usize::try_from(limit).ok());
    Ok(Scan { scan, partitions, folder, limit })
}

/// Encodes the traces that a function looks into.
pub(crate) fn encode_function(traces: &Traces, folder: &Path, bytes: &mut Vec<u8>) -> Result<()> {
    let mut previous = String::new();
    let all = traces.paths().map(|(number, path)| encode_trace(number, path, &mut previous));
    let message = FunctionMessage {
        version: VERSION.to_owned(),
        folder: text_of(folder)?,
        keeps_broken: traces.broken() == Broken::Keep,
        traces: all.collect::<Result<_>>()?,
    };
    bytes.extend(MAGIC);
    message.encode(bytes).map_err(|error| exec_datafusion_err!("a function of traces: {error}"))
}

/// Decodes the traces that a function looks into. There are none in an empty message.
pub(crate) fn decode_function(bytes: &[u8], pool: &Arc<TracePool>) -> Result<Traces> {
    let Some(bytes) = bytes.strip_prefix(MAGIC) else {
        return Ok(Traces::in_pool(pool, Path::new(""), [], Broken::Skip));
    };
    let message = FunctionMessage::decode(bytes).map_err(|error| exec_datafusion_err!("a function: {error}"))?;
    check_version(&message.version)?;
    let mut previous = String::new();
    let paths = message.traces.iter().map(|trace| decode_trace(trace, &mut previous)).collect::<Result<Vec<_>>>()?;
    let broken = if message.keeps_broken { Broken::Keep } else { Broken::Skip };
    let folder = PathBuf::from(message.folder);
    Ok(Traces::in_pool(pool, &folder, paths, broken))
}

fn check_version(version: &str) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    exec_err!(
        "the query comes from esatto-cluster {version}, but here runs {VERSION}: \
         use the same version for the client, the scheduler and all executors"
    )
}

fn column_name(table: &TableDef, column: usize) -> &'static str {
    let own = table.columns.len();
    if column < own { table.columns[column].name } else { TRACE_COLUMNS[column - own].0 }
}

fn column_position(table: &TableDef, name: &str) -> Option<usize> {
    let of_traces = || TRACE_COLUMNS.iter().position(|(own, _)| *own == name).map(|at| table.columns.len() + at);
    table.column_index(name).or_else(of_traces)
}

fn text_of(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => exec_err!("{}: a path for a cluster must be UTF-8; rename the file", path.display()),
    }
}

fn encode_trace(number: usize, path: &Path, previous: &mut String) -> Result<TraceMessage> {
    let path = text_of(path)?;
    let shared = path.char_indices().zip(previous.chars()).take_while(|((_, a), b)| a == b);
    let shared = shared.last().map_or(0, |((at, ch), _)| at + ch.len_utf8());
    let number = u32::try_from(number).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let shared_bytes = u32::try_from(shared).map_err(|error| DataFusionError::External(Box::new(error)))?;
    let message = TraceMessage { number, shared_bytes, rest: path[shared..].to_owned() };
    *previous = path;
    Ok(message)
}

fn decode_trace(message: &TraceMessage, previous: &mut String) -> Result<(usize, PathBuf)> {
    let Some(shared) = previous.get(..message.shared_bytes as usize) else {
        return exec_err!("a list of traces is damaged");
    };
    let path = format!("{shared}{}", message.rest);
    previous.clone_from(&path);
    Ok((message.number as usize, PathBuf::from(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_share_their_beginnings() {
        let paths = ["/a/träce1", "/a/träce2", "/a/tr", "", "/b"];
        let mut previous = String::new();
        let encode = |(number, path): (usize, &&str)| encode_trace(number, Path::new(path), &mut previous);
        let messages: Vec<TraceMessage> =
            paths.iter().enumerate().map(encode).collect::<Result<_>>().expect("the paths are UTF-8");
        assert_eq!(messages[1].rest, "2");
        let mut previous = String::new();
        for (number, (message, path)) in messages.iter().zip(paths).enumerate() {
            assert_eq!(decode_trace(message, &mut previous).expect("it is whole"), (number, PathBuf::from(path)));
        }
        // The shared part of a damaged list ends inside of a character, or after the path.
        for shared_bytes in [6, 100] {
            let damaged = TraceMessage { number: 0, shared_bytes, rest: String::new() };
            assert!(decode_trace(&damaged, &mut "/a/trä".to_owned()).is_err());
        }
    }

    #[test]
    fn a_scan_survives_the_way() {
        let pool = TracePool::new(1 << 20, None).expect("a pool");
        let traces = (0..3).map(|number| (number, PathBuf::from(format!("t{number}.pftrace"))));
        let traces = Arc::new(Traces::in_pool(&pool, Path::new("/traces"), traces, Broken::Keep));
        let table = esatto_tables::table("slice").expect("there are slices");
        let columns = vec![2, 0, table.columns.len()];
        let scan = TraceScan::new(traces, vec![0, 1, 2], table, columns.clone(), -5..=7).expect("columns");
        let partitions = vec![vec![0], vec![1, 2]];
        let sent = Scan { scan, partitions: partitions.clone(), folder: "/traces".into(), limit: Some(3) };
        let mut bytes = Vec::new();
        encode_scan(&sent, &mut bytes).expect("it can be encoded");
        assert!(is_scan(&bytes));
        let received = decode_scan(&bytes, &pool).expect("it can be decoded");
        assert_eq!(received.partitions, partitions);
        assert_eq!((received.scan.columns(), received.scan.times()), (&*columns, &(-5..=7)));
        assert_eq!((received.scan.schema(), received.limit), (sent.scan.schema(), Some(3)));
        assert_eq!(received.scan.traces().path(2), Path::new("t2.pftrace"));
        // Damaged bytes are errors, whatever is wrong.
        for length in 0..bytes.len() {
            let _error_or_shorter = decode_scan(&bytes[..length], &pool);
        }
    }

    #[test]
    fn another_version_is_refused() {
        let error = check_version("9.8.7").unwrap_err().to_string();
        assert!(error.contains("9.8.7") && error.contains(VERSION), "{error}");
    }
}
