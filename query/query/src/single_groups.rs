//! Conditions without a column above an aggregate without groups, which has one row for any rows.
//!
//! DataFusion moves a condition below an aggregate if its columns are groups, and so also one
//! without columns: `(SELECT count(*) FROM a) > 0`, or `c = 3` if the column `c` is a constant.
//! Below an aggregate without groups it leaves out the rows that are counted, but the row of the
//! count stays. So it does with the condition of a join that it finds to be false. A limit of one
//! row between both keeps the condition above.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan, LogicalPlanBuilder};

/// Keeps such conditions where they are, in a plan and in the subqueries in it.
pub(crate) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Filter(filter) => {
            let is_foreign = split_conjunction(&filter.predicate).into_iter().any(has_only_subqueries);
            if !(is_foreign || has_constant(&filter.input)?) || refers_outside(&filter.input)? {
                return Ok(Transformed::no(node));
            }
            let input = limited(&filter.input)?;
            let filter = Filter::try_new(filter.predicate.clone(), input.data.into())?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        LogicalPlan::Join(join) if join.filter.is_some() => {
            if refers_outside(&join.left)? || refers_outside(&join.right)? {
                return Ok(Transformed::no(node));
            }
            let (left, right) = (limited(&join.left)?, limited(&join.right)?);
            if !left.transformed && !right.transformed {
                return Ok(Transformed::no(node));
            }
            let mut join = join.clone();
            (join.left, join.right) = (left.data.into(), right.data.into());
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(rewritten.data)
}

/// Puts a limit above the aggregates without groups of a plan.
fn limited(plan: &LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.clone().transform_down(|node| match node {
        LogicalPlan::Aggregate(Aggregate { ref group_expr, .. }) if group_expr.is_empty() => {
            let limited = LogicalPlanBuilder::from(node).limit(0, Some(1))?.build()?;
            Ok(Transformed::new(limited, true, TreeNodeRecursion::Jump))
        }
        node => Ok(Transformed::no(node)),
    })
}

/// Returns whether a condition has no column, and a value that is known only later.
fn has_only_subqueries(condition: &Expr) -> bool {
    let is_later = |expr: &Expr| {
        let is_subquery = matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_));
        Ok(is_subquery || matches!(expr, Expr::OuterReferenceColumn(..)))
    };
    condition.column_refs().is_empty() && condition.exists(is_later).unwrap_or(true)
}

/// Returns whether a plan has a column that is a constant: a condition on it is one without
/// columns.
fn has_constant(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        if let LogicalPlan::Projection(projection) = node {
            found |= projection.expr.iter().any(|expr| expr.column_refs().is_empty());
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Returns whether a plan has columns of a row outside. A limit would hide them from DataFusion.
fn refers_outside(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|expr| Ok(matches!(expr, Expr::OuterReferenceColumn(..))))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}
