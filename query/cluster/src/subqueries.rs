//! Subqueries that give a value, and depend on nothing outside of them.
//!
//! DataFusion has such a value in a cell that the whole plan shares, which tasks on several
//! machines cannot. Its other way, a join, refuses some statements. So each runs first, as a
//! statement of its own, and its value takes its place.

use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use datafusion::physical_plan::collect;

/// Replaces the subqueries of a plan by their values.
pub(crate) async fn evaluate(plan: &LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let found = find(plan)?;
    if found.is_empty() {
        return Ok(plan.clone());
    }
    let mut values = Vec::with_capacity(found.len());
    for subquery in found {
        let value = value(&subquery, state).await?;
        values.push((subquery, value));
    }
    let replace = |expr: Expr| match &expr {
        Expr::ScalarSubquery(subquery) => match values.iter().find(|(own, _)| own == subquery) {
            Some((_, value)) => Ok(Transformed::yes(Expr::Literal(value.clone(), None))),
            None => Ok(Transformed::no(expr)),
        },
        _ => Ok(Transformed::no(expr)),
    };
    let plan = plan.clone().transform_up(|node| {
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            Ok(expr.transform_up(replace)?.update_data(|expr| name.restore(expr)))
        })
    })?;
    plan.data.recompute_schema()
}

/// Returns the subqueries of a plan, each once.
fn find(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr
                    && subquery.outer_ref_columns.is_empty()
                    && !found.contains(subquery)
                {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// Runs a subquery. Without a row its value is NULL.
async fn value(subquery: &Subquery, state: &SessionState) -> Result<ScalarValue> {
    // The plan is optimized already, as a part of the whole.
    let plan = state.query_planner().create_physical_plan(&subquery.subquery, state).await?;
    let batches = collect(plan, state.task_ctx()).await?;
    let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
    match batches.iter().find(|batch| batch.num_rows() > 0) {
        _ if rows > 1 => exec_err!("a subquery that gives a value has {rows} rows; add LIMIT 1, or an aggregate"),
        Some(batch) => ScalarValue::try_from_array(batch.column(0), 0),
        None => ScalarValue::try_from(subquery.subquery.schema().field(0).data_type()),
    }
}
