//! A producer writes made-up packets. A service, ours or Perfetto's, records them with a filter
//! from our compiler. The trace has the same part of each packet that our interpreter keeps.
//! Inside, some packets are malformed.

use std::fmt::Write as _;

use std::sync::Arc;

use esatto_filter::{
    AllowList, Bytecode, EcmaScript, Filter, Options, Policy, Program, Rule, SemanticTypes, StringFilter, Version,
};
use esatto_tests::bystander::Random;
use esatto_tests::wire::{self, Proto};
use esatto_tests::{Implementation, Peer as Installed, Skip, by_hand, skip};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filter");
const SOURCE: &str = "esatto.filter";
const PACKETS: usize = 3000;

/// Fields of a packet or of its nested messages, without those that only the service may set.
const FIELDS: [u32; 15] = [1, 2, 4, 5, 7, 8, 11, 11, 12, 12, 14, 900, 901, 902, 903];
const INNER_FIELDS: [u32; 10] = [1, 2, 3, 4, 5, 5, 6, 299, 300, 301];
const SEQUENCE_ID: u32 = 10;
const SEQUENCE_ID_OF_SERVICE: u64 = 1;

/// Policy, expression, atrace prefix, semantic type.
const RULES: [(Policy, &str, &str, u32); 5] = [
    (Policy::MatchBreak, "keep[^]*", "", 0),
    (Policy::AtraceMatchRedactGroups, r"B\|\d+\|(\w+)[^]*", "se", 0),
    (Policy::AtraceRepeatedSearchRedactGroups, "=([0-9]+)", "", 0),
    (Policy::MatchRedactGroups, r"[^]*?([\x80-\xff]+)[^]*", "", 0),
    (Policy::MatchRedactGroups, "(.)[^]*", "", 1),
];

const TEXTS: [&[u8]; 9] = [
    b"",
    b"keep =1",
    b"B|12|secret thing",
    b"B|12|some=12, more=345",
    b"E|12|secret",
    b"plain",
    b"\xc3\xa9t\xc3\xa9",
    b"\xff\xfe=7",
    b"C|1|x=1|y=22",
];

esatto_tests::for_each_service!(of_a_service);

#[test]
fn ours_recorded_by_theirs() {
    skip(|| {
        Installed::Official.require()?;
        scenario(Implementation::Ours, Implementation::Theirs, false)
    });
}

#[test]
fn ours_into_a_file() {
    skip(|| scenario(Implementation::Ours, Implementation::Ours, true));
}

#[test]
fn theirs_into_a_file() {
    skip(|| {
        Installed::Official.require()?;
        scenario(Implementation::Theirs, Implementation::Theirs, true)
    });
}

fn of_a_service(implementation: Implementation) -> Result<(), Skip> {
    scenario(implementation, implementation, false)
}

fn scenario(service: Implementation, consumer: Implementation, writes_file: bool) -> Result<(), Skip> {
    let list = AllowList::from_files(&["allowed.proto"], &[FOLDER], "allowed.Trace", &Options::new());
    let bytecode = list.expect("a schema").bytecode(Version::V2).expect("bytecode");
    let packets: Vec<Vec<u8>> = {
        let mut random = Random::new(7);
        (0..PACKETS).map(|_| packet(&mut random).0).collect()
    };
    let mut text = config(&bytecode);
    if writes_file {
        text += "write_into_file: true\n";
    }
    let trace = by_hand::record(service, consumer, &text, SOURCE, &packets);

    let program = Program::load_with_overlay(&bytecode.bytecode, &bytecode.overlay).expect("own bytecode");
    let program = Arc::new(program);
    let mut again = Filter::new(Arc::clone(&program)).with_root(&[1]).expect("packets").with_usage();
    let mut filter = Filter::new(program).with_strings(strings()).with_root(&[1]).expect("packets");
    let expected: Vec<Option<Vec<u8>>> = packets.iter().map(|packet| filter.filter_to_vec(packet).ok()).collect();
    let refused = expected.iter().filter(|packet| packet.is_none()).count();
    let dropped = expected.iter().flatten().zip(&packets).filter(|(after, before)| after.len() < before.len()).count();
    assert!(refused > PACKETS / 50 && dropped > PACKETS / 2, "{refused} and {dropped}: a test that tests little");

    let mut expected = expected.into_iter().flatten();
    let (mut stats, mut empty) = (None, 0);
    for packet in wire::all(&trace, 1) {
        if let Some(found) = wire::last(packet, 35) {
            stats = wire::last(found, 11).map(<[u8]>::to_vec);
            continue;
        }
        empty += usize::from(packet.is_empty());
        again.filter_to_vec(packet).expect("a message");
        let sequence = wire::int(packet, SEQUENCE_ID);
        if sequence == 0 || sequence == SEQUENCE_ID_OF_SERVICE {
            continue;
        }
        let suffix = Proto::new().int(SEQUENCE_ID, sequence).0;
        let content = packet.strip_suffix(&suffix[..]).expect("what the service adds comes last");
        let wanted = expected.next().expect("no more packets than were written");
        assert_eq!(content.escape_ascii().to_string(), wanted.escape_ascii().to_string());
    }
    assert_eq!(expected.next(), None, "no fewer");
    let usage = again.usage().expect("it was asked for");
    assert!(usage.iter().all(|(_, count)| count > 0), "only what is allowed is left: {usage:?}");
    let stats = stats.expect("statistics of the filter");
    let errors = wire::int(&stats, 4);
    match service {
        Implementation::Ours => assert_eq!(errors, refused as u64),
        // Of v56, they are taken before the last packets go through the filter.
        Implementation::Theirs => assert!(errors <= refused as u64, "{errors} errors, {refused} malformed packets"),
    }
    // A consumer gets no packet in place of a malformed one; a file gets an empty packet.
    assert_eq!(empty, if writes_file { refused } else { 0 });
    Ok(())
}

