//! The dialect of patterns, compared with an engine that was written for ECMAScript.

use core::ops::Range;
use esatto_filter::{EcmaScript, Error, Regex, RegexEngine, Span};
use proptest::prelude::*;
use std::sync::Arc;

fn compile(pattern: &[u8], span: Span) -> Result<Arc<dyn Regex>, Error> {
    EcmaScript.compile(pattern, span)
}

/// The match and its groups.
fn find(pattern: &[u8], text: &[u8]) -> Option<Vec<Option<Range<usize>>>> {
    let regex = compile(pattern, Span::Part).unwrap_or_else(|error| panic!("{error}"));
    let mut groups = Vec::new();
    let found = regex.find(text, 0, &mut groups).unwrap()?;
    Some([Some(found)].into_iter().chain(groups).collect())
}

#[track_caller]
fn assert_whole(pattern: &[u8], yes: &[&[u8]], no: &[&[u8]]) {
    let regex = compile(pattern, Span::Whole).unwrap_or_else(|error| panic!("{error}"));
    for text in yes {
        assert_eq!(regex.is_match(text), Ok(true), "{} {}", pattern.escape_ascii(), text.escape_ascii());
    }
    for text in no {
        assert_eq!(regex.is_match(text), Ok(false), "{} {}", pattern.escape_ascii(), text.escape_ascii());
    }
}

#[test]
fn every_construct_means_the_same_as_in_ecmascript() {
    assert_whole(b".", &[b"a", b"\xff", b"\0"], &[b"\n", b"\r", b"", b"ab"]);
    assert_whole(b"[^]", &[b"\n", b"\xff"], &[b""]);
    assert_whole(b"a[]|b", &[b"b"], &[b"a", b""]);
    assert_whole(b"^a$|^$", &[b"a", b""], &[b"a\n"]);
    assert_whole(br"\d\D\w\W\s\S", &[b"1a_- x", b"9\xffZ\xff\x0b\xff"], &[b"aa_- x", b"1a_-xx"]);
    assert_whole(br"\t\n\v\f\r\0\cA\x41\u0042\.\-\/\a", &[b"\t\n\x0b\x0c\r\0\x01AB.-/a"], &[]);
    assert_whole(br"\u20ac+", &["€€".as_bytes()], &[b"\xe2\x82\xac\xac"]);
    assert_whole("€+".as_bytes(), &[b"\xe2\x82\xac\xac"], &["€€".as_bytes()]);
    assert_whole(b"[a-c\\-x\\]\\d[:^.-]+", &[b"abc-x]7[:^."], &[b"d", b"\\"]);
    assert_whole(b"[[:alpha:][:digit:]_]+", &[b"aZ09_"], &[b"-", b"[", b":"]);
    assert_whole(b"[[:^]+", &[b"[:^"], &[b"a"]);
    assert_whole(br"[\b]", &[b"\x08"], &[b"b"]);
    assert_whole(br"[^\W_]", &[b"a", b"0"], &[b"_", b"-"]);
    assert_whole(b"a{2}b{1,}c{0,1}?d{,2}{x}", &[b"aabcd{,2}{x}", b"aabbd{,2}{x}"], &[b"aabbdd"]);
    assert_whole(b"(a)(?:b)(?<name>c)\\2\\k<name>\\1", &[b"abccca"], &[b"abcca"]);
    assert_whole(b"(?=a)a(?!c).(?<=b)(?<!a)c", &[b"abc"], &[b"acc", b"aac"]);
    assert_whole(br"a\b-\Bb?\B-", &[b"a--"], &[b"a-b-", b"a---"]);
    assert_whole(b"]}", &[b"]}"], &[]);
    assert_whole(b"a|b|", &[b"a", b"b", b""], &[b"ab"]);
    assert_whole(b"[+--]", &[b"+", b",", b"-"], &[b"."]);
    assert_whole(b"[a-]", &[b"a", b"-"], &[b"b"]);
}

