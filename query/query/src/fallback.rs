//! Rewriting of statements that DataFusion has refused, but SQLite accepts.
//!
//! Each of these is tried only after an error that it can mend, because it depends on names that
//! only the planner knows.

use core::ops::ControlFlow;
use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, GroupByExpr, LimitClause,
    OrderByExpr, OrderByKind, OrderByOptions, Query, Select, SelectItem, SetExpr, Statement, Value, VisitMut as _,
    VisitorMut,
};

use crate::syntax::{function, function_name, plain_args, text};

/// Replaces a name that is no column: by the expression of the select list that has this name, or
/// by a text if the name is in double quotes. Returns whether there was any.
pub(crate) fn replace_name(statement: &mut Statement, name: &str) -> bool {
    let mut aliases = Aliases { name, is_changed: false };
    let _unbroken = statement.visit(&mut aliases);
    if !aliases.is_changed {
        let mut quoted = Quoted { name, is_changed: false };
        let _unbroken = statement.visit(&mut quoted);
        return quoted.is_changed;
    }
    true
}

struct Aliases<'n> {
    name: &'n str,
    is_changed: bool,
}

impl VisitorMut for Aliases<'_> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let expr = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value.eq_ignore_ascii_case(self.name) => Some(expr),
            _ => None,
        });
        let Some(expr) = expr.cloned() else { return ControlFlow::Continue(()) };
        let mut replace = Replace { name: self.name, expr, is_changed: false };
        if let Some(selection) = &mut select.selection {
            let _unbroken = selection.visit(&mut replace);
        }
        self.is_changed |= replace.is_changed;
        ControlFlow::Continue(())
    }
}

struct Replace<'n> {
    name: &'n str,
    expr: Expr,
    is_changed: bool,
}

impl VisitorMut for Replace<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Identifier(ident) if ident.value.eq_ignore_ascii_case(self.name)) {
            *expr = Expr::Nested(Box::new(self.expr.clone()));
            self.is_changed = true;
        }
        ControlFlow::Continue(())
    }
}

struct Quoted<'n> {
    name: &'n str,
    is_changed: bool,
}

impl VisitorMut for Quoted<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr
            && ident.quote_style == Some('"')
            && ident.value == self.name
        {
            *expr = text(self.name);
            self.is_changed = true;
        }
        ControlFlow::Continue(())
    }
}

/// Takes a value of any row for columns that are neither grouped nor aggregated. If the only
/// aggregates are `min` or `max` of one value, it is that of the row with it. Returns whether there
/// was any.
pub(crate) fn aggregate_bare_columns(statement: &mut Statement, aggregates: &HashSet<String>) -> bool {
    let mut bare = BareColumns { aggregates, is_changed: false };
    let _unbroken = statement.visit(&mut bare);
    bare.is_changed
}

struct BareColumns<'a> {
    aggregates: &'a HashSet<String>,
    is_changed: bool,
}

impl VisitorMut for BareColumns<'_> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let GroupByExpr::Expressions(groups, _) = &select.group_by else { return ControlFlow::Continue(()) };
        let mut groups = groups.clone();
        let mut found = FindAggregates { aggregates: self.aggregates, found: Vec::new() };
        for item in &mut select.projection {
            let _unbroken = item.visit(&mut found);
        }
        if let Some(having) = &mut select.having {
            let _unbroken = having.visit(&mut found);
        }
        if groups.is_empty() && found.found.is_empty() {
            return ControlFlow::Continue(());
        }
        // Numbers and names of the select list stand for its expressions.
        for group in groups.clone() {
            match &group {
                Expr::Value(value) => {
                    if let Value::Number(digits, _) = &value.value
                        && let Some(item) = digits.parse::<usize>().ok().and_then(|at| at.checked_sub(1))
                    {
                        groups.extend(select.projection.get(item).and_then(item_expr).cloned());
                    }
                }
                Expr::Identifier(ident) => {
                    let named = |item: &&SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == ident.value);
                    groups.extend(select.projection.iter().find(named).and_then(item_expr).cloned());
                }
                _ => {}
            }
        }
        let order = extremum(&found.found);
        let mut wrap = WrapColumns { groups: &groups, aggregates: self.aggregates, order, is_changed: false };
        for item in &mut select.projection {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = match &*expr {
                        Expr::Identifier(ident) => Some(ident.clone()),
                        Expr::CompoundIdentifier(idents) => idents.last().cloned(),
                        _ => None,
                    };
                    let before = expr.clone();
                    wrap.expr(expr);
                    if let (Some(alias), true) = (name, *expr != before) {
                        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                    }
                }
                SelectItem::ExprWithAlias { expr, .. } => wrap.expr(expr),
                _ => {}
            }
        }
        if let Some(having) = &mut select.having {
            wrap.expr(having);
        }
        self.is_changed |= wrap.is_changed;
        ControlFlow::Continue(())
    }
}

fn item_expr(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    }
}

struct FindAggregates<'a> {
    aggregates: &'a HashSet<String>,
    found: Vec<Function>,
}

