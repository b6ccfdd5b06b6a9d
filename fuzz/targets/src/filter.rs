//! Filters: bytecode, messages, string rules.

use std::sync::{Arc, OnceLock};

use esatto_filter::{
    Builder, EcmaScript, Filter, MessageId, Outcome, Policy, Program, Regex, RegexEngine, Rule, SemanticType, Span,
    StringField, StringFilter, Version,
};

use crate::script::Script;

/// Bytecode and an overlay, as they are and with right checksums. The loaded filter filters the
/// rest.
pub fn filter_bytecode(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let (bytecode, overlay) = (script.string(), script.string());
    let with_checksum = (with_checksum(bytecode), if overlay.is_empty() { Vec::new() } else { with_checksum(overlay) });
    for (bytecode, overlay) in [(bytecode, overlay), (&with_checksum.0, &with_checksum.1)] {
        let Ok(program) = Program::load_with_overlay(bytecode, overlay) else { continue };
        let _ = program.to_string();
        for message in (0..program.message_count()).map(|index| MessageId(index as u32)) {
            for (fields, action) in program.fields(message) {
                assert_eq!(program.action(message, *fields.start()), Some(action));
                assert_eq!(program.action(message, *fields.end()), Some(action));
            }
        }
        filter_in_pieces(&mut Filter::new(program), bytes, 7);
    }
}

/// A message, filtered whole and in pieces.
pub fn filter_message(bytes: &[u8]) {
    static PROGRAM: OnceLock<(Arc<Program>, Arc<StringFilter>)> = OnceLock::new();
    let (program, strings) = PROGRAM.get_or_init(|| (Arc::new(program()), Arc::new(strings())));
    let mut script = Script::new(bytes);
    let size = script.u8();
    let message = bytes.get(1..).unwrap_or_default();
    let mut filter = Filter::new(Arc::clone(program)).with_strings(Arc::clone(strings)).with_usage();
    filter_in_pieces(&mut filter, message, size);
}

/// A pattern and strings, by every policy.
pub fn filter_strings(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let policy = Policy::from_number(u32::from(script.u8() % 5) + 1).expect("one of five");
    let (pattern, prefix) = (script.string(), script.string());
    let Ok(rule) = Rule::new(&EcmaScript, policy, pattern) else { return };
    let mut strings = StringFilter::new();
    strings.add(rule.atrace_payload_starts_with(prefix)).expect("the first");
    while !script.is_empty() {
        let text = script.string();
        let mut filtered = text.to_vec();
        let outcome = strings.filter(&mut filtered, SemanticType(0));
        assert_eq!(filtered.len(), text.len());
        assert!(outcome != Outcome::Kept || filtered == text);
        find_all(pattern, text);
    }
}

/// Matches lie one after the other, their groups within the text.
fn find_all(pattern: &[u8], text: &[u8]) {
    let Ok(regex) = EcmaScript.compile(pattern, Span::Part) else { return };
    let (mut start, mut groups) = (0, Vec::new());
    while start <= text.len() {
        let Ok(Some(found)) = Regex::find(&*regex, text, start, &mut groups) else { break };
        assert!(start <= found.start && found.start <= found.end && found.end <= text.len());
        assert!(groups.iter().flatten().all(|group| group.start <= group.end && group.end <= text.len()));
        start = found.end + usize::from(found.is_empty());
    }
}

/// In pieces of `size` bytes the result is that of the whole.
fn filter_in_pieces(filter: &mut Filter, message: &[u8], size: u8) {
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    let verdict = filter.filter(&[message], &mut whole);
    assert!(whole.len() <= message.len());
    assert!(verdict.is_ok() || whole.is_empty());
    let pieces: Vec<&[u8]> = message.chunks(usize::from(size).max(1)).collect();
    assert_eq!(filter.filter(&pieces, &mut parts).is_ok(), verdict.is_ok());
    assert_eq!(parts, whole);
    if verdict.is_ok() {
        assert!(filter.filter(&[&whole], &mut parts).is_ok(), "what comes out is a message");
        assert!(parts.len() <= whole.len());
    }
}

/// Recursive, with fields on both sides of 128, strings of several types, and a message that
/// passes.
fn program() -> Program {
    let mut builder = Builder::new(Version::V54);
    let mut write = || {
        builder.pass(1)?.nested(2, MessageId(0))?.nested(3, MessageId(1))?;
        builder.string(4, StringField::default())?;
        builder.string(5, StringField { semantic_type: SemanticType(200), ..StringField::default() })?;
        builder.pass_range(100..=140)?.nested(200, MessageId(0))?.end_message();
        builder.pass_range(1..=3)?.nested(4, MessageId(1))?.string(300, StringField::default())?.end_message();
        Program::load(&builder.build()?.bytecode)
    };
    write().expect("own bytecode")
}

fn strings() -> StringFilter {
    let rules: [(Policy, &[u8]); 3] = [
        (Policy::MatchBreak, b"keep.*"),
        (Policy::AtraceRepeatedSearchRedactGroups, br"=(\d+)"),
        (Policy::MatchRedactGroups, br"(\w+)-([^])+"),
    ];
    let mut strings = StringFilter::new();
    for (policy, pattern) in rules {
        Rule::new(&EcmaScript, policy, pattern).and_then(|rule| strings.add(rule)).expect("own rules");
    }
    strings
}

/// Words and their checksum: without, a fuzzer would never get past it.
fn with_checksum(words: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut rest = words;
    while let Some((word, size)) = esatto_protozero::wire::decode_varint(rest) {
        bytes.extend_from_slice(&rest[..size]);
        rest = &rest[size..];
        for byte in (word as u32).to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let mut varint = [0; esatto_protozero::wire::MAX_VARINT_SIZE];
    let size = esatto_protozero::wire::encode_varint(u64::from(hash as u32), &mut varint);
    bytes.extend_from_slice(&varint[..size]);
    bytes
}
