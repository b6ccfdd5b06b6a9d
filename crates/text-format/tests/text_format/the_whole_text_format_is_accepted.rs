use crate::common::{canonical, parse};

#[track_caller]
fn same(texts: &[&str]) {
    for text in texts {
        assert_eq!(canonical(text), canonical(texts[0]), "{text}");
    }
}

#[test]
fn spellings_of_a_message() {
    same(&[
        "buffers { size_kb: 4 } buffers { size_kb: 5 }",
        "buffers{size_kb:4}buffers{size_kb:5}",
        "buffers: { size_kb: 4; }; buffers < size_kb: 4, size_kb: 5 >".replace("4, size_kb: 5", "5").as_str(),
        "buffers: [{ size_kb: 4 }, { size_kb: 5 }]",
        "buffers [<size_kb 4>, {size_kb 5}]",
        "\u{feff}# comment\r\nbuffers\r\n{size_kb#c\n:#c\n4#c\n}buffers : {\tsize_kb\t:\t5\t}",
    ]);
}

#[test]
fn separators_and_missing_colons() {
    same(&[
        "duration_ms: 5 max_bytes: 6",
        "duration_ms: 5; max_bytes: 6;",
        "duration_ms 5, max_bytes 6,",
        "duration_ms:5 max_bytes:6",
    ]);
    assert!(parse("duration_ms: 5").is_ok(), "at the very end of the text");
    assert!(parse("").is_ok_and(|bytes| bytes.is_empty()));
}

#[test]
fn numbers() {
    same(&["duration_ms: 16", "duration_ms: 0x10", "duration_ms: 016", "duration_ms: 16.9", "duration_ms: 16."]);
    same(&["i32: -1", "i32: - 1"]);
    same(&["max_bytes: 18446744073709551615", "max_bytes: 0xffffffffffffffff"]);
    assert_eq!(
        canonical("i32: -1 i64: -5 s32: -7 s64: -9 f32: 3 sf64: -4"),
        "i32: -1\ni64: -5\ns32: -7\ns64: -9\nf32: 3\nsf64: -4\n"
    );
    assert_eq!(canonical("i32: -2147483648 s32: -2147483648"), "i32: -2147483648\ns32: -2147483648\n");
}

#[test]
fn floats() {
    assert_eq!(canonical("f: 1 d: .5"), "f: 1.0\nd: 0.5\n");
    assert_eq!(canonical("f: 1.5f d: -2.5e-3"), "f: 1.5\nd: -0.0025\n");
    assert_eq!(canonical("f: inf d: -INFINITY"), "f: inf\nd: -inf\n");
    assert_eq!(canonical("f: nan d: 1e300"), "f: nan\nd: 1e300\n");
    same(&["f: 0.1", "f: 1e-1", "f: 0.1F"]);
}

#[test]
fn booleans_and_enums() {
    same(&["write_into_file: true", "write_into_file: True", "write_into_file: t", "write_into_file: 1"]);
    same(&["write_into_file: false", "write_into_file: False", "write_into_file: f", "write_into_file: 0"]);
    same(&["buffers { fill_policy: DISCARD }", "buffers { fill_policy: 2 }"]);
    same(&["buffers { fill_policy: NEGATIVE }", "buffers { fill_policy: -3 }"]);
}

#[test]
fn strings() {
    same(&[
        r#"one: "abc""#,
        "one: 'abc'",
        r#"one: "a" 'b' # and
        "c""#,
        r#"one"abc""#,
        r#"one: "\x61\142\u0063""#,
    ]);
    let bytes = parse(r#"raw: "\\\'\"\?\a\b\f\n\r\t\v\000\377\1z\xfF\U0001F600""#).expect("is valid");
    assert_eq!(&bytes[3..], b"\\'\"?\x07\x08\x0c\n\r\t\x0b\0\xff\x01z\xff\xf0\x9f\x98\x80");
    assert_eq!(parse("one: \"two\nlines\"").expect("is valid"), b"\xba\x01\x09two\nlines");
    assert_eq!(parse(r#"one: "\377""#).expect("strings hold any bytes"), b"\xba\x01\x01\xff");
}

#[test]
fn repeated_fields() {
    same(&["unpacked: 1 unpacked: 2 unpacked: 3", "unpacked: [1, 2, 3]", "unpacked: [1] unpacked: [] unpacked: [2,3]"]);
    assert_eq!(
        parse("packed: [1, 2] duration_ms: 3 packed: 300").expect("is valid"),
        b"\x18\x03\xa2\x01\x04\x01\x02\xac\x02"
    );
    assert_eq!(
        canonical("policies: [DISCARD, 1, NEGATIVE]"),
        "policies: DISCARD\npolicies: RING_BUFFER\npolicies: NEGATIVE\n"
    );
    assert_eq!(
        canonical(r#"map { key: "a" value: 1 } map: [{key: "b"}]"#),
        "map {\n  key: \"a\"\n  value: 1\n}\nmap {\n  key: \"b\"\n}\n"
    );
}

#[test]
fn extensions_groups_and_oneofs() {
    assert_eq!(
        canonical("data_sources { config { [test.extra] { symbolize: true } [ test . numbers ]: [1, 2] } }"),
        "data_sources {\n  config {\n    [test.extra] {\n      symbolize: true\n    }\n    [test.numbers]: 1\n    [test.numbers]: 2\n  }\n}\n"
    );
    assert_eq!(canonical("Pair { a: 1 }"), "Pair {\n  a: 1\n}\n");
    assert_eq!(
        canonical("one: \"x\" two: 2"),
        "one: \"x\"\ntwo: 2\n",
        "as in the reference, the last one wins when decoded"
    );
}
