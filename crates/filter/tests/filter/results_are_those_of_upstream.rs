//! Results of upstream's own code for random bytecode, messages and strings: see
//! `golden/README.md`.

use crate::util::{from_hex, golden_lines};
use esatto_filter::{EcmaScript, Filter, Outcome, Policy, Program, Rule, SemanticType, SemanticTypes, StringFilter};

#[test]
fn the_same_bytecode_loads() {
    let lines = golden_lines("loads.tsv");
    assert_eq!(lines.len(), 160);
    for line in lines {
        let [bytecode, overlay, verdict] = &line[..] else { panic!("three fields: {line:?}") };
        let loaded = Program::load_with_overlay(&from_hex(bytecode), &from_hex(overlay));
        assert_eq!(loaded.is_ok(), verdict == "ok", "{bytecode} {overlay}: {loaded:?}");
    }
}

#[test]
fn messages_come_out_the_same() {
    let lines = golden_lines("messages.tsv");
    assert!(lines.len() > 300);
    let mut out = Vec::new();
    for line in lines {
        let [bytecode, overlay, pieces, expected] = &line[..] else { panic!("four fields: {line:?}") };
        let program = Program::load_with_overlay(&from_hex(bytecode), &from_hex(overlay)).expect("it loads");
        let pieces: Vec<Vec<u8>> = pieces.split('|').map(from_hex).collect();
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let result = Filter::new(program).filter(&pieces, &mut out);
        match expected.strip_prefix('=') {
            Some(expected) => assert_eq!((result.is_ok(), &out), (true, &from_hex(expected)), "{line:?}"),
            None => assert!(result.is_err() && out.is_empty(), "{line:?}: {out:?}"),
        }
    }
}

#[test]
fn strings_come_out_the_same() {
    let lines = golden_lines("strings.tsv");
    assert!(lines.len() > 400);
    for line in lines {
        let [rules, semantic_type, text, outcome, expected] = &line[..] else { panic!("five fields: {line:?}") };
        let mut strings = StringFilter::new();
        rules.split(';').for_each(|text| strings.add(rule(text)).expect("few rules"));
        let mut text = from_hex(text);
        let semantic_type = SemanticType(semantic_type.parse().expect("a number"));
        let outcome = if outcome == "kept" { Outcome::Kept } else { Outcome::Redacted };
        assert_eq!(
            (strings.filter(&mut text, semantic_type), text),
            (outcome, from_hex(expected)),
            "{line:?} {strings:?}"
        );
    }
}

fn rule(text: &str) -> Rule {
    let fields: Vec<&str> = text.split(',').collect();
    let [policy, types, prefix, name, pattern] = fields[..] else { panic!("five fields: {text}") };
    let policy = Policy::from_number(policy.parse().expect("a number")).expect("a policy");
    let types = types.split('+').filter(|number| !number.is_empty()).map(|number| number.parse().expect("a number"));
    Rule::new(&EcmaScript, policy, &from_hex(pattern))
        .expect("a pattern that std::regex takes")
        .atrace_payload_starts_with(from_hex(prefix))
        .name(from_hex(name))
        .semantic_types(SemanticTypes::from_numbers(types).expect("types that rules know"))
}
