//! Patterns and strings for which backtracking engines take exponential time.
//!
//! No test here measures time: without bounds they would not end in a lifetime.

use crate::util::program;
use esatto_filter::{
    EcmaScript, Filter, GaveUp, Outcome, PatternQuota, Policy, Regex, RegexEngine, Rule, SemanticType, Span,
    StringField, StringFilter,
};
use std::sync::Arc;

fn compile(pattern: &str, span: Span) -> Arc<dyn Regex> {
    EcmaScript.compile(pattern.as_bytes(), span).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn nested_repetitions_are_decided_in_linear_time() {
    let text = [b'a'; 100_000];
    for pattern in
        ["(a*)*b", "(a+)+b", "(a|a)*b", "(a|aa)+b", "(.*)*(.*)*(.*)*b", "(?:a?){100}a{100}b", "(x+x+)+y|(a*)*b"]
    {
        for span in [Span::Whole, Span::Part] {
            assert_eq!(compile(pattern, span).is_match(&text), Ok(false), "{pattern}");
        }
    }
    assert_eq!(compile("(a*)*", Span::Whole).is_match(&text), Ok(true));
}

#[test]
fn back_references_and_lookaround_are_given_up() {
    let text = [b'a'; EcmaScript::MAX_TEXT_WITH_BACKTRACKING];
    for pattern in [r"(a*)*b\1", r"(a*)(a*)(a*)\1\2\3b", r"(?=(a*)*b)a", r"((a*)\2)*b", r"(?:(?=a)a|(?!b)a)*b\b(?!x)"] {
        let outcome = compile(pattern, Span::Part).is_match(&text);
        assert!(matches!(outcome, Err(GaveUp) | Ok(false)), "{pattern}: {outcome:?}");
    }
    assert_eq!(compile(r"(a*)*b\1", Span::Part).is_match(&text), Err(GaveUp));
    // A string that is given up does not pass.
    let mut strings = StringFilter::new();
    strings.add(Rule::new(&EcmaScript, Policy::MatchBreak, br"(a*)*b\1").unwrap()).unwrap();
    let mut text = [b'a'; EcmaScript::MAX_TEXT_WITH_BACKTRACKING];
    assert_eq!(strings.filter(&mut text, SemanticType(0)), Outcome::GaveUp);
    assert_eq!(&text[..14], b"P60REDACTED---");
}

#[test]
fn texts_have_a_bound() {
    let text = vec![b'a'; EcmaScript::MAX_TEXT + 1];
    assert_eq!(compile("a*", Span::Whole).is_match(&text), Err(GaveUp));
    assert_eq!(compile("a*", Span::Whole).is_match(&text[1..]), Ok(true));
    let text = &text[..=EcmaScript::MAX_TEXT_WITH_BACKTRACKING];
    assert_eq!(compile("(?=a)a", Span::Part).is_match(text), Err(GaveUp));
    assert_eq!(compile("(?=a)a", Span::Part).is_match(&text[1..]), Ok(true));
}

#[test]
fn many_searches_in_a_long_string_are_given_up() {
    let mut strings = StringFilter::new();
    // Each search reads everything up to the end, for a `c` that never comes.
    strings.add(Rule::new(&EcmaScript, Policy::AtraceRepeatedSearchRedactGroups, b"(a)(?:.*c)?").unwrap()).unwrap();
    let mut text = [&b"B|1|"[..], &[b'a'; 20_000]].concat();
    assert_eq!(strings.filter(&mut text, SemanticType(0)), Outcome::GaveUp);
    assert!(text.starts_with(b"P60REDACTED-----"));
}

#[test]
fn large_patterns_are_refused() {
    let refused = |pattern: &str| EcmaScript.compile(pattern.as_bytes(), Span::Part).is_err();
    assert!(refused(&"a".repeat(EcmaScript::MAX_PATTERN + 1)));
    let nested = |depth| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
    assert!(refused(&nested(EcmaScript::MAX_NESTING + 1)));
    assert!(!refused(&nested(EcmaScript::MAX_NESTING)));
    assert!(refused("a{65536}"));
    assert!(refused("(?:(?:a{1000}){1000}){1000}"));
    assert!(refused("(?:[^]{1000}){1000}"));
}

#[test]
fn repetitions_that_are_counted_at_run_time_are_bounded_there() {
    let regex = compile(r"(?:(?:(?:(a)\1){1000}){1000}){1000}", Span::Whole);
    let outcome = regex.is_match(&[b'a'; EcmaScript::MAX_TEXT_WITH_BACKTRACKING]);
    assert!(matches!(outcome, Err(GaveUp) | Ok(false)), "{outcome:?}");
}

#[test]
fn only_backtracking_patterns_cost_steps() {
    let easy = [b'a'; 100];
    let hard = [b'a'; EcmaScript::MAX_TEXT_WITH_BACKTRACKING];
    let mut steps = 1_000_000;
    assert_eq!(compile("(a*)*b", Span::Whole).is_match_within(&hard, &mut steps), Ok(false));
    assert_eq!(steps, 1_000_000);
    assert_eq!(compile("(?!b)a*", Span::Whole).is_match_within(&easy, &mut steps), Ok(true));
    assert!((900_000..1_000_000).contains(&steps), "{steps}");
    let before = steps;
    assert_eq!(compile(r"(a*)*b\1", Span::Whole).is_match_within(&hard, &mut steps), Err(GaveUp));
    assert!(steps < before, "the quick attempt is charged, the thorough one is not made");
    assert_eq!(compile("(?!b)a*", Span::Whole).is_match_within(&easy, &mut 0), Err(GaveUp));
}

#[test]
fn a_message_of_many_hard_strings_is_redacted_within_its_steps() {
    const STRINGS: usize = 100;
    let program = program(|builder| {
        builder.string(1, StringField::default())?.end_message();
        Ok(())
    });
    let mut strings = StringFilter::new();
    strings.add(Rule::new(&EcmaScript, Policy::MatchBreak, br"(a*)*b\1").unwrap()).unwrap();
    let mut filter = Filter::new(program).with_strings(strings);
    let message: Vec<u8> = (0..STRINGS).flat_map(|_| [&[0x0a, 120][..], &[b'a'; 120]].concat()).collect();
    // Each message has its own steps.
    for round in 1..=2 {
        let out = filter.filter_to_vec(&message).unwrap();
        assert_eq!(out.len(), message.len());
        assert!(out.chunks(122).all(|string| string[2..].starts_with(b"P60REDACTED---")));
        assert_eq!(filter.strings_given_up(), round * STRINGS as u64);
    }
}

#[test]
fn patterns_of_one_config_have_a_bound_together() {
    let quota = PatternQuota::default();
    let compiled = (0..10_909).take_while(|i| quota.compile(format!("(?:a{i}){{50}}").as_bytes(), Span::Whole).is_ok());
    let compiled = compiled.count();
    assert!((64..1000).contains(&compiled), "{compiled}");
    // The same pattern again is not compiled again.
    let quota = PatternQuota::default();
    assert!((0..10_909).all(|_| quota.compile(b"the same.*", Span::Whole).is_ok()));
    // A pattern is charged for the memory that it needs.
    let quota = PatternQuota::default();
    let large = (0..100).take_while(|i| quota.compile(format!("(?:[^]{{9}}{i}){{60}}").as_bytes(), Span::Part).is_ok());
    assert!(large.count() < 65);
    let quota = PatternQuota::default();
    let split = (0..1000).take_while(|i| quota.compile(format!("(?={i})(?!b)a").as_bytes(), Span::Part).is_ok());
    assert!(split.count() < 100);
}
