//! The dialect of SQL: that of SQLite as far as the parser needs to know.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::syntax::call;

/// The dialect: SQLite's operators, and what DataFusion can do beyond them.
#[derive(Debug)]
pub(crate) struct TraceDialect;

/// An operator of SQLite that matches patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Glob,
    Regexp,
}

fn match_operator(token: &Token) -> Option<Match> {
    let Token::Word(word) = token else { return None };
    if word.quote_style.is_some() {
        return None;
    }
    match () {
        () if word.value.eq_ignore_ascii_case("glob") => Some(Match::Glob),
        () if word.keyword == Keyword::REGEXP => Some(Match::Regexp),
        () => None,
    }
}

fn is_keyword(token: &Token, keyword: Keyword) -> bool {
    matches!(token, Token::Word(word) if word.keyword == keyword)
}

/// True if `IS` is followed by something that the parser knows.
fn is_plain_test(parser: &Parser<'_>, at: usize) -> bool {
    let known = [Keyword::NULL, Keyword::TRUE, Keyword::FALSE, Keyword::UNKNOWN, Keyword::DISTINCT];
    known.iter().any(|keyword| is_keyword(&parser.peek_nth_token_ref(at).token, *keyword))
}

impl Dialect for TraceDialect {
    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_'
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_dollar_placeholder(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let token = &parser.peek_token_ref().token;
        let is_match = match_operator(token).is_some()
            || is_keyword(token, Keyword::NOT) && match_operator(&parser.peek_nth_token_ref(1).token).is_some();
        is_match.then(|| Ok(self.prec_value(Precedence::Like)))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        if is_keyword(&parser.peek_token_ref().token, Keyword::IS) {
            return parse_is(parser, expr);
        }
        let is_negated = is_keyword(&parser.peek_token_ref().token, Keyword::NOT);
        let operator = match_operator(&parser.peek_nth_token_ref(usize::from(is_negated)).token)?;
        for _ in 0..=usize::from(is_negated) {
            let _token = parser.next_token();
        }
        let pattern = match parser.parse_subexpr(self.prec_value(Precedence::Like)) {
            Ok(pattern) => pattern,
            Err(error) => return Some(Err(error)),
        };
        let matched = match operator {
            Match::Glob => call("glob", vec![pattern, expr.clone()]),
            Match::Regexp => call("regexp_like", vec![expr.clone(), pattern]),
        };
        Some(Ok(if is_negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(matched) } } else { matched }))
    }
}

/// Parses `a IS b` and `a IS NOT b` for any values.
fn parse_is(parser: &mut Parser<'_>, expr: &Expr) -> Option<Result<Expr, ParserError>> {
    let is_negated = is_keyword(&parser.peek_nth_token_ref(1).token, Keyword::NOT);
    if is_plain_test(parser, 1 + usize::from(is_negated)) {
        return None;
    }
    for _ in 0..=usize::from(is_negated) {
        let _token = parser.next_token();
    }
    let other = match parser.parse_subexpr(TraceDialect.prec_value(Precedence::Is)) {
        Ok(other) => other,
        Err(error) => return Some(Err(error)),
    };
    let (left, right) = (Box::new(expr.clone()), Box::new(other));
    Some(Ok(if is_negated { Expr::IsDistinctFrom(left, right) } else { Expr::IsNotDistinctFrom(left, right) }))
}

/// Returns whether an operator compares or combines truth values.
pub(crate) fn gives_truth(op: &BinaryOperator) -> bool {
    use BinaryOperator as Op;
    matches!(op, Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::And | Op::Or | Op::Spaceship)
}
