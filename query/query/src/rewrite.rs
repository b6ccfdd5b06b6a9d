//! Rewriting of statements from SQLite's dialect to DataFusion's, where the syntax alone tells how.

use core::ops::ControlFlow;
use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, Statement, TableWithJoins, UnaryOperator, Value,
    VisitMut as _, VisitorMut,
};

use crate::set_operations;
use crate::syntax::{
    call, case, cast, divides, function_name, is_truth, number, plain_args, text, without_parentheses,
};

/// Rewrites a statement.
pub(crate) fn rewrite(statement: &mut Statement) {
    let _unbroken = statement.visit(&mut Rewriter);
}

struct Rewriter;

impl VisitorMut for Rewriter {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        rewrite_expr(expr);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        set_operations::rewrite(&mut query.body);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        name_twins(&mut select.projection);
        for condition in [&mut select.selection, &mut select.having].into_iter().flatten() {
            make_truth(condition);
        }
        for TableWithJoins { joins, .. } in &mut select.from {
            joins.iter_mut().filter_map(|join| condition_of_join(&mut join.join_operator)).for_each(make_truth);
        }
        ControlFlow::Continue(())
    }
}

/// Names the expressions of the outermost select list by their text, as SQLite does.
pub(crate) fn name_columns(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let SetExpr::Select(select) = &mut *query.body else { return };
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
        {
            let alias = Ident::with_quote('"', expr.to_string());
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
    name_twins(&mut select.projection);
}

/// Gives columns with the same name other names, with numbers. DataFusion allows each name once.
fn name_twins(items: &mut [SelectItem]) {
    let mut seen: HashMap<String, usize> = HashMap::new();
    for item in items {
        let (expr, name) = match item {
            SelectItem::UnnamedExpr(expr) => (expr.clone(), expr.to_string()),
            SelectItem::ExprWithAlias { expr, alias } => (expr.clone(), alias.value.clone()),
            _ => continue,
        };
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            let alias = Ident::with_quote('"', format!("{name}:{}", *times - 1));
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
}

fn condition_of_join(join: &mut JoinOperator) -> Option<&mut Expr> {
    use JoinOperator as Join;
    match join {
        Join::Join(JoinConstraint::On(on))
        | Join::Inner(JoinConstraint::On(on))
        | Join::Left(JoinConstraint::On(on))
        | Join::LeftOuter(JoinConstraint::On(on))
        | Join::Right(JoinConstraint::On(on))
        | Join::RightOuter(JoinConstraint::On(on))
        | Join::FullOuter(JoinConstraint::On(on)) => Some(on),
        _ => None,
    }
}

/// Makes a truth value of any value, if it is not one. SQLite takes numbers for truth values.
fn make_truth(expr: &mut Expr) {
    if !is_truth(expr) {
        let inner = core::mem::replace(expr, Expr::value(Value::Null));
        *expr = call("truth", vec![inner]);
    }
}

fn rewrite_expr(expr: &mut Expr) {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            make_truth(left);
            make_truth(right);
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => make_truth(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr: inner } if !matches!(**inner, Expr::Value(_)) => {
            // DataFusion takes `-(a & b)` for `-a | -b`.
            let inner = core::mem::replace(&mut **inner, Expr::value(Value::Null));
            let (left, right) = (Box::new(number(0)), Box::new(inner));
            *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Minus, right }));
        }
        Expr::BinaryOp { op, right, .. } if divides(op) => make_divisor(right),
        Expr::Case { operand: None, conditions, .. } => {
            conditions.iter_mut().for_each(|when| make_truth(&mut when.condition));
        }
        // SQLite's LIKE ignores the case.
        Expr::Like { negated, any, expr: value, pattern, escape_char } => {
            let nothing = || Box::new(Expr::value(Value::Null));
            *expr = Expr::ILike {
                negated: *negated,
                any: *any,
                expr: core::mem::replace(value, nothing()),
                pattern: core::mem::replace(pattern, nothing()),
                escape_char: escape_char.take(),
            };
        }
        Expr::Substring { expr: value, substring_from: Some(from), substring_for, .. } => {
            // Positions from the end.
            if let Expr::UnaryOp { op: UnaryOperator::Minus, expr: from } = &**from {
                let end = call("right", vec![(**value).clone(), (**from).clone()]);
                *expr = match substring_for {
                    Some(length) => call("left", vec![end, (**length).clone()]),
                    None => end,
                };
            }
        }
        Expr::Cast { data_type, .. } => *data_type = wide_type(data_type),
        Expr::Function(function) => {
            if let Some(other) = rewrite_function(function) {
                *expr = other;
            } else if function_name(function).is_some_and(|name| GIVE_UNSIGNED.contains(&&*name)) {
                *expr = cast(expr.clone(), DataType::BigInt(None));
            }
        }
        _ => {}
    }
}

/// Functions of windows whose numbers have no sign in DataFusion: differences of them would be
/// decimal numbers.
const GIVE_UNSIGNED: [&str; 4] = ["row_number", "rank", "dense_rank", "ntile"];