/// Makes a packet of allowed and other fields, messages and strings. Sometimes a nested message is
/// malformed (a service drops a packet that is malformed at the top level).
fn packet(random: &mut Random) -> Proto {
    fields(random, &FIELDS, 3)
}

fn fields(random: &mut Random, numbers: &[u32], depth: u64) -> Proto {
    (0..1 + random.below(5)).fold(Proto::new(), |proto, _| {
        let number = numbers[random.below(numbers.len() as u64) as usize];
        match number {
            5 | 11 | 12 | 902 if depth > 0 => {
                let mut inner = fields(random, &INNER_FIELDS, depth - 1);
                match random.below(60) {
                    0 => drop(inner.0.pop()),
                    1 => inner.0.push(0x0f),
                    2 => inner.0.clear(),
                    _ => {}
                }
                proto.message(number, &inner)
            }
            4 | 5 | 11 | 12 | 14 | 900 | 901 | 902 => {
                let text = TEXTS[random.below(TEXTS.len() as u64) as usize];
                // These would be the bytes of a message.
                if matches!(number, 5 | 11 | 12) { proto.bytes(number, b"") } else { proto.bytes(number, text) }
            }
            _ => {
                let shift = random.below(64);
                proto.int(number, random.number() >> shift)
            }
        }
    })
}

fn strings() -> StringFilter {
    let mut strings = StringFilter::new();
    for (policy, pattern, prefix, semantic_type) in RULES {
        let rule = Rule::new(&EcmaScript, policy, pattern.as_bytes()).expect("a pattern");
        let types = SemanticTypes::from_numbers([semantic_type]).expect("a type");
        strings.add(rule.atrace_payload_starts_with(prefix).semantic_types(types)).expect("few");
    }
    strings
}

fn config(bytecode: &Bytecode) -> String {
    let escape = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "\\{byte:03o}");
            text
        })
    };
    let mut config = format!(
        "buffers {{ size_kb: 8192 fill_policy: DISCARD }}\ndata_sources {{ config {{ name: \"{SOURCE}\" }} }}\ntrace_filter {{\n  \
         bytecode: \"\\001\"\n  bytecode_v2: \"{}\"\n  bytecode_overlay_v54: \"{}\"\n  string_filter_chain {{\n",
        escape(&bytecode.bytecode),
        escape(&bytecode.overlay)
    );
    for (policy, pattern, prefix, semantic_type) in RULES {
        let policy = match policy {
            Policy::MatchRedactGroups => "SFP_MATCH_REDACT_GROUPS",
            Policy::AtraceMatchRedactGroups => "SFP_ATRACE_MATCH_REDACT_GROUPS",
            Policy::MatchBreak => "SFP_MATCH_BREAK",
            Policy::AtraceMatchBreak => "SFP_ATRACE_MATCH_BREAK",
            Policy::AtraceRepeatedSearchRedactGroups => "SFP_ATRACE_REPEATED_SEARCH_REDACT_GROUPS",
        };
        let types = if semantic_type == 0 { "" } else { "semantic_type: SEMANTIC_TYPE_ATRACE" };
        let _ = writeln!(
            config,
            "    rules {{ policy: {policy} regex_pattern: \"{}\" atrace_payload_starts_with: \"{prefix}\" {types} }}",
            escape(pattern.as_bytes())
        );
    }
    config + "  }\n}\n"
}
