//! Trace filters: the packets that remain of a session (`docs/spec/service.md §21`).

use esatto_filter::{Builder, MessageId, SemanticType, StringField, Version};
use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::trace_config::TraceFilter;
use esatto_schema::trace_config::trace_filter::{StringFilterChain, StringFilterPolicy, StringFilterRule};
use esatto_schema::trace_stats::FilterStats;
use esatto_schema::{GetTraceStatsResponse, ReadBuffersResponse, TraceConfig, TracePacketReader, TraceReader};
use esatto_service::{FileId, Input};

use crate::world::{World, buffer, config, packet, source, text_of};

const FOR_TESTING: u32 = 900;
const SEQUENCE_ID: u32 = 10;

fn typed(number: u32) -> StringField {
    StringField { semantic_type: SemanticType(number), ..StringField::default() }
}

/// Bytecode that leaves the sequence and the text of a packet, which goes through string rules.
fn texts_only() -> Vec<u8> {
    let mut builder = Builder::new(Version::V54);
    builder.nested(1, MessageId(1)).unwrap().end_message();
    builder.pass(SEQUENCE_ID).unwrap().nested(FOR_TESTING, MessageId(2)).unwrap().end_message();
    builder.string(1, typed(0)).unwrap().end_message();
    builder.build().unwrap().bytecode
}

/// Bytecode that allows nothing below `Trace.packet`.
fn nothing() -> Vec<u8> {
    let mut builder = Builder::new(Version::V2);
    builder.nested(1, MessageId(1)).unwrap().end_message().end_message();
    builder.build().unwrap().bytecode
}

fn rule(name: &str, policy: i32, pattern: &str) -> StringFilterRule {
    StringFilterRule {
        policy: Some(StringFilterPolicy(policy)),
        regex_pattern: Some(pattern.into()),
        name: Some(name.into()),
        ..StringFilterRule::default()
    }
}

fn chain(rules: Vec<StringFilterRule>) -> Option<StringFilterChain> {
    Some(StringFilterChain { rules, ..StringFilterChain::default() })
}

fn filtered(filter: TraceFilter) -> TraceConfig {
    TraceConfig { trace_filter: Some(Box::new(filter)), ..config(&["ds"]) }
}

fn of_bytecode(bytecode: Vec<u8>) -> TraceFilter {
    TraceFilter { bytecode_v2: Some(bytecode), ..TraceFilter::default() }
}

fn filter_stats(world: &mut World, consumer: esatto_service::ClientId) -> FilterStats {
    let call = world.consumer_call(consumer, method::GetTraceStats::METHOD, &[]);
    let reply = GetTraceStatsResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap();
    *reply.trace_stats.unwrap().filter_stats.expect("statistics of the filter")
}

/// The packets that two committed packets of one producer become.
fn read(filter: TraceFilter, packets: &[&[u8]]) -> (Vec<Vec<u8>>, FilterStats) {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let ended = world.enable(consumer, &filtered(filter));
    assert_eq!(world.ended(ended), None);
    world.commit(&mut producer, 1, 1, 0, packets);
    let packets = world.read(consumer);
    let stats = filter_stats(&mut world, consumer);
    (packets, stats)
}

#[test]
fn only_allowed_fields_and_the_statistics_are_read() {
    let (packets, stats) = read(of_bytecode(texts_only()), &[&packet("a"), &packet("b")]);
    let (last, others) = packets.split_last().unwrap();
    assert!(TracePacketReader::new(last).trace_stats().is_some(), "statistics pass, whatever the filter says");
    let data = |text: &str, sequence| [&b"\xa2\x38\x03\x0a\x01"[..], text.as_bytes(), &[0x50, sequence]].concat();
    let (service, data_packets): (Vec<_>, Vec<_>) = others.iter().partition(|packet| packet.len() == 2);
    assert_eq!(data_packets, [&data("a", 2), &data("b", 2)]);
    assert!(service.iter().all(|packet| packet[..] == [0x50, 1]), "of the service's packets, the sequence is left");
    assert_eq!(stats.errors, Some(0));
    assert_eq!(stats.input_packets, Some(packets.len() as u64));
    let out: usize = packets.iter().map(Vec::len).sum();
    assert_eq!(stats.output_bytes, Some(out as u64));
    // The fields that the service appended, and the mark of the first packet.
    assert_eq!(stats.bytes_discarded_per_buffer, [2 * (3 + 3 + 3)]);
    assert_eq!(stats.time_taken_ns, None);
}

