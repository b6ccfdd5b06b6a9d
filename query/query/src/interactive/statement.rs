//! The end of a statement.

/// Returns whether a text ends with a semicolon that is no part of a text, a name or a comment.
pub(super) fn is_complete(sql: &str) -> bool {
    let mut rest = sql;
    let mut is_complete = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => match rest[1..].find(first) {
                // Two quotes are one in the text; the second begins a text here, which is as good.
                Some(end) => end + 2,
                None => return false,
            },
            '-' if rest.starts_with("--") => {
                rest = rest.split_once('\n').map_or("", |(_, after)| after);
                continue;
            }
            '/' if rest.starts_with("/*") => match rest.find("*/") {
                Some(end) => {
                    rest = &rest[end + 2..];
                    continue;
                }
                None => return false,
            },
            _ => first.len_utf8(),
        };
        if !first.is_whitespace() {
            is_complete = first == ';';
        }
        rest = &rest[length..];
    }
    is_complete
}

/// Returns whether a text has nothing but spaces and comments.
pub(super) fn is_blank(sql: &str) -> bool {
    let mut rest = sql.trim_start();
    loop {
        rest = match () {
            () if rest.starts_with("--") => rest.split_once('\n').map_or("", |(_, after)| after),
            () if rest.starts_with("/*") => rest.split_once("*/").map_or("", |(_, after)| after),
            () => return rest.is_empty(),
        }
        .trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_with_a_semicolon_outside_of_texts_and_comments() {
        for complete in ["select 1;", "select ';' ;  \n", "a; -- more", "a; /* ; */", "'it''s';", "\"a;b\";"] {
            assert!(is_complete(complete), "{complete}");
        }
        for open in ["", "select 1", "select ';'", "select ';", "a -- ;", "a /* ;", "a; b", "'it''s;", "\"a;", "a;'b"] {
            assert!(!is_complete(open), "{open}");
        }
    }

    #[test]
    fn comments_alone_are_no_statement() {
        for blank in ["", " \n", "-- a", "/* a */ -- b\n ", "/* a"] {
            assert!(is_blank(blank), "{blank}");
        }
        assert!(!is_blank("-- a\n select 1"));
    }
}
