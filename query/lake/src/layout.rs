//! The layout of a lake: names of files and folders. `docs/reference/lake.md` describes it.

use serde::{Deserialize, Serialize};

use crate::Error;

/// The version of the schema that this program writes. It reads all versions up to this one.
pub const SCHEMA_VERSION: i64 = 1;

/// The file that makes a folder a lake.
pub const LAKE_FILE: &str = "lake.json";
/// The folder of the catalogue, and its name as a table.
pub const CATALOGUE: &str = "traces";
/// The folder of files that have the columns of each table.
pub(crate) const SCHEMAS: &str = "_schema";
/// The folder of traces that are being exported.
pub(crate) const STAGING: &str = "_staging";
/// The file that a writing export locks.
pub(crate) const LOCK: &str = "_lock";
/// The folders of numbers that are taken in an object store.
pub(crate) const NUMBERS: &str = "_numbers";
pub(crate) const CLAIMS: &str = "_claims";

const FORMAT: &str = "esatto-lake";

/// Value of a partition key that is not known.
pub const UNKNOWN: &str = "unknown";

/// A table that is a part of another one, so it has no files.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct DerivedTable {
    /// Its name.
    pub name: &'static str,
    /// The table that has the rows.
    pub of: &'static str,
    /// The condition for rows, in SQL; none if it has all.
    pub condition: Option<&'static str>,
}

/// Tables without files of their own.
pub const DERIVED_TABLES: [DerivedTable; 5] = [
    DerivedTable { name: "instant", of: "slice", condition: Some("dur = 0") },
    DerivedTable { name: "log", of: "android_logs", condition: None },
    DerivedTable { name: "raw", of: "ftrace_event", condition: None },
    DerivedTable { name: "sched_slice", of: "sched", condition: None },
    DerivedTable { name: "slices", of: "slice", condition: None },
];

/// Returns the table whose rows a table shows; none if it has files of its own.
pub fn derived(table: &str) -> Option<&'static DerivedTable> {
    DERIVED_TABLES.iter().find(|derived| derived.name == table)
}

/// A key whose values are folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionKey {
    /// The day on which a trace begins.
    Date,
    /// The machine.
    Host,
    /// The version of the programs.
    Version,
}

impl PartitionKey {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Date, Self::Host, Self::Version];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Host => "host",
            Self::Version => "version",
        }
    }

    /// Returns the name of the column that engines make of the folders. It differs from the names
    /// of all columns of tables.
    pub fn column(self) -> &'static str {
        match self {
            Self::Date => "trace_date",
            Self::Host => "trace_host",
            Self::Version => "trace_version",
        }
    }
}

/// The content of `lake.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LakeFile {
    pub(crate) format: String,
    pub(crate) schema_version: i64,
    pub(crate) partition: Vec<PartitionKey>,
}

impl LakeFile {
    pub(crate) fn new(partition: &[PartitionKey]) -> Self {
        Self { format: FORMAT.to_owned(), schema_version: SCHEMA_VERSION, partition: partition.to_vec() }
    }

    pub(crate) fn parse(bytes: &[u8], place: &str) -> Result<Self, Error> {
        // The version first: what follows may be of a later one.
        #[derive(Deserialize)]
        struct Version {
            format: String,
            schema_version: i64,
        }
        let bad = |error: serde_json::Error| Error::layout(format!("{place}: it is no lake of Esatto: {error}"));
        let version: Version = serde_json::from_slice(bytes).map_err(bad)?;
        if version.format != FORMAT {
            let why = format!("{place}: its format is '{}', not '{FORMAT}'", version.format);
            return Err(Error::layout(why));
        }
        check_version(version.schema_version, place)?;
        serde_json::from_slice(bytes).map_err(bad)
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).expect("it is texts and numbers");
        text.push(b'\n');
        text
    }
}

/// Checks that this program knows a version.
pub(crate) fn check_version(version: i64, place: &str) -> Result<(), Error> {
    if (1..=SCHEMA_VERSION).contains(&version) {
        return Ok(());
    }
    Err(Error::layout(format!(
        "{place}: its schema has version {version}, but this program knows 1 to {SCHEMA_VERSION}; use a newer Esatto"
    )))
}

/// Digits of a hash in the names of files.
const SHORT_HASH: usize = 16;

/// Returns the name of a trace's files, without the ending.
pub(crate) fn file_stem(number: u32, sha256: &str) -> String {
    format!("{number:07}-{}", sha256.get(..SHORT_HASH).unwrap_or(sha256))
}

/// Returns the path of a trace's row of the catalogue.
pub(crate) fn catalogue_path(number: u32, sha256: &str) -> String {
    format!("{CATALOGUE}/{number:07}-{sha256}.parquet")
}

/// Returns the number and the hash of a trace from the name of its row of the catalogue.
pub(crate) fn parse_catalogue_name(name: &str) -> Option<(u32, &str)> {
    let (number, sha256) = name.strip_suffix(".parquet")?.split_once('-')?;
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if number.len() != 7 || !is_hash {
        return None;
    }
    Some((number.parse().ok()?, sha256))
}

/// Returns the path of a table's file.
pub(crate) fn table_path(table: &str, partition: &[(PartitionKey, String)], stem: &str) -> String {
    let mut path = format!("{table}/");
    for (key, value) in partition {
        path.push_str(key.column());
        path.push('=');
        path.push_str(&encode(value));
        path.push('/');
    }
    path + stem + ".parquet"
}

/// Bytes of a partition value in a path: names of files can have 255.
const VALUE_BYTES: usize = 200;

/// Encodes a value for a path, as Hive does it.
fn encode(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+') || (byte == b'.');
        let length = if is_plain { 1 } else { 3 };
        if text.len() + length > VALUE_BYTES {
            break;
        }
        if is_plain {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_page() {
        let partition = [(PartitionKey::Date, "2026-11-28".to_owned()), (PartitionKey::Host, "a/b ..ü".to_owned())];
        let stem = file_stem(12, "0123456789abcdef0123");
        assert_eq!(
            table_path("slice", &partition, &stem),
            "slice/trace_date=2026-11-28/trace_host=a%2Fb%20..%C3%BC/0000012-0123456789abcdef.parquet"
        );
        assert!(encode(&"ü".repeat(500)).len() <= VALUE_BYTES);
    }

    #[test]
    fn names_of_the_catalogue_are_parsed() {
        let hash = "a".repeat(64);
        let path = catalogue_path(7, &hash);
        let name = path.strip_prefix("traces/").expect("it is in the folder");
        assert_eq!(parse_catalogue_name(name), Some((7, &*hash)));
        for bad in ["7-aa.parquet", "x.parquet", "", "0000007-.parquet"] {
            assert_eq!(parse_catalogue_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn derived_tables_are_parts_of_tables() {
        for derived in DERIVED_TABLES {
            let (table, of) = (esatto_tables::table(derived.name), esatto_tables::table(derived.of));
            let (table, of) = (table.expect("it is a table"), of.expect("it is a table"));
            for column in &table.columns {
                assert!(of.column_index(column.name).is_some(), "{}.{}", derived.name, column.name);
            }
        }
    }

    #[test]
    fn later_versions_are_refused() {
        let text = br#"{"format": "esatto-lake", "schema_version": 99, "partition": ["moon"]}"#;
        let error = LakeFile::parse(text, "lake.json").expect_err("it is later").to_string();
        assert!(error.contains("version 99") && error.contains("use a newer Esatto"), "{error}");
        let lake = LakeFile::new(&[PartitionKey::Date]);
        assert_eq!(LakeFile::parse(&lake.text(), "x").expect("it is a lake"), lake);
    }
}
