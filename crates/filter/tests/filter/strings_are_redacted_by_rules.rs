//! String rules.

use std::sync::Arc;

use crate::util::{Message, program};
use core::ops::Range;
use esatto_filter::{
    EcmaScript, Error, Filter, GaveUp, MAX_RULES, Outcome, Policy, Regex, RegexEngine, Rule, SemanticType,
    SemanticTypes, Span, StringField, StringFilter,
};

fn rule(policy: Policy, pattern: &str) -> Rule {
    Rule::new(&EcmaScript, policy, pattern.as_bytes()).unwrap()
}

fn filter(rules: impl IntoIterator<Item = Rule>) -> StringFilter {
    let mut strings = StringFilter::new();
    rules.into_iter().for_each(|rule| strings.add(rule).unwrap());
    strings
}

#[track_caller]
fn assert_becomes(strings: &StringFilter, text: &[u8], expected: &[u8]) {
    let mut filtered = text.to_vec();
    let outcome = strings.filter(&mut filtered, SemanticType(0));
    assert_eq!(filtered.escape_ascii().to_string(), expected.escape_ascii().to_string());
    assert!(outcome == Outcome::Redacted || filtered == text, "{outcome:?}");
}

#[test]
fn case_75_a_group_is_overwritten_bytewise_and_the_length_stays() {
    let strings = filter([rule(Policy::MatchRedactGroups, r"B\|\d+\|(secret)")]);
    assert_becomes(&strings, b"B|1|secret", b"B|1|P60RED");
    assert_becomes(&strings, b"B|1|secrets", b"B|1|secrets");
    assert_becomes(&strings, b"B|x|secret", b"B|x|secret");
    let strings = filter([rule(Policy::MatchRedactGroups, r"B\|\d+\|(.*)")]);
    assert_becomes(&strings, b"B|12|\xff\xc3\x28secret\x80...", b"B|12|P60REDACTED--");
    assert_becomes(&strings, b"B|12|", b"B|12|");
    // A byte of a character is a byte.
    let strings = filter([rule(Policy::MatchRedactGroups, r".(.).")]);
    assert_becomes(&strings, "€".as_bytes(), b"\xe2P\xac");
}

#[test]
fn case_76_a_rule_replaces_the_one_of_its_name_in_place() {
    let first = rule(Policy::MatchBreak, "a.*").name("first");
    let second = rule(Policy::MatchRedactGroups, "(.*)").name("second");
    let replaced = filter([first.clone(), second.clone(), rule(Policy::MatchBreak, "b.*").name("first")]);
    assert_eq!(replaced.rules().len(), 2);
    // It still comes before the second rule, or the second would decide.
    assert_becomes(&replaced, b"bcd", b"bcd");
    assert_becomes(&replaced, b"abc", b"P60");
    let without_names = filter([rule(Policy::MatchBreak, "a.*"), second, rule(Policy::MatchBreak, "b.*")]);
    assert_eq!(without_names.rules().len(), 3);
}

#[test]
fn the_first_rule_that_matches_decides() {
    let strings = filter([
        rule(Policy::MatchBreak, "keep.*"),
        rule(Policy::MatchRedactGroups, "(k)eep.*|(.)x"),
        rule(Policy::MatchRedactGroups, "(.*)x"),
    ]);
    assert_becomes(&strings, b"keepx", b"keepx");
    assert_becomes(&strings, b"yx", b"Px");
    assert_becomes(&strings, b"yyx", b"P6x");
    assert_becomes(&strings, b"yy", b"yy");
}

#[test]
fn rules_for_atrace_ask_for_payload_and_prefix() {
    let strings = filter([
        rule(Policy::AtraceMatchBreak, r".*\|public.*").atrace_payload_starts_with("pub"),
        rule(Policy::AtraceMatchRedactGroups, r"[^|]*\|[^|]*\|(.*)").atrace_payload_starts_with("p"),
    ]);
    assert_becomes(&strings, b"B|1|public", b"B|1|public");
    assert_becomes(&strings, b"B|1|private", b"B|1|P60REDA");
    assert_becomes(&strings, b"B|1|other", b"B|1|other");
    assert_becomes(&strings, b"B|1", b"B|1");
    // The end of a slice has no payload, even if it looks like one.
    assert_becomes(&strings, b"E|1|private", b"E|1|private");
    // The second bar is looked for from the third byte on.
    assert_becomes(&strings, b"||private", b"||private");
    assert_becomes(&strings, b"|||private", b"||P60REDAC");
    let any = filter([rule(Policy::AtraceMatchRedactGroups, r"(..)[^]*").atrace_payload_starts_with("p")]);
    assert_becomes(&any, b"|||private", b"P6|private");
    assert_becomes(&any, b"||private", b"||private");
}

#[test]
fn repeated_searches_redact_every_match() {
    let strings = filter([
        rule(Policy::AtraceRepeatedSearchRedactGroups, r"=(\d+)(!)?").atrace_payload_starts_with("q"),
        rule(Policy::MatchRedactGroups, "[^]*(.)"),
    ]);
    assert_becomes(&strings, b"B|1|q=12,r=3!,s=4", b"B|1|q=P6,r=PP,s=P");
    // No match: the next rule.
    assert_becomes(&strings, b"B|1|q=x", b"B|1|q=P");
    // A search with empty matches ends.
    let strings = filter([rule(Policy::AtraceRepeatedSearchRedactGroups, "(a)|(?=b)|()")]);
    assert_becomes(&strings, b"B|1|bab", b"B|1|bPb");
}

