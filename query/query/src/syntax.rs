//! Short ways to build and to look at expressions of SQL.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, UnaryOperator, Value,
};

use crate::dialect::gives_truth;

/// Returns the call of a function.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function(name, args))
}

pub(crate) fn function(name: &str, args: Vec<Expr>) -> Function {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))).collect();
    Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

pub(crate) fn number(value: i64) -> Expr {
    Expr::value(Value::Number(value.to_string(), false))
}

pub(crate) fn text(value: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(value.to_owned()))
}

pub(crate) fn cast(expr: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
}

pub(crate) fn case(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: then }],
        else_result: Some(Box::new(otherwise)),
    }
}

/// Returns the name of a function in small letters; `None` if it is qualified.
pub(crate) fn function_name(function: &Function) -> Option<String> {
    match &function.name.0[..] {
        [part] => part.as_ident().map(|ident| ident.value.to_ascii_lowercase()),
        _ => None,
    }
}

/// Returns the arguments of a function; `None` if they are not all plain.
pub(crate) fn plain_args(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let plain = |arg| match arg {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

/// Returns the expression inside parentheses.
pub(crate) fn without_parentheses(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => without_parentheses(inner),
        _ => expr,
    }
}

/// True if an expression gives a truth value whatever its operands are.
pub(crate) fn is_truth(expr: &Expr) -> bool {
    match without_parentheses(expr) {
        Expr::BinaryOp { op, .. } => gives_truth(op),
        Expr::UnaryOp { op, .. } => *op == UnaryOperator::Not,
        Expr::Function(function) => {
            function_name(function).is_some_and(|name| matches!(&*name, "glob" | "regexp_like" | "truth"))
        }
        Expr::Value(value) => matches!(value.value, Value::Boolean(_) | Value::Null),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::RLike { .. }
        | Expr::SimilarTo { .. }
        | Expr::AnyOp { .. }
        | Expr::AllOp { .. }
        | Expr::Exists { .. } => true,
        _ => false,
    }
}

/// True for the operators that divide.
pub(crate) fn divides(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Divide | BinaryOperator::Modulo)
}
