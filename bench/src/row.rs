//! Results.

use std::path::Path;

use serde::Serialize;

/// One line of the table: ours, the same of peers and of a floor. Ratios are ours to theirs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    group: &'static str,
    case: String,
    unit: &'static str,
    /// Of values the smaller one is better, but of throughput.
    more_is_better: bool,
    value: f64,
    /// The best of the peers.
    peer: Option<String>,
    peer_value: Option<f64>,
    /// To the best of the peers.
    ratio: Option<f64>,
    /// All of them, in the order of the table; without a value where it could not be measured.
    peers: Vec<Peer>,
    /// Value of the floor: no implementation can be faster.
    floor: Option<f64>,
    floor_ratio: Option<f64>,
    /// Reach, and the value to which it applies.
    reach: Option<f64>,
    reach_of: Option<Of>,
    /// True if the reach holds. A reach relative to a floor also holds if no peer is better.
    holds: Option<bool>,
}

#[derive(Clone, Debug, Serialize)]
struct Peer {
    name: String,
    value: Option<f64>,
}

/// The value that a reach limits (from below if more is better).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Of {
    /// The ratio to the floor.
    Floor,
    /// The ratio to the best peer.
    Peer,
    /// The value itself.
    Value,
}

impl Row {
    /// A value that stands alone, such as a floor.
    pub(crate) fn new(group: &'static str, case: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self {
            group,
            case: case.into(),
            unit,
            more_is_better: false,
            value: round(value),
            peer: None,
            peer_value: None,
            ratio: None,
            peers: Vec::new(),
            floor: None,
            floor_ratio: None,
            reach: None,
            reach_of: None,
            holds: None,
        }
    }

    /// Says so; before anything is compared.
    pub(crate) fn more_is_better(mut self) -> Self {
        self.more_is_better = true;
        self
    }

    /// The same of a peer; `None`: the peer could not be measured.
    pub(crate) fn beside(mut self, peer: &str, value: Option<f64>) -> Self {
        let value = value.map(round);
        if self.peer.is_none()
            || value.is_some_and(|value| self.peer_value.is_none_or(|best| self.is_better(value, best)))
        {
            self.peer = Some(peer.to_owned());
            self.peer_value = value;
            self.ratio = self.over(value);
        }
        self.peers.push(Peer { name: peer.to_owned(), value });
        self
    }

    /// The same of a floor.
    pub(crate) fn above(mut self, floor: f64) -> Self {
        self.floor = Some(round(floor));
        self.floor_ratio = self.over(self.floor);
        self
    }

    /// Sets the reach. Call it after the values are set.
    pub(crate) fn reach(mut self, of: Of, reach: f64) -> Self {
        self.reach = Some(reach);
        self.reach_of = Some(of);
        let reached = |value: Option<f64>| value.map(|value| value == reach || self.is_better(value, reach));
        self.holds = match of {
            Of::Floor => {
                let beats_all = self.ratio.is_none_or(|ratio| self.is_better(ratio, 1.0));
                reached(self.floor_ratio).map(|reached| reached && beats_all)
            }
            Of::Peer => reached(self.ratio),
            Of::Value => reached(Some(self.value)),
        };
        self
    }

    fn is_better(&self, value: f64, than: f64) -> bool {
        if self.more_is_better { value > than } else { value < than }
    }

    fn over(&self, value: Option<f64>) -> Option<f64> {
        value.filter(|&value| value > 0.0).map(|value| round(self.value / value))
    }

    fn value_of(&self, peer: &str) -> Option<f64> {
        self.peers.iter().find(|found| found.name == peer).and_then(|found| found.value)
    }

    fn reach_text(&self) -> String {
        match (self.reach, self.reach_of) {
            (Some(reach), Some(Of::Floor)) => format!("{reach:.2} floor"),
            (Some(reach), Some(Of::Peer)) => format!("{reach:.2} peer"),
            (Some(reach), _) => format!("{reach:.2}"),
            (None, _) => "-".to_owned(),
        }
    }
}

/// Three decimals are more than any of this repeats.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// A column: its heading, and the text of a row.
type Column<'a> = (String, Box<dyn Fn(&Row) -> String + 'a>);

/// Prints the rows of one group: a table for each run of rows with the same peers.
pub(crate) fn print(group: &str, rows: &[Row]) {
    for rows in rows.chunk_by(|a, b| names(a) == names(b)) {
        print_table(group, rows);
    }
}

/// Without the columns that no row fills.
fn print_table(group: &str, rows: &[Row]) {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let mut columns: Vec<Column<'_>> = vec![
        (group.to_owned(), Box::new(|row| row.case.clone())),
        ("unit".to_owned(), Box::new(|row| row.unit.to_owned())),
        ("esatto".to_owned(), Box::new(move |row| number(Some(row.value)))),
    ];
    for name in rows.first().map(names).unwrap_or_default() {
        columns.push((name.to_owned(), Box::new(move |row| number(row.value_of(name)))));
    }
    if rows.iter().any(|row| row.peer.is_some()) {
        columns.push(("/peer".to_owned(), Box::new(move |row| number(row.ratio))));
    }
    if rows.iter().any(|row| row.floor.is_some()) {
        columns.push(("floor".to_owned(), Box::new(move |row| number(row.floor))));
        columns.push(("/floor".to_owned(), Box::new(move |row| number(row.floor_ratio))));
    }
    if rows.iter().any(|row| row.reach.is_some()) {
        let yes_or_no = |holds| if holds { "yes" } else { "NO" };
        columns.push(("reach".to_owned(), Box::new(Row::reach_text)));
        columns.push(("holds".to_owned(), Box::new(move |row| row.holds.map_or("-", yes_or_no).to_owned())));
    }
    println!();
    let widths: Vec<usize> = columns
        .iter()
        .map(|(heading, text)| {
            rows.iter().map(|row| text(row).chars().count()).max().unwrap_or(0).max(heading.chars().count())
        })
        .collect();
    let line = |cells: Vec<String>| {
        let padded = cells.iter().zip(&widths).enumerate().map(|(index, (cell, &width))| {
            // Words to the left, numbers to the right.
            if index < 2 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        println!("{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    };
    line(columns.iter().map(|(heading, _)| heading.clone()).collect());
    for row in rows {
        line(columns.iter().map(|(_, text)| text(row)).collect());
    }
}

/// The peers of a row.
fn names(row: &Row) -> Vec<&str> {
    row.peers.iter().map(|peer| peer.name.as_str()).collect()
}

/// Writes the rows as a JSON array.
pub(crate) fn write_json(file: &Path, rows: &[Row]) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(rows).map_err(|error| error.to_string())?;
    text.push('\n');
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