#[test]
fn the_statistics_in_the_trace_are_of_the_pass_that_they_end() {
    let (packets, _) = read(of_bytecode(nothing()), &[&packet("a"), &packet("b")]);
    let [stats] = &packets[..] else { panic!("{packets:x?}") };
    let stats = TracePacketReader::new(stats).trace_stats().unwrap();
    let filter = stats.filter_stats().unwrap();
    assert_eq!((filter.output_bytes(), filter.errors()), (Some(0), Some(0)));
    assert_eq!(filter.input_packets(), Some(9 + 2 + 1), "all but the statistics");
}

#[test]
fn packets_that_cannot_be_filtered_are_dropped() {
    // Well-formed at the top; inside, a string is longer than its message.
    let broken = b"\xa2\x38\x03\x0a\x07a";
    let (packets, stats) = read(of_bytecode(texts_only()), &[broken, &packet("b")]);
    let texts: Vec<_> = packets.iter().filter_map(|packet| text_of(packet)).collect();
    assert_eq!(texts, ["b"]);
    assert_eq!(stats.errors, Some(1));
    let out: usize = packets.iter().map(Vec::len).sum();
    assert_eq!(stats.output_bytes, Some(out as u64));
}

#[test]
fn fully_filtered_packets_are_empty_in_a_file_and_absent_elsewhere() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig { write_into_file: Some(true), ..filtered(of_bytecode(nothing())) };
    world.enable_with(consumer, &config, true);
    world.commit(&mut producer, 1, 1, 0, &[&packet("a"), &packet("b")]);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let trace = TraceReader::parse(&world.files[&FileId(1)]).unwrap();
    let sizes: Vec<usize> = trace.packet().map(|packet| packet.as_bytes().len()).collect();
    let (stats, empty) = sizes.split_last().unwrap();
    assert!(*stats > 0 && empty.len() > 2 && empty.iter().all(|&size| size == 0), "{sizes:?}");
}

#[test]
fn strings_go_through_both_chains_in_order() {
    let filter = TraceFilter {
        string_filter_chain: chain(vec![rule("keep", 3, "keep.*"), rule("", 1, "(.).*")]),
        string_filter_chain_v54: chain(vec![rule("keep", 3, "stay.*"), rule("", 1, ".*")]),
        ..of_bytecode(texts_only())
    };
    let (packets, _) = read(filter, &[&packet("keep me"), &packet("stay here")]);
    let texts: Vec<_> = packets.iter().filter_map(|packet| text_of(packet)).collect();
    assert_eq!(texts, ["Peep me", "stay here"], "the second chain's rule is in the place of the first's");
}

#[test]
fn rules_are_for_their_semantic_types() {
    for (types, text) in [(&[][..], "P"), (&[0], "P"), (&[1], "x"), (&[0, 1], "P")] {
        let mut rule = rule("", 1, "(.*)");
        rule.semantic_type = types.iter().map(|&number| esatto_schema::SemanticType(number)).collect();
        let filter = TraceFilter { string_filter_chain: chain(vec![rule]), ..of_bytecode(texts_only()) };
        let (packets, _) = read(filter, &[&packet("x")]);
        assert_eq!(packets.iter().find_map(|packet| text_of(packet)).as_deref(), Some(text), "{types:?}");
    }
}

#[test]
fn bytecode_v2_goes_before_bytecode() {
    let both = TraceFilter { bytecode: Some(vec![1]), ..of_bytecode(nothing()) };
    assert_eq!(read(both, &[&packet("a")]).0.len(), 1);
    let old = TraceFilter { bytecode: Some(nothing()), bytecode_v2: Some(Vec::new()), ..TraceFilter::default() };
    assert_eq!(read(old, &[&packet("a")]).0.len(), 1);
}

