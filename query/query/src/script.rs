//! Statements of a text: the parser, and the forms of PerfettoSQL.

use core::ops::ControlFlow;
use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{Expr, Statement, Value, visit_expressions_mut};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::TraceDialect;
use crate::needed_tables::has_wildcard;
use crate::rewrite::{name_columns, rewrite};
use crate::set_operations;
use crate::sql_error::{Place, SqlError};
use crate::syntax::{number, text};

/// Statements nested deeper than this are refused.
const MAX_DEPTH: usize = 64;

/// Operators in a statement. Each can be a level of the tree.
const MAX_OPERATORS: usize = 1000;

/// A statement of a text.
#[derive(Debug, Clone)]
pub(crate) struct Parsed {
    pub(crate) statement: Statement,
    /// Words that may be names of tables, in small letters.
    pub(crate) words: Vec<String>,
    /// It asks for all columns of a table.
    pub(crate) has_wildcard: bool,
    pub(crate) place: Option<Place>,
}

/// Values of parameters, by name; those of `?` and `$1` by number from 1.
pub(crate) type Parameters = HashMap<String, Value>;

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Parameter {
    /// No value.
    Null,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number.
    Real(f64),
    /// A text.
    Text(String),
}

impl Parameter {
    pub(crate) fn value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Boolean(value),
            Self::Int(value) => Value::Number(value.to_string(), false),
            // With a point or an exponent: 2.0 is no whole number.
            Self::Real(value) => Value::Number(format!("{value:?}"), false),
            Self::Text(value) => Value::SingleQuotedString(value),
        }
    }
}

/// Parses the statements of a text.
pub(crate) fn parse(sql: &str, parameters: &Parameters) -> Result<Vec<Parsed>, SqlError> {
    let tokens = Tokenizer::new(&TraceDialect, sql).tokenize_with_location();
    let tokens = tokens.map_err(|error| {
        let place = Place::new(error.location.line, error.location.column);
        SqlError::new(format!("syntax error: {}", error.message)).at(place)
    })?;
    let mut parsed = Vec::new();
    let mut position = 0;
    for part in tokens.split(|token| token.token == Token::SemiColon) {
        let tokens: Vec<TokenWithSpan> =
            part.iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF)).cloned().collect();
        if tokens.is_empty() {
            continue;
        }
        let words = words(&tokens);
        let has_wildcard = has_wildcard(&tokens);
        let place = Place::new(tokens[0].span.start.line, tokens[0].span.start.column);
        let end = tokens.last().and_then(|token| Place::new(token.span.end.line, token.span.end.column));
        let operators = tokens.iter().filter(|token| is_operator(&token.token)).count();
        if operators > MAX_OPERATORS {
            let error = SqlError::new(format!("a statement has {operators} operators; there can be {MAX_OPERATORS}"));
            return Err(error.at(place).help("use IN for lists of values"));
        }
        let Some(tokens) = translate(tokens)? else { continue };
        let mut parser = Parser::new(&TraceDialect).with_recursion_limit(MAX_DEPTH).with_tokens_with_locations(tokens);
        let mut statements = parser.parse_statements().map_err(|error| SqlError::of_parser(&error, end))?;
        let (Some(mut statement), None) = (statements.pop(), statements.pop()) else {
            return Err(SqlError::new("syntax error: one statement was expected").at(place));
        };
        name_columns(&mut statement);
        fill_parameters(&mut statement, parameters, &mut position)?;
        rewrite(&mut statement);
        if let Some(operation) = set_operations::left(&statement) {
            let error = SqlError::new(format!("{operation} needs the names of the columns before it"));
            return Err(error.at(place).help("write them instead of *"));
        }
        parsed.push(Parsed { statement, words, has_wildcard, place });
    }
    Ok(parsed)
}

/// True for the operators of long chains, and for what joins queries and tables.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::JOIN
        ),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
        Token::Ampersand | Token::Pipe | Token::ShiftLeft | Token::ShiftRight => true,
        _ => false,
    }
}

fn words(tokens: &[TokenWithSpan]) -> Vec<String> {
    let mut words = Vec::new();
    for token in tokens {
        match &token.token {
            Token::Word(word) => words.push(word.value.to_ascii_lowercase()),
            // Tables that are arguments of table functions.
            Token::SingleQuotedString(text) => {
                let is_end = |ch: char| !ch.is_alphanumeric() && ch != '_';
                words.extend(text.split(is_end).filter(|word| !word.is_empty()).map(str::to_ascii_lowercase));
            }
            _ => {}
        }
    }
    words
}