/// A division by zero is NULL in SQLite, and an error in DataFusion.
fn make_divisor(divisor: &mut Expr) {
    let is_safe = match without_parentheses(divisor) {
        Expr::Value(value) => {
            matches!(&value.value, Value::Number(digits, _) if digits.parse().is_ok_and(|number: f64| number != 0.0))
        }
        _ => false,
    };
    if !is_safe {
        let inner = core::mem::replace(divisor, Expr::value(Value::Null));
        *divisor = call("nullif", vec![inner, number(0)]);
    }
}

/// Returns the type of 64 bits for a type of numbers, as SQLite's are.
fn wide_type(data_type: &DataType) -> DataType {
    use DataType as Type;
    match data_type {
        Type::Int(_) | Type::Integer(_) | Type::TinyInt(_) | Type::SmallInt(_) | Type::MediumInt(_) | Type::Int8(_) => {
            Type::BigInt(None)
        }
        Type::Real | Type::Float(_) | Type::Float4 | Type::Float8 | Type::Numeric(ExactNumberInfo::None) => {
            Type::Double(ExactNumberInfo::None)
        }
        other => other.clone(),
    }
}

/// Gives a condition the type of a number, as it has in SQLite.
fn make_number(function: &mut Function) {
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = &mut list.args[..]
        && is_truth(arg)
    {
        let inner = core::mem::replace(arg, Expr::value(Value::Null));
        *arg = cast(inner, DataType::BigInt(None));
    }
}

fn rewrite_function(function: &mut Function) -> Option<Expr> {
    if let Some(filter) = &mut function.filter {
        make_truth(filter);
    }
    let name = function_name(function)?;
    match &*name {
        "sum" | "avg" | "total" | "min" | "max" => make_number(function),
        _ => {}
    }
    let rename = |function: &mut Function, name: &str| {
        if let Expr::Function(renamed) = call(name, Vec::new()) {
            function.name = renamed.name;
        }
    };
    if let ("count", FunctionArguments::List(list)) = (&*name, &mut function.args)
        && list.args.is_empty()
    {
        list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
        return None;
    }
    let args: Vec<Expr> = plain_args(function)?.into_iter().cloned().collect();
    match (&*name, &args[..]) {
        ("iif" | "if", [condition, then, rest @ ..]) if rest.len() < 2 => {
            let mut condition = condition.clone();
            make_truth(&mut condition);
            let otherwise = rest.first().cloned().unwrap_or_else(|| Expr::value(Value::Null));
            Some(case(condition, then.clone(), otherwise))
        }
        ("min" | "max", [_, _, ..]) => {
            let choice = call(if name == "min" { "least" } else { "greatest" }, args.clone());
            // NULL wins in SQLite, and loses in DataFusion.
            let is_null = args.iter().map(|arg| Expr::IsNull(Box::new(arg.clone())));
            let has_null = is_null.reduce(|left, right| Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::Or,
                right: Box::new(right),
            })?;
            Some(case(has_null, Expr::value(Value::Null), choice))
        }
        ("total", [_]) => {
            rename(function, "sum");
            let sum = cast(Expr::Function(function.clone()), wide_type(&DataType::Real));
            Some(call("coalesce", vec![sum, Expr::value(Value::Number("0.0".to_owned(), false))]))
        }
        ("group_concat", [_] | [_, _]) => {
            rename(function, "string_agg");
            let FunctionArguments::List(list) = &mut function.args else { return None };
            list.args.truncate(1);
            let value = cast(args[0].clone(), DataType::Text);
            list.args[0] = FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
            let separator = args.get(1).cloned().unwrap_or_else(|| text(","));
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(separator)));
            None
        }
        ("char", [_, ..]) => {
            let chars: Vec<Expr> = args.iter().map(|arg| call("chr", vec![arg.clone()])).collect();
            Some(if chars.len() == 1 { chars[0].clone() } else { call("concat", chars) })
        }
        (conversion, [value]) if time_unit(conversion).is_some() => {
            let (op, unit) = time_unit(conversion)?;
            let (left, right) = (Box::new(value.clone()), Box::new(number(unit)));
            Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op, right })))
        }
        ("unicode", [value]) => Some(call("ascii", vec![value.clone()])),
        ("str_split", [value, separator, position]) => {
            let from_one = Expr::BinaryOp {
                left: Box::new(position.clone()),
                op: BinaryOperator::Plus,
                right: Box::new(number(1)),
            };
            let part = call("split_part", vec![value.clone(), separator.clone(), from_one]);
            // No such part: NULL.
            Some(call("nullif", vec![part, text("")]))
        }
        ("format", _) => {
            rename(function, "printf");
            None
        }
        _ => None,
    }
}

/// Returns the operator and the nanoseconds of a function of the standard library that converts
/// durations, such as `time_to_ms`.
fn time_unit(function: &str) -> Option<(BinaryOperator, i64)> {
    let (op, unit) = match (function.strip_prefix("time_to_"), function.strip_prefix("time_from_")) {
        (Some(unit), _) => (BinaryOperator::Divide, unit),
        (_, Some(unit)) => (BinaryOperator::Multiply, unit),
        _ => return None,
    };
    let nanoseconds = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "hours" => 3_600_000_000_000,
        "days" => 86_400_000_000_000,
        _ => return None,
    };
    Some((op, nanoseconds))
}
