use crate::common::config;
use esatto_text_format::Parser;

#[test]
fn unknown_names_and_values_vanish() {
    let text = "zzz: 5 duration_ms: 5 yyy { a: 'x' b [1, 2] } buffers { fill_policy: NEWER size_kb: 3 } [no.such]: 1 policies: [99, 1]";
    let bytes = Parser::new(config()).lossy(true).parse(text).expect("only unknown names");
    assert_eq!(
        esatto_text_format::to_text(&config(), &bytes),
        "duration_ms: 5\nbuffers {\n  size_kb: 3\n}\npolicies: RING_BUFFER\n"
    );
}

#[test]
fn dropped_fields_must_be_well_formed() {
    for text in ["zzz { \u{1} }", "zzz {", "zzz:", "zzz: \"x", "duration_ms: x"] {
        assert!(Parser::new(config()).lossy(true).parse(text).is_err(), "{text}");
    }
}