/// Replaces the placeholders `$name`, `:name`, `@name`, `$1` and `?` by their values.
fn fill_parameters(statement: &mut Statement, parameters: &Parameters, position: &mut usize) -> Result<(), SqlError> {
    let flow = visit_expressions_mut(statement, |expr| {
        let Expr::Value(value) = expr else { return ControlFlow::Continue(()) };
        let Value::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
        let place = Place::new(value.span.start.line, value.span.start.column);
        let name = name.trim_start_matches(['$', ':', '@', '?']).to_owned();
        let name = if name.is_empty() {
            *position += 1;
            position.to_string()
        } else {
            name
        };
        match parameters.get(&name) {
            Some(value) => {
                *expr = Expr::value(value.clone());
                ControlFlow::Continue(())
            }
            None => {
                let error = SqlError::new(format!("the parameter '{name}' has no value")).at(place);
                ControlFlow::Break(error.help(format!("give it with --param {name}=VALUE")))
            }
        }
    });
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Returns the value of a parameter: a number if it looks like one, else a text. Quotes make a text
/// of it, whatever it looks like.
pub(crate) fn parameter_value(value: &str) -> Value {
    let quoted = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
    if let Some(quoted) = quoted {
        return Value::SingleQuotedString(quoted.to_owned());
    }
    let expr = match value.parse::<i64>() {
        Ok(whole) => number(whole),
        Err(_) if value.parse::<f64>().is_ok_and(f64::is_finite) => {
            return Value::Number(value.to_owned(), false);
        }
        Err(_) => text(value),
    };
    match expr {
        Expr::Value(value) => value.value,
        _ => Value::Null,
    }
}

fn is_word(token: Option<&TokenWithSpan>, word: &str) -> bool {
    matches!(token.map(|token| &token.token), Some(Token::Word(own)) if own.value.eq_ignore_ascii_case(word))
}

/// Translates the statements of PerfettoSQL that SQL does not have. `None`: nothing is to be done.
fn translate(mut tokens: Vec<TokenWithSpan>) -> Result<Option<Vec<TokenWithSpan>>, SqlError> {
    let place = Place::new(tokens[0].span.start.line, tokens[0].span.start.column);
    let refuse = |what: &str| Err(SqlError::new(format!("{what} is PerfettoSQL that is not supported")).at(place));
    if is_word(tokens.first(), "include") && is_word(tokens.get(1), "perfetto") {
        // Views of the standard library that are here need no inclusion. Others are missing where
        // they are used, which is an error there.
        return Ok(None);
    }
    if !is_word(tokens.first(), "create") {
        return Ok(Some(tokens));
    }
    let after_replace = if is_word(tokens.get(1), "or") { 3 } else { 1 };
    if is_word(tokens.get(after_replace), "perfetto") {
        let kind = tokens.get(after_replace + 1);
        if !is_word(kind, "table") && !is_word(kind, "view") {
            let kind = kind.map_or_else(String::new, |token| token.token.to_string());
            return refuse(&format!("CREATE PERFETTO {kind}"));
        }
        tokens.remove(after_replace);
        // The list of columns has types and perhaps comments; SQL has none for a query.
        let list = after_replace + 2;
        if tokens.get(list).is_some_and(|token| token.token == Token::LParen)
            && let Some(length) = tokens[list..].iter().position(|token| token.token == Token::RParen)
        {
            tokens.drain(list..=list + length);
        }
        return Ok(Some(tokens));
    }
    if is_word(tokens.get(1), "virtual") {
        return match virtual_table(&tokens) {
            Some(tokens) => Ok(Some(tokens)),
            None => refuse("this kind of CREATE VIRTUAL TABLE"),
        };
    }
    Ok(Some(tokens))
}

/// Translates `CREATE VIRTUAL TABLE name USING SPAN_JOIN(a PARTITIONED x, b PARTITIONED x)`.
fn virtual_table(tokens: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let using = tokens.iter().position(|token| is_word(Some(token), "using"))?;
    let (name, function) = (tokens.get(using - 1)?, tokens.get(using + 1)?);
    let function_name = function.token.to_string().to_ascii_lowercase();
    if !matches!(&*function_name, "span_join" | "span_left_join" | "span_outer_join") {
        return None;
    }
    let args = tokens.get(using + 3..tokens.len() - 1)?;
    let args: Vec<String> = args
        .split(|token| token.token == Token::Comma)
        .map(|arg| arg.iter().map(|token| token.token.to_string()).collect::<Vec<_>>().join(" "))
        .collect();
    let at = |token: Token| TokenWithSpan { token, span: function.span };
    let word = |word: &str| at(Token::make_word(word, None));
    let mut sql = vec![word("CREATE"), word("VIEW"), name.clone(), word("AS"), word("SELECT"), at(Token::Mul)];
    sql.extend([word("FROM"), word(&function_name), at(Token::LParen)]);
    for (index, arg) in args.into_iter().enumerate() {
        sql.extend((index > 0).then(|| at(Token::Comma)));
        sql.push(at(Token::SingleQuotedString(arg)));
    }
    sql.push(at(Token::RParen));
    Some(sql)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(text: &str) -> Vec<String> {
        let parsed = parse(text, &Parameters::new()).unwrap_or_else(|error| panic!("{text}: {error}"));
        parsed.into_iter().map(|parsed| parsed.statement.to_string()).collect()
    }

    #[test]
    fn operators_of_sqlite_become_functions() {
        let cases = [
            ("select a glob 'x*' and b", "SELECT glob('x*', a) AND truth(b)"),
            ("select a not glob 'x*'", "SELECT NOT glob('x*', a)"),
            ("select a || 'b' glob 'x*'", "SELECT glob('x*', a || 'b')"),
            ("select a / b, a / 2, a % 0", "SELECT a / nullif(b, 0), a / 2, a % nullif(0, 0)"),
            (
                "select a is b, a is not 3, a is null",
                "SELECT a IS NOT DISTINCT FROM b, a IS DISTINCT FROM 3, a IS NULL",
            ),
            ("select iif(a, 1, 2)", "SELECT CASE WHEN truth(a) THEN 1 ELSE 2 END"),
            ("select sum(a = 1), total(b)", "SELECT sum(CAST(a = 1 AS BIGINT)), coalesce(CAST(sum(b) AS DOUBLE), 0.0)"),
            ("select cast(a as int), cast(a as real)", "SELECT CAST(a AS BIGINT), CAST(a AS DOUBLE)"),
            ("select max(a, b)", "SELECT CASE WHEN a IS NULL OR b IS NULL THEN NULL ELSE greatest(a, b) END"),
            ("select count(), count(a)", "SELECT count(*), count(a)"),
            ("select substr(a, -2), substr(a, 2)", "SELECT right(a, 2), SUBSTR(a, 2)"),
            ("select a, b, a", "SELECT a, b, a AS \"a:1\""),
            ("select time_to_ms(a)", "SELECT (a / 1000000)"),
            ("select group_concat(a)", "SELECT string_agg(CAST(a AS TEXT), ',')"),
            ("select 1 from t where a like 'B%'", "SELECT 1 FROM t WHERE a ILIKE 'B%'"),
        ];
        for (sqlite, expected) in cases {
            // Columns of the outermost statement get names.
            assert_eq!(sql(&format!("select * from ({sqlite})")), [format!("SELECT * FROM ({expected})")], "{sqlite}");
        }
    }

    #[test]
    fn perfetto_statements_are_translated() {
        assert_eq!(sql("include perfetto module slices.with_context; select a"), ["SELECT a"]);
        assert_eq!(
            sql("create or replace perfetto table t (a LONG, b STRING) as select 1"),
            ["CREATE OR REPLACE TABLE t AS SELECT 1"]
        );
        assert_eq!(
            sql("create virtual table sp using span_join(a partitioned utid, b)"),
            ["CREATE VIEW sp AS SELECT * FROM span_join('a partitioned utid', 'b')"]
        );
        let error = parse("create perfetto function f() returns int as select 1", &Parameters::new()).unwrap_err();
        assert!(error.message.contains("CREATE PERFETTO function"), "{error}");
    }

    #[test]
    fn parameters_are_filled_in() {
        let value = |value: &str| parameter_value(value);
        let parameters = [("1", "7"), ("2", "x"), ("name", "'5'"), ("r", "1.5")];
        let parameters = parameters.map(|(name, text)| (name.to_owned(), value(text))).into_iter().collect();
        let parsed = parse("select ?, ?, $name, :r, $1", &parameters).expect("all have values");
        let expected = "SELECT 7 AS \"?\", 'x' AS \"?:1\", '5' AS \"$name\", 1.5 AS \":r\", 7 AS \"$1\"";
        assert_eq!(parsed[0].statement.to_string(), expected);
        let error = parse("select\n  :missing", &parameters).unwrap_err();
        assert_eq!(error.place, Place::new(2, 3));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let sql = format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(parse(&sql, &Parameters::new()).is_err());
    }
}
