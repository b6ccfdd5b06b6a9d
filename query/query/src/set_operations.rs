//! `EXCEPT ALL` and `INTERSECT ALL`, where each row counts as often as it is there.
//!
//! DataFusion keeps or drops all equal rows at once. With the number of the copy beside each row,
//! rows differ, and the operation without `ALL` is right.

use core::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, TableFactor, Visit as _, Visitor,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::dialect::TraceDialect;

/// Rewrites a set operation, if it is one of these, and those inside of it. Its parts must name
/// their columns.
pub(crate) fn rewrite(expr: &mut SetExpr) {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = expr else { return };
    rewrite(left);
    rewrite(right);
    if !counts_copies(*op, *set_quantifier) {
        return;
    }
    let Some(names) = names(left) else { return };
    let columns: Vec<String> = (0..names.len()).map(|at| format!("\"esatto {at}\"")).collect();
    let list = columns.join(", ");
    let part = format!(
        "select *, row_number() over (partition by {list}) as \"esatto copy\" from (select 1) as \"esatto part\"({list})"
    );
    let named: Vec<String> = columns
        .iter()
        .zip(&names)
        .map(|(column, name)| format!("{column} as \"{}\"", name.replace('"', "\"\"")))
        .collect();
    let sql = format!("select {} from ({part} {op} {part}) as \"esatto parts\"", named.join(", "));
    let Some(mut whole) = parse(&sql) else { return };
    let Some(SetExpr::SetOperation { left: first, right: second, .. }) = subquery(&mut whole) else { return };
    if let (Some(first), Some(second)) = (subquery(first), subquery(second)) {
        core::mem::swap(first, left);
        core::mem::swap(second, right);
        *expr = whole;
    }
}

fn counts_copies(op: SetOperator, quantifier: SetQuantifier) -> bool {
    quantifier == SetQuantifier::All && matches!(op, SetOperator::Except | SetOperator::Intersect)
}

/// Returns the name of such an operation that is left in a statement, because its columns have no
/// names.
pub(crate) fn left(statement: &Statement) -> Option<String> {
    match statement.visit(&mut Left) {
        ControlFlow::Break(op) => Some(op),
        ControlFlow::Continue(()) => None,
    }
}

struct Left;

impl Visitor for Left {
    type Break = String;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        fn find(expr: &SetExpr) -> ControlFlow<String> {
            let SetExpr::SetOperation { op, set_quantifier, left, right } = expr else {
                return ControlFlow::Continue(());
            };
            if counts_copies(*op, *set_quantifier) {
                return ControlFlow::Break(format!("{op} ALL"));
            }
            find(left)?;
            find(right)
        }
        find(&query.body)
    }
}

fn parse(sql: &str) -> Option<SetExpr> {
    match Parser::parse_sql(&TraceDialect, sql).ok()?.pop()? {
        Statement::Query(query) => Some(*query.body),
        _ => None,
    }
}

/// The query that a select reads.
fn subquery(expr: &mut SetExpr) -> Option<&mut SetExpr> {
    let SetExpr::Select(select) = expr else { return None };
    match &mut select.from.first_mut()?.relation {
        TableFactor::Derived { subquery, .. } => Some(&mut subquery.body),
        _ => None,
    }
}

/// Names of the columns; `None` if they are not all there.
fn names(expr: &SetExpr) -> Option<Vec<String>> {
    match expr {
        SetExpr::Select(select) => select.projection.iter().map(name).collect(),
        SetExpr::Query(query) => names(&query.body),
        SetExpr::SetOperation { left, .. } => names(left),
        _ => None,
    }
}

fn name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(Expr::Identifier(ident)) => Some(ident.value.clone()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => Some(parts.last()?.value.clone()),
        SelectItem::UnnamedExpr(expr) => Some(expr.to_string()),
        _ => None,
    }
}