#[test]
fn an_overlay_changes_the_allowed_fields() {
    let mut builder = Builder::new(Version::V2);
    builder.nested(1, MessageId(1)).unwrap().end_message();
    builder.pass(SEQUENCE_ID).unwrap().string(FOR_TESTING, typed(3)).unwrap().end_message();
    let built = builder.build().unwrap();
    assert!(!built.overlay.is_empty());
    let filter = TraceFilter { bytecode_overlay_v54: Some(built.overlay), ..of_bytecode(built.bytecode) };
    let (packets, _) = read(filter, &[&packet("a")]);
    assert!(packets.iter().any(|packet| text_of(packet).as_deref() == Some("a")));
}

#[test]
fn row_25_a_filter_that_cannot_be_loaded_is_refused() {
    let mut bad_checksum = nothing();
    *bad_checksum.last_mut().unwrap() ^= 1;
    let mut flat = Builder::new(Version::V2);
    let flat = flat.pass(1).unwrap().end_message().build().unwrap().bytecode;
    let with_rule = |rule| TraceFilter { string_filter_chain_v54: chain(vec![rule]), ..of_bytecode(texts_only()) };
    let of_type = |number| {
        let semantic_type = vec![esatto_schema::SemanticType(number)];
        with_rule(StringFilterRule { semantic_type, ..rule("", 1, "a") })
    };
    let overlay = TraceFilter { bytecode_overlay_v54: Some(vec![1]), ..of_bytecode(texts_only()) };
    for (filter, expected) in [
        (TraceFilter::default(), "trace_filter.bytecode: the bytecode is empty"),
        (of_bytecode(bad_checksum), "trace_filter.bytecode_v2: checksum"),
        (of_bytecode(vec![0xff]), "trace_filter.bytecode_v2: no varint at byte 0"),
        (of_bytecode(flat), "trace_filter.bytecode_v2 has no nested message for Trace.packet: field 1 of message 0"),
        (overlay, "trace_filter.bytecode_v2: checksum"),
        (with_rule(rule("", 0, "a")), "trace_filter.string_filter_chain_v54.rules[0]: unknown string policy 0"),
        (with_rule(rule("", 6, "a")), "unknown string policy 6"),
        (with_rule(rule("", -1, "a")), "unknown string policy"),
        (with_rule(rule("", 1, "a(")), "trace_filter.string_filter_chain_v54.rules[0]: "),
        (of_type(128), "semantic type 128"),
        (of_type(-1), "semantic type"),
    ] {
        let mut world = World::new();
        let consumer = world.consumer();
        let call = world.enable(consumer, &filtered(filter));
        let error = world.ended(call).expect("a refusal");
        assert!(error.contains(expected), "{error:?} is not {expected:?}");
        let again = world.enable(consumer, &config(&[]));
        assert_eq!(world.ended(again), None, "the consumer may try again");
    }
}

#[test]
fn a_pass_ends_after_its_input_limit_even_if_all_is_filtered_out() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let config = TraceConfig {
        buffers: vec![buffer(4096)],
        data_sources: vec![source("ds")],
        ..filtered(of_bytecode(nothing()))
    };
    world.enable(consumer, &config);
    let long = packet(&"x".repeat(3500));
    for id in 0..1000 {
        world.commit(&mut producer, 1, 1, id, &[&long]);
    }
    world.is_slow = true;
    let call = world.consumer_call(consumer, method::ReadBuffers::METHOD, &[]);
    assert!(world.replies[&call].back().unwrap().has_more, "nothing was sent, and yet it is time for others");
    let mut passes = 1;
    while world.replies[&call].back().unwrap().has_more {
        world.feed(Input::Ready(consumer));
        passes += 1;
    }
    assert!(passes > 20, "{passes} for 3.5 MB");
}

#[test]
fn a_clone_is_filtered_unless_it_is_for_a_bug_report() {
    use crate::clones::{answer, ask, by_id};
    let unfiltered = esatto_schema::CloneSessionRequest { skip_trace_filter: Some(true), ..by_id(1) };
    for (request, is_filtered) in [(by_id(1), true), (unfiltered, false), (by_id(u64::MAX), false)] {
        let mut world = World::new();
        let mut producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        let config = TraceConfig { bugreport_score: Some(1), ..filtered(of_bytecode(nothing())) };
        world.enable(consumer, &config);
        world.commit(&mut producer, 1, 1, 0, &[&packet("secret")]);
        let cloner = world.consumer();
        let call = ask(&mut world, cloner, &request);
        world.acknowledge_flush(&producer, u64::MAX);
        assert_eq!(answer(&world, call).unwrap().success, Some(true));
        assert_eq!(world.read_texts(cloner).is_empty(), is_filtered, "{request:?}");
        assert!(world.read_texts(consumer).is_empty(), "the session's own filter stays");
    }
}

