//! Functions of SQL that give tables.

mod flow_tree;
mod slice_tree;
mod span_join;

use std::sync::Arc;

use datafusion::catalog::{Session, TableFunctionImpl};
use datafusion::common::{Result, ScalarValue, internal_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::Expr;

use crate::lake_slices::TraceReader;
use crate::traces::Traces;

/// Returns all of them, with their names.
pub(crate) fn all(traces: &Arc<Traces>, has_trace_columns: bool) -> Vec<(&'static str, Arc<dyn TableFunctionImpl>)> {
    use flow_tree::{FlowTree, Way};
    use slice_tree::{Direction, SliceTree};
    use span_join::{Mode, SpanJoin};
    let slices = |direction| -> Arc<dyn TableFunctionImpl> { Arc::new(SliceTree::new(Arc::clone(traces), direction)) };
    let flows = |way| -> Arc<dyn TableFunctionImpl> { Arc::new(FlowTree::new(Arc::clone(traces), way)) };
    let spans = |mode| -> Arc<dyn TableFunctionImpl> { Arc::new(SpanJoin::new(mode, has_trace_columns)) };
    vec![
        ("ancestors", slices(Direction::Up)),
        ("ancestor_slice", slices(Direction::Up)),
        ("descendants", slices(Direction::Down)),
        ("descendant_slice", slices(Direction::Down)),
        ("flow_following", flows(Way::Following)),
        ("following_flow", flows(Way::Following)),
        ("flow_preceding", flows(Way::Preceding)),
        ("preceding_flow", flows(Way::Preceding)),
        ("directly_connected_flow", flows(Way::Direct)),
        ("span_join", spans(Mode::Inner)),
        ("span_left_join", spans(Mode::Left)),
        ("span_outer_join", spans(Mode::Outer)),
    ]
}

/// Returns the id that is the only argument; `None` if there are no arguments.
fn id_argument(function: &str, args: &[Expr]) -> Result<Option<i64>> {
    match args {
        [] => Ok(None),
        [Expr::Literal(ScalarValue::Int64(Some(id)), _)] => Ok(Some(*id)),
        // A subquery without a row: there is no such slice.
        [Expr::Literal(value, _)] if value.is_null() => Ok(Some(-1)),
        _ => plan_err!(
            "{function}() takes the id of a slice as a number or a subquery, or no argument: then it gives the rows of all \
             slices, with the slice in the column 'start_id', for a join"
        ),
    }
}

/// Returns a reader of the tables, if the traces are in a lake.
fn lake_reader(traces: &Traces, state: &dyn Session) -> Result<Option<TraceReader>> {
    let Some(lake) = traces.lake() else { return Ok(None) };
    match state.as_any().downcast_ref::<SessionState>() {
        Some(state) => Ok(Some(TraceReader::new(lake, state.clone()))),
        None => internal_err!("the session is none of DataFusion"),
    }
}
