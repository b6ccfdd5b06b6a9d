//! Tables that no statement of a script can see are not made.
//!
//! The events of the kernel and their arguments are most of a recording of scheduling. A script
//! that reads neither them nor arguments of anything else gets traces without them. Its rows are
//! the same: only the numbers of arguments differ, and a statement that shows those reads all.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::script::{Parameters, Parsed, parse};
use crate::views::view;

/// Returns whether statements can see kernel events, or arguments.
pub(crate) fn have_kernel_events<'a>(statements: impl IntoIterator<Item = &'a Parsed>) -> bool {
    statements.into_iter().any(|statement| {
        let names_set = |word: &String| word.ends_with("arg_set_id");
        statement.has_wildcard || statement.words.iter().any(|word| names_set(word) || reads_them(word))
    })
}

/// Returns whether a table, a view or a function with this name reads kernel events or arguments.
/// The numbers of arguments that a view passes on are named by the statement that shows them.
fn reads_them(name: &str) -> bool {
    if name == "extract_arg" || esatto_tables::table(name).is_some_and(|table| table.has_kernel_events()) {
        return true;
    }
    let Some(view) = view(name) else { return false };
    // The columns that tell traces apart have nothing to do with it.
    let mut sql = String::new();
    let mut rest = view.sql;
    while let Some((before, after)) = rest.split_once('{') {
        sql.push_str(before);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    sql.push_str(rest);
    let parsed = parse(&sql, &Parameters::new());
    let is_other = |word: &&String| *word != name;
    parsed.map_or(true, |statements| {
        statements.iter().any(|statement| {
            statement.has_wildcard || statement.words.iter().filter(is_other).any(|word| reads_them(word))
        })
    })
}

/// Returns whether tokens of a statement ask for all columns of a table.
pub(crate) fn has_wildcard(tokens: &[TokenWithSpan]) -> bool {
    let token = |at: usize| tokens.get(at).map(|token| &token.token);
    (0..tokens.len()).filter(|&at| token(at) == Some(&Token::Mul)).any(|at| {
        let before = at.checked_sub(1).and_then(token);
        let counts = before == Some(&Token::LParen) && token(at + 1) == Some(&Token::RParen);
        let multiplies = match before {
            Some(Token::Word(word)) => word.keyword == Keyword::NoKeyword || word.quote_style.is_some(),
            Some(Token::Number(..) | Token::RParen | Token::RBracket | Token::Placeholder(_)) => true,
            _ => false,
        };
        !counts && !multiplies
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(sql: &str) -> bool {
        have_kernel_events(&parse(sql, &Parameters::new()).unwrap_or_else(|error| panic!("{sql}: {error}")))
    }

    #[test]
    fn statements_that_cannot_see_them_do_not_need_them() {
        for sql in [
            "select count(*) from slice",
            "select name, sum(dur * 2) / (1 + 2) * 3 from sched join thread using (utid) group by name",
            "select ts, thread_name from thread_slice where dur > 1000",
            "create view v as select ts from sched; select count( * ) from v",
            "select ts from span_join('sched', 'thread_state', 'utid')",
        ] {
            assert!(!needs(sql), "{sql}");
        }
    }

    #[test]
    fn statements_that_might_see_them_need_them() {
        for sql in [
            "select * from slice",
            "select s.* from slice s",
            "select distinct * from slice",
            "select ts, * from slice",
            "select count(*) from ftrace_event",
            "select count(*) from \"ARGS\"",
            "select extract_arg(arg_set_id, 'debug.x') from slice",
            "select track.dimension_arg_set_id from track",
            "select ts from thread_slice where arg_set_id is not null",
            "select 1; select name from raw",
            "select ts from span_join('sched', 'ftrace_event')",
        ] {
            assert!(needs(sql), "{sql}");
        }
    }
}
