//! States of tracks: intervals with a name, of which a track has one at a time.

use super::context::Context;
use crate::string_table::Symbol;
use crate::tables::{Arg, Row, StateRow};

/// Duration of a state that has not ended.
const PENDING: i64 = -1;

impl Context {
    /// Sets the state of a track. Without a name, the track has no state from then on. If the track
    /// has this state already, the arguments are added to it.
    pub(super) fn set_state(
        &mut self,
        track_id: Row,
        ts: i64,
        (category, value): (Option<Symbol>, Option<Symbol>),
        args: &mut Vec<Arg>,
    ) {
        let table = &mut self.tables.state;
        if let Some(&(row, current)) = self.current_states.0.get(&track_id) {
            let index = row.index();
            if value == Some(current) {
                if !args.is_empty() {
                    table.arg_set_id[index] = self.tables.args.extend(table.arg_set_id[index], args);
                }
                return;
            }
            let begin = table.ts.get(index);
            table.dur.set(index, ts.saturating_sub(begin));
            self.current_states.0.remove(&track_id);
        }
        if let Some(value) = value {
            let arg_set_id = self.tables.args.add(args);
            let row = table.push(StateRow { ts, dur: PENDING, track_id, category, value, arg_set_id });
            self.current_states.0.insert(track_id, (row, value));
        }
    }
}
