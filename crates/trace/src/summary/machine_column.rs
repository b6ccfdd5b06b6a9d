//! Names of machines in tables.

use std::collections::BTreeMap;

use super::table::MAX_CELL;
use super::{MachineSummary, Summary};
use crate::machines::HOST;
use hashbrown::HashMap;

/// The first column of tables, if the trace has several machines.
pub(super) struct MachineColumn(Option<BTreeMap<u32, String>>);

impl MachineColumn {
    /// Names each machine as configs do. Machines without a name, or with the name of another one,
    /// have their number.
    pub(super) fn new(summary: &Summary) -> Self {
        if summary.machines.len() < 2 {
            return Self(None);
        }
        let names: Vec<String> = summary.machines.iter().map(name).collect();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for name in &names {
            *uses.entry(name).or_default() += 1;
        }
        let label = |(machine, name): (&MachineSummary, &String)| match name.as_str() {
            "" => (machine.id, machine.id.to_string()),
            shared if uses[shared] > 1 && machine.id != HOST => (machine.id, format!("{} {shared}", machine.id)),
            own => (machine.id, own.to_owned()),
        };
        Self(Some(summary.machines.iter().zip(&names).map(label).collect()))
    }

    /// Returns the name of a machine, or its number.
    pub(super) fn label(&self, machine: u32) -> String {
        let label = self.0.as_ref().and_then(|labels| labels.get(&machine));
        label.cloned().unwrap_or_else(|| machine.to_string())
    }

    /// Returns the headers of a table, with that of this column.
    pub(super) fn headers(&self, others: &[&'static str]) -> Vec<&'static str> {
        self.0.iter().map(|_| "machine").chain(others.iter().copied()).collect()
    }

    /// Returns the cells of a row, with that of this column.
    pub(super) fn cells(&self, machine: u32, others: impl IntoIterator<Item = String>) -> Vec<String> {
        let label = self.0.as_ref().map(|labels| labels.get(&machine).cloned().unwrap_or_default());
        label.into_iter().chain(others).collect()
    }

    /// Returns the cells of a row about a part of the row above.
    pub(super) fn continued(&self, others: impl IntoIterator<Item = String>) -> Vec<String> {
        self.0.iter().map(|_| String::new()).chain(others).collect()
    }
}

/// Returns the name of a machine, cut to the length of a cell because many rows may have it.
fn name(machine: &MachineSummary) -> String {
    machine.name().unwrap_or_default().chars().take(MAX_CELL).collect()
}
