//! Subqueries that are arguments of table functions: `ancestors((select max(id) from slice))`.

use core::ops::ControlFlow;

use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Query, Statement, TableFactor, TableFunctionArgs, Value, VisitMut as _,
    VisitorMut,
};

use crate::syntax::{number, text, without_parentheses};

/// Returns the subqueries, in the order of the statement.
pub(crate) fn subqueries(statement: &mut Statement) -> Vec<Query> {
    let mut found = Vec::new();
    visit(statement, &mut |arg| {
        if let Expr::Subquery(query) = without_parentheses(arg) {
            found.push((**query).clone());
        }
        true
    });
    found
}

/// Replaces the first subquery by its value.
pub(crate) fn replace_first(statement: &mut Statement, value: &ScalarValue) {
    visit(statement, &mut |arg| {
        let is_subquery = matches!(without_parentheses(arg), Expr::Subquery(_));
        if is_subquery {
            *arg = match value {
                ScalarValue::Int64(Some(value)) => number(*value),
                value if value.is_null() => Expr::value(Value::Null),
                value => text(&value.to_string()),
            };
        }
        !is_subquery
    });
}

/// Calls a function for each argument of table functions, until it returns false.
fn visit(statement: &mut Statement, each: &mut dyn FnMut(&mut Expr) -> bool) {
    let _broken_or_not = statement.visit(&mut Arguments(each));
}

struct Arguments<'f>(&'f mut dyn FnMut(&mut Expr) -> bool);

impl VisitorMut for Arguments<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { args: Some(TableFunctionArgs { args, .. }), .. } = factor else {
            return ControlFlow::Continue(());
        };
        for arg in args {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg
                && !(self.0)(arg)
            {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}
