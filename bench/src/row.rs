//! Results.

use std::path::Path;

use serde::Serialize;

/// One line of the table. Of both values the smaller one is better, and the ratio is ours to the peer's.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    group: &'static str,
    case: String,
    unit: &'static str,
    value: f64,
    peer: Option<&'static str>,
    peer_value: Option<f64>,
    ratio: Option<f64>,
    /// The ratio that an issue asks for; none so far.
    reach: Option<f64>,
    /// Whether it is reached.
    holds: Option<bool>,
}

impl Row {
    /// A value that stands alone, such as a floor.
    pub(crate) fn new(group: &'static str, case: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            group,
            case: case.into(),
            unit,
            value: round(value),
            peer: None,
            peer_value: None,
            ratio: None,
            reach: None,
            holds: None,
        }
    }

    /// The same of a peer; `None`: the peer could not be measured.
    pub(crate) fn beside(mut self, peer: &'static str, value: Option<f64>) -> Self {
        self.peer = Some(peer);
        self.peer_value = value.map(round);
        self.ratio = value.filter(|&value| value > 0.0).map(|value| round(self.value / value));
        self
    }
}

/// Three decimals are more than any of this repeats.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Prints the rows of one group.
pub(crate) fn print(group: &str, rows: &[Row]) {
    let width = rows.iter().map(|row| row.case.chars().count()).max().unwrap_or(0).max(group.len());
    println!("\n{group:width$}  {:>10}  {:>10}  {:>6}  {:13} peer", "esatto", "peer", "ratio", "unit");
    for row in rows {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        println!(
            "{:width$}  {:>10.2}  {:>10}  {:>6}  {:13} {}",
            row.case,
            row.value,
            number(row.peer_value),
            number(row.ratio),
            row.unit,
            row.peer.unwrap_or("-"),
        );
    }
}

/// Writes the rows as a JSON array.
pub(crate) fn write_json(file: &Path, rows: &[Row]) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(rows).map_err(|error| error.to_string())?;
    text.push('\n');
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
