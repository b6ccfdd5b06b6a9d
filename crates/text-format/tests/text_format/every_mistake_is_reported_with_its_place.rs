use crate::common::{config, errors};
use esatto_text_format::{MAX_ERRORS, MAX_NESTING, Parser};

#[track_caller]
fn one(text: &str, expected: &str) {
    assert_eq!(errors(text), [expected]);
}

#[test]
fn the_layout_is_file_line_column_source_and_guide() {
    let text = "buffers {\n\tsize_kbb: 4\n}\nduration_ms: \"5 \u{e4}\" x";
    let shown = Parser::new(config()).file_name("a.cfg").parse(text).expect_err("is wrong").to_string();
    assert_eq!(
        shown,
        "a.cfg:2:2 error: No field named \"size_kbb\" in proto Buffer; did you mean \"size_kb\"?\n\
         \tsize_kbb: 4\n\
         \t^~~~~~~~\n\
         a.cfg:4:14 error: Expected value of type uint32 for field duration_ms in proto Config instead saw '\"5 \u{e4}\"'\n\
         duration_ms: \"5 \u{e4}\" x\n             ^~~~~\n\
         a.cfg:4:20 error: No field named \"x\" in proto Config\n\
         duration_ms: \"5 \u{e4}\" x\n                   ^\n\
         a.cfg:4:21 error: Unexpected end of input: expected a value\n\
         duration_ms: \"5 \u{e4}\" x\n                    ^"
    );
}

#[test]
fn unknown_names() {
    one("bufers { size_kb: 3 { } }", "1:1 No field named \"bufers\" in proto Config; did you mean \"buffers\"?");
    one(
        "trace_duration_ms: 5",
        "1:1 No field named \"trace_duration_ms\" in proto Config; did you mean \"duration_ms\"?",
    );
    one(
        "buffers { duration_ms: 5 }",
        "1:11 No field named \"duration_ms\" in proto Buffer; it is a field of Config, outside of this message",
    );
    one(
        "ftrace_events: \"a\"",
        "1:1 No field named \"ftrace_events\" in proto Config; it is a field of Ftrace: \
         data_sources { config { ftrace_config { ftrace_events … } } }",
    );
    one("zzz { a: [1, {b < c: 'x' >}] d { } }", "1:1 No field named \"zzz\" in proto Config");
    one("data_sources { config { [test.nothing]: 5 } }", "1:26 No extension named \"test.nothing\" registered");
    one(
        "[test.extra] { }",
        "1:2 Extension \"test.extra\" extends \"test.Config.Deep\", not the current message test.Config",
    );
    one("data_sources { config { []: 5 } }", "1:25 Empty extension name");
    one("[a.b/c.D] { }", "1:2 A type URL has its place in google.protobuf.Any, not in proto Config");
    one("3: 5", "1:1 Unexpected '3': expected the name of a field");
}

#[test]
fn wrong_types() {
    let wrong = |field: &str, of: &str, value: &str| {
        format!(
            "1:{} Expected value of type {of} for field {field} in proto Config instead saw '{value}'",
            field.len() + 3
        )
    };
    for (field, of, value) in [
        ("duration_ms", "uint32", "\"5\""),
        ("duration_ms", "uint32", "abc"),
        ("duration_ms", "uint32", "-abc"),
        ("duration_ms", "uint32", "10ms"),
        ("duration_ms", "uint32", "1e3"),
        ("duration_ms", "uint32", ".5"),
        ("i64", "int64", "0xg"),
        ("one", "string", "5"),
        ("raw", "bytes", "abc"),
        ("f", "float", "1.5g"),
        ("d", "double", "x"),
        ("buffers", "message", "5"),
        ("buffers", "message", "\"x\""),
        ("policies", "enum", "\"DISCARD\""),
        ("policies", "enum", "1.5"),
    ] {
        one(&format!("{field}: {value}"), &wrong(field, of, value));
    }
    one(
        "duration_ms { a: 1 }",
        "1:13 Expected value of type uint32 for field duration_ms in proto Config instead saw '{'",
    );
    one(
        "write_into_file: yes",
        "1:18 Expected 'true' or 'false' for boolean field write_into_file in proto Config instead saw 'yes'",
    );
    one(
        "write_into_file: 2",
        "1:18 Expected 'true' or 'false' for boolean field write_into_file in proto Config instead saw '2'",
    );
    one("duration_ms: [5]", "1:14 Field duration_ms in proto Config is not repeated and takes no list");
}

#[test]
fn numbers_that_do_not_fit() {
    one(
        "duration_ms: 4294967296",
        "1:14 Value for field duration_ms in proto Config does not fit: 4294967296 is out of range, allowed is 0 to 4294967295",
    );
    assert_eq!(
        errors("max_bytes: 18446744073709551616 i32: -2147483649 i64: -9223372036854775809 s32: 0x1ffffffff").len(),
        4
    );
    // `protoc` refuses the same ones.
    one(
        "duration_ms: -1",
        "1:14 Value for field duration_ms in proto Config does not fit: -1 is out of range, allowed is 0 to 4294967295",
    );
    assert_eq!(
        errors("max_bytes: -1 f32: -3 i32: 2147483648 i64: 9223372036854775808 s32: 0xffffffff sf64: 1e3").len(),
        6
    );
}

