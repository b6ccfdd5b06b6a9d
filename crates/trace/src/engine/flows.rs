//! Arrows between slices.

use crate::string_table::Symbol;
use crate::tables::{FlowRow, Row, Tables, signed};
use hashbrown::HashMap;

/// Flows that are open: the last slice of each, by machine and number.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    open: HashMap<(u32, u64), Row>,
    /// Numbers of flows of the older form, which their ids, categories and names tell apart.
    numbers: HashMap<(u64, Option<Symbol>, Option<Symbol>), u64>,
}

impl Flows {
    /// Returns the number of a flow of the older form.
    pub(crate) fn number_of(&mut self, id: u64, category: Option<Symbol>, name: Option<Symbol>) -> u64 {
        let next = self.numbers.len() as u64;
        *self.numbers.entry((id, category, name)).or_insert(next)
    }

    /// Begins a flow, unless it is open.
    pub(crate) fn begin(&mut self, machine: u32, id: u64, slice: Row) {
        self.open.entry((machine, id)).or_insert(slice);
    }

    /// Continues a flow, if it is open.
    pub(crate) fn continue_open(&mut self, tables: &mut Tables, machine: u32, id: u64, slice: Row) {
        if let Some(last) = self.open.get_mut(&(machine, id)) {
            let before = core::mem::replace(last, slice);
            add(tables, id, before, slice);
        }
    }

    /// Continues a flow, or begins it.
    pub(crate) fn step(&mut self, tables: &mut Tables, machine: u32, id: u64, slice: Row) {
        if let Some(before) = self.open.insert((machine, id), slice) {
            add(tables, id, before, slice);
        }
    }

    /// Ends a flow, if it is open.
    pub(crate) fn end(&mut self, tables: &mut Tables, machine: u32, id: u64, slice: Row, is_last: bool) {
        let key = (machine, id);
        let before = if is_last { self.open.remove(&key) } else { self.open.get(&key).copied() };
        if let Some(before) = before {
            add(tables, id, before, slice);
        }
    }
}

fn add(tables: &mut Tables, id: u64, before: Row, after: Row) {
    let began = |slice: Row| tables.slice.ts.get(slice.index());
    let (slice_out, slice_in) = if began(after) < began(before) { (after, before) } else { (before, after) };
    tables.flow.push(FlowRow { slice_out, slice_in, trace_id: signed(id) });
}
