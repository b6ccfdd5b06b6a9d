//! Arrows between slices.

use std::collections::HashMap;

use crate::tables::{FlowRow, Row, Tables, signed};

/// Flows that are open: the last slice of each, by machine and number.
#[derive(Debug, Default)]
pub(crate) struct Flows(HashMap<(u32, u64), Row>);

impl Flows {
    /// Continues a flow, or begins it.
    pub(crate) fn step(&mut self, tables: &mut Tables, machine: u32, id: u64, slice: Row) {
        if let Some(before) = self.0.insert((machine, id), slice) {
            add(tables, id, before, slice);
        }
    }

    /// Ends a flow, if it is open.
    pub(crate) fn end(&mut self, tables: &mut Tables, machine: u32, id: u64, slice: Row, is_last: bool) {
        let before = if is_last { self.0.remove(&(machine, id)) } else { self.0.get(&(machine, id)).copied() };
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