#[test]
fn a_clone_has_its_own_filter_or_none() {
    use crate::clones::{answer, ask, by_id};
    for skip in [false, true] {
        let mut world = World::new();
        let mut producer = world.producer("p");
        let descriptor =
            esatto_schema::DataSourceDescriptor { name: Some("ds".into()), no_flush: Some(true), ..Default::default() };
        world.register_as(&producer, descriptor);
        let consumer = world.consumer();
        let filter = TraceFilter { string_filter_chain: chain(vec![rule("", 1, "(.*)")]), ..of_bytecode(texts_only()) };
        world.enable(consumer, &filtered(filter));
        world.commit(&mut producer, 1, 1, 0, &[&packet("secret")]);
        let other = world.consumer();
        let request = esatto_schema::CloneSessionRequest { skip_trace_filter: Some(skip), ..by_id(1) };
        let call = ask(&mut world, other, &request);
        assert_eq!(answer(&world, call).expect("an answer").success, Some(true));
        let packets = world.read(other);
        let texts: Vec<_> = packets.iter().filter_map(|packet| text_of(packet)).collect();
        assert_eq!(texts, [if skip { "secret" } else { "P60RED" }]);
        let stats = TracePacketReader::new(packets.last().unwrap()).trace_stats().expect("statistics of a clone");
        let counted = stats.filter_stats().map(|stats| stats.input_packets().unwrap());
        assert_eq!(counted, (!skip).then_some(packets.len() as u64 - 1), "those of the clone alone");
        let first = world.read(consumer).iter().find_map(|packet| text_of(packet));
        assert_eq!(first.as_deref(), Some("P60RED"), "the session is not changed");
    }
}

/// Most work of a step that reads: `WORK_PER_TURN`, and the cost of one packet beyond it.
const MOST_WORK: u64 = (1 << 17) + (1 << 24) / 16 + 10_000;

/// Strings that keep an expression busy make the turns of reading shorter, not longer: others are
/// served in between, and everything arrives.
#[test]
fn hard_strings_are_work_of_a_turn() {
    const PACKETS: usize = 40;
    let hard = rule("hard", 1, r"(a*)*b\1");
    let linear = rule("linear", 1, &format!("({})", "(a|b)".repeat(300)));
    for (rule, text, least) in [(hard, "a".repeat(24), 5), (linear, "ab".repeat(10_000), 3)] {
        let mut world = World::new();
        let mut producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        let filter = TraceFilter { string_filter_chain_v54: chain(vec![rule]), ..of_bytecode(texts_only()) };
        world.enable(consumer, &TraceConfig { buffers: vec![buffer(1024)], ..filtered(filter) });
        for id in 0..PACKETS {
            world.commit(&mut producer, 1, 1, id as u32, &[&packet(&text)]);
        }
        world.is_slow = true;
        let before = world.service.work();
        let call = world.consumer_call(consumer, method::ReadBuffers::METHOD, &[]);
        let (mut turns, mut last) = (1, before);
        loop {
            let work = world.service.work();
            assert!(work - last <= MOST_WORK, "{} in one turn", work - last);
            last = work;
            if world.replies[&call].back().is_some_and(|reply| !reply.has_more) {
                break;
            }
            world.feed(Input::Ready(consumer));
            turns += 1;
        }
        assert!(turns >= least, "{turns} turns for {} units", last - before);
        let slices = world.replies[&call]
            .iter()
            .flat_map(|reply| ReadBuffersResponse::decode(reply.body.as_bytes()).unwrap().slices.into_iter());
        let ends = slices.filter(|slice| slice.last_slice_for_packet == Some(true)).count();
        assert!(ends >= PACKETS, "{ends} packets");
    }
}
