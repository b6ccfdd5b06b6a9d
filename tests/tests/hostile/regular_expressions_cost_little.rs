//! Expressions in a config, and names that are made for them, cost a bounded amount
//! (`docs/spec/service.md` §21).

use esatto_tests::bystander;
use esatto_tests::raw::{self, RawConsumer, RawProducer};
use esatto_tests::wire::{self, Proto};

/// Goes back without end on a name of many `a`.
const HARD: &str = r"(a*)*b\1";
const NAME_BYTES: usize = 1000;

/// A config whose only data source is for producers with a name that one of these expressions
/// matches.
fn for_names(patterns: impl Iterator<Item = String>) -> Proto {
    let source = Proto::new().message(1, &Proto::new().bytes(1, "hard"));
    let source = patterns.fold(source, |source, pattern| source.bytes(3, pattern));
    Proto::new().message(1, &Proto::new().int(1, 64)).message(2, &source)
}

#[test]
fn a_config_with_thousands_of_them_is_refused_with_the_reason() {
    bystander::watch(|harness, _, _| {
        let large = |i| format!("(?:{i}[^]{{9}}){{60}}");
        let configs = [
            (for_names((0..10_909).map(|i| format!("{i}"))), "regular expressions"),
            (for_names((0..500).map(large)), "too large together"),
        ];
        for (config, reason) in configs {
            let mut consumer = RawConsumer::connect(harness);
            consumer.enable(&config);
            let reply = consumer.ended();
            let error = String::from_utf8_lossy(wire::last(&reply.body, 3).unwrap_or_default()).into_owned();
            assert!(error.contains(reason), "{reply:?}: '{error}'");
        }
    });
}

#[test]
fn a_name_is_tested_once_for_a_frame_of_triggers_and_registrations() {
    bystander::watch(|harness, _, _| {
        let mut consumer = RawConsumer::connect(harness);
        let trigger = Proto::new().bytes(1, "t").bytes(2, HARD);
        let triggers = Proto::new().int(1, 1).message(2, &trigger).int(3, 60_000);
        consumer.enable(&for_names(std::iter::once(HARD.to_owned())).message(17, &triggers));
        let mut producer = RawProducer::connect(harness, &"a".repeat(NAME_BYTES));
        for _ in 0..200 {
            producer.offer("hard");
        }
        let many = (0..4000).fold(Proto::new(), |request, _| request.bytes(1, "t"));
        assert!(producer.call("ActivateTriggers", &many).success);
        consumer.disable();
    });
}

/// As many as fit into a page. Each costs all the attempts that a string may cost. A reader without
/// a bound for the packet would serve no other client for minutes.
const STRINGS: usize = 140;
const STRING_BYTES: usize = 24;
const PACKETS: u32 = 12;

#[test]
fn a_packet_of_hard_strings_is_redacted() {
    bystander::watch(|harness, _, _| {
        // Trace.packet is message 1, whose field 900 (for_testing) is message 2, whose field 1 is a
        // string with rules.
        let bytecode = esatto_filter::Builder::new(esatto_filter::Version::V2)
            .nested(1, esatto_filter::MessageId(1))
            .and_then(|builder| builder.end_message().nested(900, esatto_filter::MessageId(2)))
            .and_then(|builder| builder.end_message().string(1, esatto_filter::StringField::default()))
            .and_then(|builder| builder.end_message().build())
            .expect("bytecode");
        let rule = Proto::new().int(1, 1).bytes(2, HARD);
        let filter = Proto::new().bytes(2, &bytecode.bytecode).message(3, &Proto::new().message(1, &rule));
        let mut consumer = RawConsumer::connect(harness);
        consumer.enable(&raw::config(1024, &["hard"]).message(33, &filter));
        let mut producer = RawProducer::connect(harness, "strings");
        producer.offer("hard");
        let buffer = producer.await_start().buffer;
        let strings = (0..STRINGS).fold(Proto::new(), |strings, _| strings.bytes(1, "a".repeat(STRING_BYTES)));
        let packet = Proto::new().message(900, &strings);
        for chunk in 0..PACKETS {
            producer.commit_chunk(buffer, &raw::RawChunk::new(1, chunk, &[&packet.0]));
        }
        let read = consumer.read();
        let found: Vec<&[u8]> = read.iter().filter_map(|packet| wire::last(packet, 900)).collect();
        assert_eq!(found.len(), PACKETS as usize);
        for strings in found {
            let strings = wire::all(strings, 1);
            assert_eq!(strings.len(), STRINGS);
            assert!(strings.iter().all(|string| string.starts_with(b"P60REDACTED---")));
        }
    });
}