#[test]
fn rules_apply_to_the_types_they_name() {
    let types = |numbers: &[u32]| SemanticTypes::from_numbers(numbers.iter().copied());
    let is_filtered = |numbers: &[u32], semantic_type| {
        let rule = rule(Policy::MatchRedactGroups, "(.*)").semantic_types(types(numbers).unwrap());
        filter([rule]).filter(&mut b"x".to_vec(), SemanticType(semantic_type)) == Outcome::Redacted
    };
    assert!(is_filtered(&[], 0) && !is_filtered(&[], 1));
    assert!(!is_filtered(&[1], 0) && is_filtered(&[1], 1) && !is_filtered(&[1], 2));
    assert!(is_filtered(&[0, 127], 0) && is_filtered(&[0, 127], 127) && !is_filtered(&[0, 127], 126));
    // All rules filter types that no rule can name.
    assert!(is_filtered(&[5], 128) && is_filtered(&[], u32::MAX));
    assert!(matches!(types(&[3, 128]), Err(Error::SemanticType { number: 128 })));
    assert!(matches!(Policy::from_number(0), Err(Error::Policy { number: 0 })));
    assert!(matches!(Policy::from_number(6), Err(Error::Policy { number: 6 })));
}

#[test]
fn strings_in_messages_go_through_the_rules_of_their_type() {
    let typed = StringField { semantic_type: SemanticType(2), ..StringField::default() };
    let program = program(|builder| {
        builder.string(1, StringField::default())?.string(2, typed)?.pass(3)?.end_message();
        Ok(())
    });
    let job = rule(Policy::MatchRedactGroups, "job (.*)").semantic_types(SemanticTypes::from_numbers([2]).unwrap());
    let mut filter = Filter::new(program).with_strings(filter([job]));
    let message = [1, 2, 3].into_iter().fold(Message::default(), |message, field| message.bytes(field, b"job 7"));
    let expected = Message::default().bytes(1, b"job 7").bytes(2, b"job P").bytes(3, b"job 7");
    let mut out = Vec::new();
    for size in 1..message.0.len() {
        filter.filter(&message.0.chunks(size).collect::<Vec<_>>(), &mut out).unwrap();
        assert_eq!(out, expected.0);
    }
}

#[test]
fn there_is_a_bound_on_rules() {
    let mut strings = StringFilter::new();
    let one = rule(Policy::MatchBreak, "x").name("same");
    strings.add(one.clone()).unwrap();
    for _ in 1..MAX_RULES {
        strings.add(rule(Policy::MatchBreak, "x")).unwrap();
    }
    strings.add(one).expect("it replaces");
    assert!(matches!(strings.add(rule(Policy::MatchBreak, "x")), Err(Error::TooManyRules { max: MAX_RULES })));
}

/// Engine of a program. Its patterns are texts, and one of them is never decided.
#[derive(Debug)]
struct Literal(Vec<u8>);

impl RegexEngine for Literal {
    fn compile(&self, pattern: &[u8], _: Span) -> Result<Arc<dyn Regex>, Error> {
        Ok(Arc::new(Self(pattern.to_vec())))
    }
}

impl Regex for Literal {
    fn find(
        &self,
        text: &[u8],
        start: usize,
        groups: &mut Vec<Option<Range<usize>>>,
    ) -> Result<Option<Range<usize>>, GaveUp> {
        groups.clear();
        if self.0 == b"?" {
            return Err(GaveUp);
        }
        let found = text[start..].windows(self.0.len()).position(|window| window == self.0);
        let range = found.map(|at| start + at..start + at + self.0.len());
        groups.extend(range.clone().map(Some));
        Ok(range)
    }
}

#[test]
fn a_string_that_cannot_be_decided_is_overwritten_as_a_whole() {
    let engine = Literal(Vec::new());
    for policy in [Policy::MatchBreak, Policy::MatchRedactGroups, Policy::AtraceRepeatedSearchRedactGroups] {
        let strings = filter([Rule::new(&engine, policy, b"?").unwrap()]);
        let mut text = *b"B|1|something";
        assert_eq!(strings.filter(&mut text, SemanticType(0)), Outcome::GaveUp);
        assert_eq!(&text, b"P60REDACTED--");
    }
    let program = program(|builder| {
        builder.string(1, StringField::default())?.end_message();
        Ok(())
    });
    let mut filter = Filter::new(program).with_strings(filter([Rule::new(&engine, Policy::MatchBreak, b"?").unwrap()]));
    let message = Message::default().bytes(1, b"abc").bytes(1, b"");
    assert_eq!(filter.filter_to_vec(&message.0).unwrap(), Message::default().bytes(1, b"P60").bytes(1, b"").0);
    assert_eq!(filter.strings_given_up(), 1, "the empty string is no secret");
}

#[test]
fn a_program_can_use_its_own_engine() {
    let engine = Literal(Vec::new());
    let strings = filter([Rule::new(&engine, Policy::AtraceRepeatedSearchRedactGroups, b"ab").unwrap()]);
    assert_becomes(&strings, b"B|1|ab.ab", b"B|1|P6.P6");
}