#[test]
fn groups_are_those_of_the_leftmost_match_that_comes_first() {
    assert_eq!(find(b"(a|ab)(c|bcd)?", b"xabcd"), Some(vec![Some(1..5), Some(1..2), Some(2..5)]));
    assert_eq!(find(b"(a+?)(a*)", b"aaa"), Some(vec![Some(0..3), Some(0..1), Some(1..3)]));
    assert_eq!(find(b"(a)|(b)", b"b"), Some(vec![Some(0..1), None, Some(0..1)]));
    // An empty last round keeps the match of the round before. In C++ it does not.
    assert_eq!(find(b"(a*)*", b"aa"), Some(vec![Some(0..2), Some(0..2)]));
    assert_eq!(find(b"(a*)*\\b", b"aa"), Some(vec![Some(0..2), Some(0..2)]));
    // Here ECMAScript forgets group 1, and Perl does not.
    assert_eq!(find(b"(?:(a)|b)*", b"ab"), Some(vec![Some(0..2), Some(0..1)]));
    // The first alternative counts, not the one found earliest. Engines that factor the
    // alternatives get this wrong.
    assert_eq!(find(b".*?b|.*?c", b"acb"), Some(vec![Some(0..3)]));
    assert_eq!(find(b"(b*[a-c]*?b*)", b"c"), Some(vec![Some(0..0), Some(0..0)]));
    assert_eq!(find(b"(b*[a-c]*?b*)(?=c)", b"c"), Some(vec![Some(0..0), Some(0..0)]));
    assert_eq!(find(b"(?:.*?b?|.*?(c))$", b"abc"), Some(vec![Some(0..3), None]));
    assert_eq!(
        find(b"(a|ab)(bc)|(a|ab)(c)|a(b+)d", b"abc"),
        Some(vec![Some(0..3), Some(0..1), Some(1..3), None, None, None])
    );
    // A reference to a group that took no part matches the empty text.
    assert_eq!(find(b"(?:(a)|b)\\1c", b"bc"), Some(vec![Some(0..2), None]));
    assert_eq!(find(b"\\1(a)", b"a"), Some(vec![Some(0..1), Some(0..1)]));
    assert_eq!(find(b"(a\\1)\\1", b"aa"), Some(vec![Some(0..2), Some(0..1)]));
}