#[test]
fn enum_values() {
    one(
        "buffers { fill_policy: RING }",
        "1:24 Unexpected value 'RING' for enum field fill_policy in proto Buffer; expected UNSPECIFIED, RING_BUFFER, DISCARD or NEGATIVE",
    );
    one("buffers { fill_policy: 77 }", "1:24 Unexpected value '77' for enum field fill_policy in proto Buffer");
}

#[test]
fn duplicates() {
    one("duration_ms: 5\nduration_ms: 5", "2:1 Saw non-repeating field 'duration_ms' more than once");
    one("nested { } nested { i32: 1 }", "1:12 Saw non-repeating field 'nested' more than once");
    assert!(crate::common::parse("nested { i32: 1 nested { i32: 1 } }").is_ok(), "each message counts for itself");
}

#[test]
fn escapes() {
    one(r#"one: "a\qb""#, r"1:8 Unknown string escape in one in proto Config: '\q'");
    let malformed = |seen: &str, column: usize| {
        format!(
            "1:{column} Malformed string escape in one in proto Config on '{seen}'. Expected \\NNN (octal, at most 377), \
             \\xNN, \\uNNNN or \\UNNNNNNNN"
        )
    };
    one(r#"one: "\400""#, &malformed(r"\400", 7));
    one(r#"one: "" "\xg""#, &malformed(r"\x", 10));
    one(r#"one: "\ud800""#, &malformed(r"\ud800", 7));
    one(r#"one: "\u12""#, &malformed(r"\u12", 7));
    assert_eq!(errors(r#"one: "\q\400\z""#).len(), 3);
}

#[test]
fn ends_and_braces() {
    one("}", "1:1 Unmatched closing brace");
    one("duration_ms: 5 } write_into_file: true", "1:16 Unmatched closing brace");
    one("buffers {\n size_kb: 5\n", "3:1 Nested message not closed: the brace at 1:9 has no partner");
    assert_eq!(errors("zzz {\n a: 5 ")[1], "2:7 Nested message not closed: the brace at 1:5 has no partner");
    one("duration_ms:", "1:13 Unexpected end of input: expected a value of type uint32 for field duration_ms");
    one("duration_ms: -", "1:15 Unexpected end of input: expected a number after '-'");
    one("one: \"abc", "1:6 Unexpected end of input: this string is not closed");
    one("buffers { size_kb: }", "1:20 Unexpected character '}': expected a value of type uint32 for field size_kb");
    one("buffers < size_kb: 5 }", "1:22 Unexpected character '}': expected '>'");
    one("packed: [1 2]", "1:12 Unexpected '2': expected ',' or ']'");
    one("packed: [1,]", "1:12 Unexpected character ']': expected a value of type uint32 for field packed");
}

#[test]
fn parsing_continues_after_a_syntax_error() {
    let text = "buffers {\n  size_kb = 4096\n  fill_polcy: DISCARD\n}\nduration_ms:\nwrite_into_file: ja\none: @ nothing: 1\n\u{20ac}";
    assert_eq!(
        errors(text),
        [
            "2:11 Unexpected character '=': expected a value of type uint32 for field size_kb",
            "3:3 No field named \"fill_polcy\" in proto Buffer; did you mean \"fill_policy\"?",
            "6:1 Unexpected 'write_into_file': expected a value of type uint32 for field duration_ms",
            "6:18 Expected 'true' or 'false' for boolean field write_into_file in proto Config instead saw 'ja'",
            "7:6 Unexpected character '@': expected a value of type string for field one",
            "7:8 No field named \"nothing\" in proto Config",
            "8:1 Unexpected character '\u{20ac}': expected the name of a field",
        ]
    );
}

#[test]
fn a_missing_quote_is_suspected() {
    let found = errors("one: \"abc\nraw: \"def\"\n");
    let hint = "the string that begins on line 1 goes over several lines, is its closing quote missing?";
    assert_eq!(found[0], format!("2:7 No field named \"def\" in proto Config; {hint}"));
}

#[test]
fn nesting_and_errors_are_bounded() {
    let deep = "nested { ".repeat(100_000);
    let found = errors(&deep);
    assert!(found[0].contains(&format!("nested more than {MAX_NESTING} deep")), "{}", found[0]);
    assert_eq!(errors(&"[a/b]{".repeat(100_000)).len(), 2);
    assert_eq!(errors(&"zzz: 1 ".repeat(1000)).len(), MAX_ERRORS);
    let fits = format!("{}{}", "nested { ".repeat(MAX_NESTING), "} ".repeat(MAX_NESTING));
    assert!(crate::common::parse(&fits).is_ok());
    let long_line = format!("{} zzz: 1 {}", "unpacked: 1 ".repeat(1000), "unpacked: 1 ".repeat(1000));
    let shown = crate::common::parse(&long_line).expect_err("is wrong").to_string();
    assert!(shown.len() < 1000);
    let guide = shown.lines().last().and_then(|line| line.find('^'));
    assert_eq!(shown.lines().nth(1).and_then(|line| line.find("zzz")), guide);
}