impl VisitorMut for FindAggregates<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr
            && function.over.is_none()
            && function_name(function).is_some_and(|name| self.aggregates.contains(&name))
        {
            self.found.push(function.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Returns the order in which the row of the only `min` or `max` is the first.
fn extremum(aggregates: &[Function]) -> Option<OrderByExpr> {
    let mut extrema: Vec<(&Expr, bool)> = Vec::new();
    for aggregate in aggregates {
        let is_max = match &*function_name(aggregate)? {
            "min" => false,
            "max" => true,
            _ => return None,
        };
        let arg = *plain_args(aggregate)?.first()?;
        if !extrema.contains(&(arg, is_max)) {
            extrema.push((arg, is_max));
        }
    }
    let [(expr, is_max)] = extrema[..] else { return None };
    let options = OrderByOptions { asc: Some(!is_max), nulls_first: Some(false) };
    Some(OrderByExpr { expr: expr.clone(), options, with_fill: None })
}

struct WrapColumns<'a> {
    groups: &'a [Expr],
    aggregates: &'a HashSet<String>,
    order: Option<OrderByExpr>,
    is_changed: bool,
}

impl WrapColumns<'_> {
    fn is_grouped(&self, expr: &Expr) -> bool {
        self.groups
            .iter()
            .any(|group| group == expr || last_name(group).is_some() && last_name(group) == last_name(expr))
    }

    /// Wraps the columns of an expression, from the outside to the inside.
    fn expr(&mut self, expr: &mut Expr) {
        if self.is_grouped(expr) {
            return;
        }
        match expr {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let mut first = function("first_value", vec![expr.clone()]);
                if let (FunctionArguments::List(list), Some(order)) = (&mut first.args, &self.order) {
                    list.clauses.push(FunctionArgumentClause::OrderBy(vec![order.clone()]));
                }
                *expr = Expr::Function(first);
                self.is_changed = true;
            }
            Expr::Function(function) => {
                let is_aggregate = function_name(function).is_some_and(|name| self.aggregates.contains(&name));
                if is_aggregate && function.over.is_none() {
                    return;
                }
                if let FunctionArguments::List(list) = &mut function.args {
                    for arg in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg {
                            self.expr(arg);
                        }
                    }
                }
            }
            Expr::BinaryOp { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            Expr::UnaryOp { expr, .. }
            | Expr::Nested(expr)
            | Expr::IsNull(expr)
            | Expr::IsNotNull(expr)
            | Expr::Cast { expr, .. }
            | Expr::InList { expr, .. }
            | Expr::Between { expr, .. }
            | Expr::ILike { expr, .. } => self.expr(expr),
            Expr::Case { operand, conditions, else_result, .. } => {
                operand.iter_mut().chain(else_result).for_each(|expr| self.expr(expr));
                for when in conditions {
                    self.expr(&mut when.condition);
                    self.expr(&mut when.result);
                }
            }
            _ => {}
        }
    }
}

fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(ident) => Some(&ident.value),
        Expr::CompoundIdentifier(idents) => idents.last().map(|ident| &*ident.value),
        _ => None,
    }
}

/// Takes the first row of correlated subqueries that give a value. Returns whether there was any.
pub(crate) fn aggregate_subqueries(statement: &mut Statement, aggregates: &HashSet<String>) -> bool {
    let mut subqueries = Subqueries { aggregates, is_changed: false };
    let _unbroken = statement.visit(&mut subqueries);
    subqueries.is_changed
}

struct Subqueries<'a> {
    aggregates: &'a HashSet<String>,
    is_changed: bool,
}

impl VisitorMut for Subqueries<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Subquery(query) = expr {
            self.is_changed |= take_first(query, self.aggregates).is_some();
        }
        ControlFlow::Continue(())
    }
}

fn take_first(query: &mut Query, aggregates: &HashSet<String>) -> Option<()> {
    let SetExpr::Select(select) = &mut *query.body else { return None };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty());
    let [item] = &mut select.projection[..] else { return None };
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else { return None };
    let mut found = FindAggregates { aggregates, found: Vec::new() };
    let _unbroken = expr.visit(&mut found);
    if is_grouped || !found.found.is_empty() || !skips_nothing(query.limit_clause.as_ref()) {
        return None;
    }
    let mut first = function("first_value", vec![expr.clone()]);
    // The order chooses the row.
    if let Some(order) = query.order_by.take()
        && let OrderByKind::Expressions(exprs) = order.kind
        && let FunctionArguments::List(list) = &mut first.args
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(exprs));
    }
    query.limit_clause = None;
    *expr = Expr::Function(first);
    Some(())
}

/// True if a query returns its first row, if there is any.
fn skips_nothing(limit: Option<&LimitClause>) -> bool {
    match limit {
        None => true,
        Some(LimitClause::LimitOffset { limit: Some(Expr::Value(limit)), offset: None, .. }) => {
            matches!(&limit.value, Value::Number(digits, _) if digits != "0")
        }
        Some(_) => false,
    }
}