#[test]
fn a_search_sees_what_is_before_its_start() {
    let regex = compile(br"\ba|^b|(?<=c)d", Span::Part).unwrap();
    let find = |text: &[u8], start| regex.find(text, start, &mut Vec::new()).unwrap();
    assert_eq!(find(b"xa a", 1), Some(3..4));
    assert_eq!(find(b"bb", 1), None);
    assert_eq!(find(b"cd", 1), Some(1..2));
    assert_eq!(find(b"a", 1), None);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let expected = [
        ("a)", 1, "`)` without `(`"),
        ("x(a", 1, "`(` without `)`"),
        ("*a", 0, "nothing that could be repeated"),
        ("a**", 2, "nothing that could be repeated"),
        ("a{2}+", 4, "nothing that could be repeated"),
        ("^*", 1, "nothing that could be repeated"),
        ("(|?)", 2, "nothing that could be repeated"),
        ("[a", 0, "`[` without `]`"),
        ("[b-a]", 3, "a range that ends before it begins"),
        (r"[a-\d]", 4, "a range that ends with a class"),
        (r"[\d-a]", 2, "a range that begins with a class"),
        ("[[:letter:]]", 1, "an unknown named class"),
        ("[[.a.]]", 1, "a collating element"),
        ("a\\", 1, "nothing after `\\`"),
        (r"(a)\2", 4, "a reference to a group that does not exist"),
        (r"\07", 1, "an octal escape"),
        (r"\c1", 2, "`\\c` without a letter"),
        (r"\x4g", 1, "too few hexadecimal digits"),
        (r"\u12", 1, "too few hexadecimal digits"),
        (r"\ud800", 5, "half a character"),
        ("a{3,2}", 2, "fewer repetitions at most than at least"),
        ("(?i)a", 0, "a kind of group that ECMAScript does not have"),
        ("(?>a)", 0, "a kind of group that ECMAScript does not have"),
        ("(?<1a>b)", 1, "not a name of a group"),
        ("(?<a>b)(?<a>b)", 8, "two groups with one name"),
        (r"(?<a>b)\k<c>", 9, "a reference to no group"),
    ];
    for (text, place, what) in expected {
        match compile(text.as_bytes(), Span::Part) {
            Err(Error::Pattern { pattern, offset, reason }) => {
                assert_eq!((&*pattern, offset, &*reason), (text, place, what));
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

/// Patterns without a group in a repetition, because there the dialects differ.
fn pattern() -> impl Strategy<Value = String> {
    let atom = prop::sample::select(vec![
        "a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\W", r"\d", r"\s", r"\x61", r"\u0062", r"\.", "-", "[a-c-]",
        "[^]", "[]", r"[\w-]", r"\|", " ", "1", "}", "]",
    ]);
    let quantifier = prop::sample::select(vec!["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,}?"]);
    let assertion = prop::sample::select(vec![r"\b", r"\B", "^", "$", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)"]);
    let piece = prop_oneof![
        6 => (atom, quantifier.clone()).prop_map(|(atom, quantifier)| format!("{atom}{quantifier}")),
        1 => assertion.prop_map(str::to_owned),
    ];
    piece.prop_recursive(3, 24, 4, move |inner| {
        let sequence = prop::collection::vec(inner, 1..4).prop_map(|pieces| pieces.concat());
        let choice = prop::collection::vec(sequence.clone(), 1..3).prop_map(|choices| choices.join("|"));
        // Alternatives with the same beginning.
        let alike = (sequence.clone(), sequence.clone(), sequence.clone())
            .prop_map(|(head, one, other)| format!("(?:{head}{one}|{head}{other})"));
        prop_oneof![
            3 => sequence,
            2 => choice.prop_map(|inner| format!("({inner})")),
            1 => alike,
            1 => (prop::collection::vec(prop::sample::select(vec!["a", "b", "[bc]", "(?:ab|c)"]), 1..3), quantifier.clone())
                .prop_map(|(pieces, quantifier)| format!("(?:{}){quantifier}", pieces.join("|"))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matches_are_those_of_regress(pattern in pattern(), text in "[abc1 .|\n-]{0,10}", start in 0usize..3) {
        let start = start.min(text.len());
        let theirs = regress::Regex::with_flags(&pattern, "").unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let theirs = theirs.find_from(&text, start).next().map(|found| (found.range, found.captures));
        let ours = compile(pattern.as_bytes(), Span::Part).unwrap_or_else(|error| panic!("{error}"));
        let mut groups = Vec::new();
        let ours = ours.find(text.as_bytes(), start, &mut groups).expect("small").map(|range| (range, groups));
        prop_assert_eq!(ours, theirs, "{} on {:?} from {}", pattern, text, start);
    }

    #[test]
    fn any_pattern_compiles_or_not(pattern in r"[\\(){}\[\]?*+|^$.:=!<>abk0-9,d-]{0,24}", text in prop::collection::vec(any::<u8>(), 0..16)) {
        for span in [Span::Whole, Span::Part] {
            if let Ok(regex) = compile(pattern.as_bytes(), span) {
                let mut groups = Vec::new();
                for start in 0..=text.len() {
                    if let Ok(Some(found)) = regex.find(&text, start, &mut groups) {
                        prop_assert!(start <= found.start && found.end <= text.len());
                        prop_assert!(span == Span::Part || found == (0..text.len()));
                        prop_assert!(groups.iter().flatten().all(|group| group.end <= text.len()));
                    }
                }
            }
        }
    }
}
