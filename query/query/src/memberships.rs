//! `x IN (SELECT …)` beside other conditions, where NULL must not become false.
//!
//! DataFusion turns such a condition into a join that marks the rows with a match. The mark is
//! false where SQL says NULL: if `x` is NULL, or if there is no match and a value of the subquery
//! is NULL. So `a OR x NOT IN (SELECT …)` would return rows that it must not. Conditions that stand
//! alone, or between `AND`, are right: they become joins that know of NULL.

use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, ExprSchema as _, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, ExprSchemable as _, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit, when,
};
use datafusion::scalar::ScalarValue;

/// Rewrites the conditions of a plan, and of the subqueries in it.
pub(crate) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let is_asked = |plan: &LogicalPlan| {
        let mut found = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Filter(filter) = node {
                found |= filter.predicate.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_))))?;
            }
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok::<_, datafusion::common::DataFusionError>(found)
    };
    if !is_asked(&plan)? {
        return Ok(plan);
    }
    let rewritten = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            let parts = split_conjunction_owned(predicate).into_iter().map(|part| part_of_condition(part, &input));
            let predicate = conjunction(parts.collect::<Result<Vec<Expr>>>()?).unwrap_or_else(|| lit(true));
            Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(predicate, input)?)))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(rewritten.data)
}

/// Rewrites a condition between `AND`.
fn part_of_condition(part: Expr, input: &LogicalPlan) -> Result<Expr> {
    let is_alone = match &part {
        Expr::InSubquery(membership) => !membership.negated || is_set_for_all(membership),
        Expr::Not(inner) => match &**inner {
            Expr::InSubquery(membership) => membership.negated || is_set_for_all(membership),
            _ => false,
        },
        _ => false,
    };
    if is_alone {
        return Ok(part);
    }
    let excludes = match &part {
        Expr::InSubquery(_) => true,
        Expr::Not(inner) => matches!(**inner, Expr::InSubquery(_)),
        _ => false,
    };
    let rewritten = part.transform_up(|expr| match expr {
        Expr::InSubquery(membership) => match with_null(&membership, input, excludes)? {
            Some(expr) => Ok(Transformed::yes(expr)),
            None => Ok(Transformed::no(Expr::InSubquery(membership))),
        },
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(rewritten.data)
}

/// True if the subquery has the same rows for each row outside, whose value differs. Only then the
/// join that knows of NULL is right: it takes NULL for unknown even if the set of a row is empty,
/// and it needs a column.
fn is_set_for_all(membership: &InSubquery) -> bool {
    membership.subquery.outer_ref_columns.is_empty() && !membership.expr.column_refs().is_empty()
}

/// Returns an expression that is NULL where `x IN (SELECT …)` is; `None` if it never is, unless the
/// condition `excludes` rows: the join that knows of NULL would take NULL in a condition on the
/// outer query for a value that is unknown.
fn with_null(membership: &InSubquery, input: &LogicalPlan, excludes: bool) -> Result<Option<Expr>> {
    let InSubquery { expr: value, subquery, negated } = membership;
    let column = Expr::Column(Column::from(subquery.subquery.schema().qualified_field(0)));
    let is_nullable = value.nullable(input.schema())? || column.nullable(subquery.subquery.schema())?;
    let is_plain =
        !value.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_))))?;
    if !is_plain || !(is_nullable || excludes) {
        return Ok(None);
    }
    // The value as a subquery sees it.
    let mut outer = subquery.outer_ref_columns.clone();
    let seen = value.as_ref().clone().transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = input.schema().field_from_column(&column)?;
            let reference = Expr::OuterReferenceColumn(std::sync::Arc::clone(field), column);
            if !outer.contains(&reference) {
                outer.push(reference.clone());
            }
            Ok(Transformed::yes(reference))
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    let exists = |condition: Option<Expr>, outer: &[Expr]| -> Result<Expr> {
        let plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
        let plan = match condition {
            Some(condition) => plan.filter(condition)?,
            None => plan,
        };
        let subquery = std::sync::Arc::new(plan.build()?);
        let spans = membership.subquery.spans.clone();
        let subquery = Subquery { subquery, outer_ref_columns: outer.to_vec(), spans };
        Ok(Expr::Exists(Exists { subquery, negated: false }))
    };
    let own = &subquery.outer_ref_columns;
    let is_found = exists(Some(column.clone().eq(seen.data)), &outer)?;
    if !is_nullable {
        return Ok(Some(if *negated { Expr::Not(Box::new(is_found)) } else { is_found }));
    }
    let is_unknown =
        (value.as_ref().clone().is_null().and(exists(None, own)?)).or(exists(Some(column.is_null()), own)?);
    let mut choice = when(is_found, lit(!negated)).when(is_unknown, lit(ScalarValue::Boolean(None)));
    Ok(Some(choice.otherwise(lit(*negated))?))
}
