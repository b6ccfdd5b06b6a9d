//! A clone is a snapshot of a session: whole, read-only, and without effect on the session.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::trace_config::BufferConfig;
use esatto_schema::{
    CloneSessionRequest, CloneSessionResponse, QueryServiceStateResponse, TraceConfig, TracePacketReader,
};
use esatto_service::{CallId, ClientId, Input};

use crate::world::{FakeProducer, World, buffer, config, packet, source, text_of};

pub(crate) fn by_id(session_id: u64) -> CloneSessionRequest {
    CloneSessionRequest { session_id: Some(session_id), ..Default::default() }
}

pub(crate) fn by_name(name: &str) -> CloneSessionRequest {
    CloneSessionRequest { unique_session_name: Some(name.into()), ..Default::default() }
}

pub(crate) fn ask(world: &mut World, consumer: ClientId, request: &CloneSessionRequest) -> CallId {
    world.consumer_call_with(consumer, method::CloneSession::METHOD, &request.encode(), true)
}

/// The answer to CloneSession, if there is one.
pub(crate) fn answer(world: &World, call: CallId) -> Option<CloneSessionResponse> {
    let reply = world.replies.get(&call)?.front()?;
    assert!(!reply.has_more);
    Some(CloneSessionResponse::decode(reply.body.as_bytes()).unwrap())
}

/// Makes a clone that is to succeed. Producers have nothing to flush, or have flushed.
fn cloned(world: &mut World, consumer: ClientId, request: &CloneSessionRequest) -> CloneSessionResponse {
    let call = ask(world, consumer, request);
    let answer = answer(world, call).expect("nothing to wait for");
    assert_eq!((answer.success, answer.error.clone()), (Some(true), None));
    answer
}

fn refusal(world: &mut World, consumer: ClientId, request: &CloneSessionRequest) -> String {
    let call = ask(world, consumer, request);
    let answer = answer(world, call).expect("a refusal is immediate");
    assert_eq!((answer.success, answer.uuid_msb), (Some(false), Some(0)));
    answer.error.expect("why it failed").to_string()
}

/// A world with a session (id 1, buffer 1) of uid 1000 that records data source "ds", which does
/// not flush.
fn recording(config: &TraceConfig) -> (World, FakeProducer, ClientId) {
    let mut world = World::new();
    let producer = world.producer("p");
    world.register_as(
        &producer,
        esatto_schema::DataSourceDescriptor { name: Some("ds".into()), no_flush: Some(true), ..Default::default() },
    );
    let consumer = world.consumer();
    world.enable(consumer, config);
    (world, producer, consumer)
}

fn texts(packets: &[Vec<u8>]) -> Vec<String> {
    packets.iter().filter_map(|packet| text_of(packet)).collect()
}

/// Returns the service's events in a trace, in order.
fn events(packets: &[Vec<u8>]) -> Vec<String> {
    let name = |packet: &Vec<u8>| {
        let event = TracePacketReader::new(packet).service_event()?;
        Some(if let Some(index) = event.buffer_cloned() {
            format!("buffer_cloned {index}")
        } else if event.clone_started().is_some() {
            "clone_started".to_owned()
        } else if event.flush_started().is_some() {
            "flush_started".to_owned()
        } else if event.all_data_sources_flushed().is_some() {
            "flushed".to_owned()
        } else if event.tracing_started().is_some() {
            "started".to_owned()
        } else if event.tracing_disabled().is_some() {
            "disabled".to_owned()
        } else if event.all_data_sources_started().is_some() {
            "all_started".to_owned()
        } else if event.read_tracing_buffers_completed().is_some() {
            "completed".to_owned()
        } else if let Some(slow) = event.last_flush_slow_data_sources() {
            let names =
                slow.data_source().map(|ds| String::from_utf8_lossy(ds.data_source_name().unwrap()).into_owned());
            format!("slow {:?}", names.collect::<Vec<_>>())
        } else {
            format!("{event:?}")
        })
    };
    packets.iter().filter_map(name).collect()
}

fn stats(packets: &[Vec<u8>]) -> esatto_schema::TraceStats {
    let found = packets.iter().find_map(|packet| TracePacketReader::new(packet).trace_stats());
    esatto_schema::TraceStats::decode(found.expect("stats").as_bytes()).unwrap()
}

fn states(world: &mut World, consumer: ClientId) -> Vec<(u64, String)> {
    let call = world.consumer_call(consumer, method::QueryServiceState::METHOD, &[]);
    let state = QueryServiceStateResponse::decode(world.replies[&call][0].body.as_bytes()).unwrap().service_state;
    let sessions = state.unwrap().tracing_sessions;
    sessions.iter().map(|session| (session.id.unwrap(), session.state.clone().unwrap().to_string())).collect()
}

#[test]
fn a_clone_holds_the_recorded_data_and_the_session_continues() {
    let uuid = TraceConfig { trace_uuid_msb: Some(77), trace_uuid_lsb: Some(88), ..config(&["ds"]) };
    let (mut world, mut producer, consumer) = recording(&uuid);
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    let cloner = world.consumer();
    let made = cloned(&mut world, cloner, &by_id(1));
    assert_eq!((made.uuid_lsb, made.was_write_into_file), (Some(88), Some(false)));
    assert_ne!(made.uuid_msb, Some(77));
    world.commit(&mut producer, 1, 1, 1, &[&packet("b")]);

    let packets = world.read(cloner);
    assert_eq!(texts(&packets), ["a"]);
    let uuids: Vec<_> = packets.iter().filter_map(|packet| TracePacketReader::new(packet).trace_uuid()).collect();
    assert_eq!((uuids[0].msb(), uuids[0].lsb()), (made.uuid_msb, Some(88)));
    let echo = packets.iter().find_map(|packet| TracePacketReader::new(packet).trace_config()).unwrap();
    assert_eq!(TraceConfig::decode(echo.as_bytes()).unwrap(), uuid);
    let told = ["started", "all_started", "flush_started", "clone_started", "flushed", "flushed"];
    let of_clone = ["buffer_cloned 0", "disabled", "completed"];
    assert_eq!(events(&packets), [&told[..], &of_clone[..]].concat());
    let stats = stats(&packets);
    assert_eq!((stats.flushes_requested, stats.flushes_succeeded), (Some(2), Some(2)));
    assert_eq!(stats.final_flush_outcome.unwrap().0, 1);
    assert_eq!(world.read_texts(consumer), ["a", "b"], "the session has lost nothing");
}

#[test]
fn a_clone_is_read_once_and_freed() {
    let (mut world, mut producer, consumer) = recording(&config(&["ds"]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    let cloner = world.consumer();
    cloned(&mut world, cloner, &by_id(1));
    assert_eq!(states(&mut world, consumer), [(1, "STARTED".into()), (2, "CLONED_READ_ONLY".into())]);
    for method in [method::StartTracing::METHOD, method::DisableTracing::METHOD] {
        world.consumer_call(cloner, method, &[]);
    }
    let flush = world.consumer_call(cloner, method::Flush::METHOD, &[]);
    assert!(world.rejected.contains(&flush));
    assert_eq!(world.read_texts(cloner), ["a"]);
    assert_eq!(world.read(cloner).len(), 1, "only the end is told again");
    world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
    assert_eq!(states(&mut world, consumer), [(1, "STARTED".into())]);
    cloned(&mut world, cloner, &by_id(1));
    world.feed(Input::ConsumerDisconnected(cloner));
    assert_eq!(states(&mut world, consumer), [(1, "STARTED".into())]);
}

#[test]
fn a_clone_has_no_packets_that_were_read_and_new_sequences() {
    let (mut world, mut producer, consumer) = recording(&config(&["ds"]));
    let plain = |text: &str| {
        let mut buffer = esatto_protozero::HeapBuffer::new();
        esatto_schema::TracePacketWriter::from(buffer.message()).for_testing().str(text);
        buffer.to_vec()
    };
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    assert_eq!(world.read_texts(consumer), ["a"]);
    world.commit(&mut producer, 1, 1, 1, &[&plain("b")]);
    let cloner = world.consumer();
    cloned(&mut world, cloner, &by_id(1));
    assert_eq!(world.read_texts(cloner), ["b=1"], "the clone's reader did not see what was before");
    assert_eq!(world.read_texts(consumer), ["b"]);
}

#[test]
fn provenance_and_packets_of_a_clone_name_the_same_sequences() {
    let (mut world, mut producer, consumer) = recording(&config(&["ds"]));
    for writer in [5, 6] {
        world.commit(&mut producer, 1, writer, 0, &[&packet(&format!("w{writer}"))]);
    }
    let cloner = world.consumer();
    cloned(&mut world, cloner, &by_id(1));
    for reader in [cloner, consumer] {
        let packets = world.read(reader);
        let packets: Vec<_> = packets.iter().map(|packet| TracePacketReader::new(packet)).collect();
        let provenance = packets.iter().find_map(|packet| packet.trace_provenance()).unwrap();
        let buffers: Vec<_> = provenance.buffers().collect();
        let mut listed: Vec<u32> = buffers[0].sequences().map(|sequence| sequence.id().unwrap()).collect();
        let mut used: Vec<u32> = packets
            .iter()
            .filter(|packet| packet.for_testing().is_some())
            .map(|packet| packet.trusted_packet_sequence_id().unwrap())
            .collect();
        listed.sort_unstable();
        used.sort_unstable();
        assert_eq!(listed, used);
        assert_eq!(listed.len(), 2);
    }
}

#[test]
fn data_sources_flush_first_in_two_groups() {
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let mut config = TraceConfig { buffers: vec![buffer(64), moved], ..config(&["fast", "slow"]) };
    config.data_sources[1].config.as_mut().unwrap().target_buffer = Some(1);
    let mut world = World::new();
    let mut fast = world.producer("fast");
    let mut slow = world.producer("slow");
    world.register(&fast, "fast");
    world.register(&slow, "slow");
    let consumer = world.consumer();
    world.enable(consumer, &config);
    world.commands(&fast);
    world.commands(&slow);
    world.commit(&mut slow, 2, 1, 0, &[&packet("s1")]);

    let cloner = world.consumer();
    let call = ask(&mut world, cloner, &by_id(1));
    let asked = |commands: Vec<esatto_schema::GetAsyncCommandResponse>| {
        let flush = commands[0].flush.clone().unwrap();
        assert_eq!((commands.len(), flush.flags), (1, Some(0x13)), "by the service, for a clone");
        (flush.request_id.unwrap(), flush.data_source_ids)
    };
    let (slow_flush, fast_flush) = (asked(world.commands(&slow)), asked(world.commands(&fast)));
    assert_eq!((slow_flush, fast_flush.clone()), ((1, vec![2]), (2, vec![1])), "those that are moved come first");

    world.commit(&mut fast, 1, 1, 0, &[&packet("f1")]);
    world.acknowledge_flush(&fast, fast_flush.0);
    assert_eq!(answer(&world, call), None);
    world.commit(&mut fast, 1, 1, 1, &[&packet("f2: too late")]);
    world.advance_ms(1);
    world.commit(&mut slow, 2, 1, 1, &[&packet("s2")]);
    world.acknowledge_flush(&slow, 1);
    assert_eq!(answer(&world, call).unwrap().success, Some(true));
    world.commit(&mut slow, 2, 1, 2, &[&packet("s3")]);

    let packets = world.read(cloner);
    assert_eq!(texts(&packets), ["f1", "s1", "s2"]);
    assert_eq!(stats(&packets).final_flush_outcome.unwrap().0, 1);
    let told = events(&packets);
    let taken: Vec<_> = told.iter().filter(|event| event.starts_with("buffer_cloned")).collect();
    assert_eq!(taken, ["buffer_cloned 0", "buffer_cloned 1"], "by the time at which they were taken");
    assert_eq!(
        world.read_texts(consumer),
        ["f1", "f2: too late", "s3"],
        "what was moved is not in the session any more"
    );
}

#[test]
fn a_failed_flush_still_makes_a_clone() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "lazy");
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { flush_timeout_ms: Some(300), ..config(&["lazy"]) });
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    let cloner = world.consumer();
    let call = ask(&mut world, cloner, &by_id(1));
    world.advance_ms(299);
    assert_eq!(answer(&world, call), None);
    world.advance_ms(1);
    assert_eq!(answer(&world, call).unwrap().success, Some(true));
    let packets = world.read(cloner);
    assert_eq!(texts(&packets), ["a"]);
    assert_eq!(stats(&packets).final_flush_outcome.unwrap().0, 2);
    assert!(events(&packets).contains(&r#"slow ["lazy"]"#.to_owned()), "{:?}", events(&packets));
}

#[test]
fn a_session_that_does_not_run_is_cloned_without_flush() {
    let (mut world, mut producer, consumer) = recording(&config(&["ds"]));
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    let cloner = world.consumer();
    cloned(&mut world, cloner, &by_id(1));
    let packets = world.read(cloner);
    assert_eq!((texts(&packets), stats(&packets).final_flush_outcome.unwrap().0), (vec!["a".to_owned()], 2));
    // A clone can also be cloned, by its id.
    let other = world.consumer();
    cloned(&mut world, other, &by_id(2));
}

#[test]
fn buffers_are_cleared_before_the_flush_if_the_config_says_so() {
    let cleared = BufferConfig { clear_before_clone: Some(true), ..buffer(64) };
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    world.enable(consumer, &TraceConfig { buffers: vec![cleared], ..config(&["ds"]) });
    world.commit(&mut producer, 1, 1, 0, &[&packet("old")]);
    let cloner = world.consumer();
    let call = ask(&mut world, cloner, &by_id(1));
    world.commit(&mut producer, 1, 1, 1, &[&packet("state now")]);
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(answer(&world, call).unwrap().success, Some(true));
    assert_eq!(world.read_texts(cloner), ["state now"]);
    assert_eq!(world.read_texts(consumer), ["state now"]);
}

#[test]
fn writers_of_emptied_buffers_renew_their_state() {
    let transferred = || BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let cleared = || BufferConfig { clear_before_clone: Some(true), ..buffer(64) };
    for (emptied, expected) in [(transferred(), true), (cleared(), true), (buffer(64), false)] {
        let mut world = World::new();
        let mut producer = world.producer("p");
        for name in ["ds", "other"] {
            world.register_as(
                &producer,
                esatto_schema::DataSourceDescriptor {
                    name: Some(name.into()),
                    no_flush: Some(true),
                    handles_incremental_state_clear: Some(true),
                    ..Default::default()
                },
            );
        }
        let mut of_other = source("other");
        of_other.config.get_or_insert_with(Default::default).target_buffer = Some(1);
        let sources = vec![source("ds"), of_other];
        let config = TraceConfig { buffers: vec![emptied, buffer(64)], data_sources: sources, ..config(&[]) };
        let consumer = world.consumer();
        world.enable(consumer, &config);
        let cloner = world.consumer();
        for round in 0..2 {
            let commands = world.commands(&producer);
            let started = commands.iter().filter_map(|command| command.start_data_source.as_ref()?.new_instance_id);
            let started: Vec<u64> = started.collect();
            world.commit(&mut producer, 1, 1, round, &[&packet("names")]);
            cloned(&mut world, cloner, &by_id(1));
            world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
            let clears: Vec<_> =
                world.commands(&producer).into_iter().filter_map(|command| command.clear_incremental_state).collect();
            assert_eq!(clears.len(), usize::from(expected), "one for what is emptied");
            if let (Some(clear), Some(first)) = (clears.first(), started.first()) {
                assert_eq!(clear.data_source_ids, [*first], "the other buffer keeps its content");
            }
        }
        // Nothing was taken, so nothing is missing.
        cloned(&mut world, cloner, &by_id(1));
        assert!(world.commands(&producer).iter().all(|command| command.clear_incremental_state.is_none()));
    }
}

#[test]
fn sessions_are_found_by_id_by_name_and_for_bug_reports() {
    let mut world = World::new();
    let scores = [("plain", 0), ("good", 7), ("best", 9), ("negative", -1)];
    let mut owners = Vec::new();
    for (name, score) in scores {
        let owner = world.consumer();
        let config = TraceConfig {
            unique_session_name: Some(name.into()),
            bugreport_score: Some(score),
            trace_uuid_lsb: Some(score.into()),
            trace_uuid_msb: Some(1),
            ..config(&[])
        };
        world.enable(owner, &config);
        owners.push(owner);
    }
    let cloner = world.consumer_of(0);
    let bugreport = by_id(u64::MAX);
    let lsb_of = |world: &mut World, request: &CloneSessionRequest| {
        let made = cloned(world, cloner, request);
        world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
        made.uuid_lsb.unwrap()
    };
    assert_eq!(lsb_of(&mut world, &by_id(4)), -1);
    assert_eq!(lsb_of(&mut world, &by_name("good")), 7);
    assert_eq!(lsb_of(&mut world, &bugreport), 9);
    // Only sessions that run are worth a report, and a clone has no name.
    let keeper = world.consumer();
    cloned(&mut world, keeper, &by_name("best"));
    world.consumer_call(owners[2], method::FreeBuffers::METHOD, &[]);
    assert_eq!(lsb_of(&mut world, &bugreport), 7);
    world.consumer_call(owners[1], method::DisableTracing::METHOD, &[]);
    assert!(refusal(&mut world, cloner, &bugreport).contains("bugreport_score"));
    for nothing in [by_name("best"), by_name(""), by_id(0), by_id(99), CloneSessionRequest::default()] {
        assert!(refusal(&mut world, cloner, &nothing).contains("no such session"));
    }
    let again = world.consumer();
    let named = TraceConfig { unique_session_name: Some("best".into()), ..config(&[]) };
    let end = world.enable(again, &named);
    assert_eq!(world.ended(end), None, "the name of a clone is not taken");
}

#[test]
fn a_flush_for_a_bug_report_says_so() {
    for request in [by_id(u64::MAX), CloneSessionRequest { for_bugreport: Some(true), ..by_id(1) }] {
        let mut world = World::new();
        let producer = world.producer("p");
        world.register(&producer, "ds");
        let consumer = world.consumer();
        world.enable(consumer, &TraceConfig { bugreport_score: Some(1), ..config(&["ds"]) });
        world.commands(&producer);
        let cloner = world.consumer();
        ask(&mut world, cloner, &request);
        assert_eq!(world.commands(&producer)[0].flush.as_ref().unwrap().flags, Some(0x113));
    }
}

#[test]
fn only_root_clones_sessions_of_other_users() {
    let (mut world, _, _) = recording(&TraceConfig { bugreport_score: Some(1), ..config(&["ds"]) });
    let stranger = world.consumer_of(1001);
    assert!(refusal(&mut world, stranger, &by_id(1)).contains("another user"));
    assert!(refusal(&mut world, stranger, &by_id(u64::MAX)).contains("no session"));
    let root = world.consumer_of(0);
    cloned(&mut world, root, &by_id(1));
}

#[test]
fn the_number_of_clones_is_limited() {
    let (mut world, _, _) = recording(&config(&["ds"]));
    for _ in 0..10 {
        let cloner = world.consumer();
        cloned(&mut world, cloner, &by_id(1));
    }
    let one_more = world.consumer();
    assert!(refusal(&mut world, one_more, &by_id(1)).contains("10 clones"));
    for _ in 10..30 {
        let root = world.consumer_of(0);
        cloned(&mut world, root, &by_id(1));
    }
    let root = world.consumer_of(0);
    assert!(refusal(&mut world, root, &by_id(1)).contains("30 clones"));
    let end = world.enable(one_more, &config(&[]));
    assert!(world.ended(end).unwrap().contains("sessions"), "clones count as sessions");
}

/// A world in which a clone waits for a flush, and its call.
fn waiting() -> (World, FakeProducer, ClientId, ClientId, CallId) {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    let consumer = world.consumer();
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let mut config = TraceConfig { buffers: vec![buffer(64), moved], ..config(&["ds"]) };
    config.data_sources.push(source("none"));
    world.enable(consumer, &config);
    // The group of buffer 1 has no data source to flush, so it is moved at once.
    world.register_writer(&producer, 1, 1);
    world.commit(&mut producer, 1, 1, 0, &[&packet("a")]);
    let cloner = world.consumer();
    let call = ask(&mut world, cloner, &by_id(1));
    assert_eq!(answer(&world, call), None);
    (world, producer, consumer, cloner, call)
}

#[test]
fn a_clone_whose_session_ends_is_answered() {
    let (mut world, producer, consumer, cloner, call) = waiting();
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert_eq!(answer(&world, call).unwrap().error.unwrap().to_string(), "the session ended");
    world.acknowledge_flush(&producer, u64::MAX);
    assert!(states(&mut world, cloner).is_empty());
    assert_eq!(world.timers(), 0);
}

#[test]
fn a_clone_whose_consumer_disconnects_is_given_up() {
    let (mut world, producer, consumer, cloner, call) = waiting();
    world.feed(Input::ConsumerDisconnected(cloner));
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(answer(&world, call), None);
    assert_eq!(states(&mut world, consumer), [(1, "STARTED".into())]);
    assert_eq!(world.read_texts(consumer), ["a"]);
}

#[test]
fn a_consumer_that_has_a_session_gets_no_clone() {
    let (mut world, producer, consumer, cloner, call) = waiting();
    assert!(refusal(&mut world, consumer, &by_id(1)).contains("has a session already"));
    // Not even if it began one meanwhile.
    let end = world.enable(cloner, &config(&[]));
    world.acknowledge_flush(&producer, u64::MAX);
    let answer = answer(&world, call).unwrap();
    assert_eq!((answer.success, world.ended(end)), (Some(false), None));
}

#[test]
fn a_second_call_replaces_the_first() {
    let (mut world, producer, consumer, cloner, first) = waiting();
    let second = ask(&mut world, cloner, &by_id(1));
    assert!(world.rejected.contains(&first));
    world.acknowledge_flush(&producer, u64::MAX);
    assert_eq!(answer(&world, second).unwrap().success, Some(true));
    assert_eq!(states(&mut world, consumer).len(), 2, "one clone");
}

#[test]
fn a_failed_clone_gives_moved_content_back() {
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    world.register_as(
        &producer,
        esatto_schema::DataSourceDescriptor { name: Some("quiet".into()), no_flush: Some(true), ..Default::default() },
    );
    let consumer = world.consumer();
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let mut config = TraceConfig { buffers: vec![buffer(64), moved], ..config(&["ds", "quiet"]) };
    config.data_sources[1].config.as_mut().unwrap().target_buffer = Some(1);
    world.enable(consumer, &config);
    world.commit(&mut producer, 2, 1, 0, &[&packet("a")]);
    let cloner = world.consumer();
    ask(&mut world, cloner, &by_id(1));
    world.feed(Input::ConsumerDisconnected(cloner));
    assert_eq!(world.read_texts(consumer), ["a"]);
}

#[test]
fn content_of_a_failed_clone_never_follows_newer_content() {
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let mut config = TraceConfig { buffers: vec![buffer(64), moved], ..config(&["slow", "quiet"]) };
    config.data_sources[1].config.as_mut().unwrap().target_buffer = Some(1);
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "slow");
    let quiet =
        esatto_schema::DataSourceDescriptor { name: Some("quiet".into()), no_flush: Some(true), ..Default::default() };
    world.register_as(&producer, quiet);
    let consumer = world.consumer();
    world.enable(consumer, &config);
    let (first, second) = (world.consumer(), world.consumer());
    world.commit(&mut producer, 2, 1, 0, &[&packet("1")]);
    ask(&mut world, first, &by_id(1));
    world.commit(&mut producer, 2, 1, 1, &[&packet("2")]);
    assert_eq!(world.read_texts(consumer), ["2"], "the clone has the first packet");
    ask(&mut world, second, &by_id(1));
    // The buffer is empty again, but not because nothing was recorded.
    world.feed(Input::ConsumerDisconnected(first));
    world.commit(&mut producer, 2, 1, 2, &[&packet("3")]);
    assert_eq!(marks(&mut world, consumer), [Some(65)], "the first packet is lost, and not read behind the second");
    world.commit(&mut producer, 2, 1, 3, &[&packet("4")]);
    assert_eq!(marks(&mut world, consumer), [None]);
}

/// The loss marks of the packets of producers.
fn marks(world: &mut World, consumer: ClientId) -> Vec<Option<u32>> {
    let packets = world.read(consumer);
    let packets = packets.iter().map(|packet| TracePacketReader::new(packet));
    let of_producers = packets.filter(|packet| packet.trusted_packet_sequence_id() != Some(1));
    of_producers.map(|packet| packet.previous_packet_dropped()).collect()
}

#[test]
fn content_of_two_failed_clones_is_marked_or_given_back() {
    let moved = BufferConfig { transfer_on_clone: Some(true), ..buffer(64) };
    let mut config = TraceConfig { buffers: vec![buffer(64), moved], ..config(&["slow", "quiet"]) };
    config.data_sources[1].config.as_mut().unwrap().target_buffer = Some(1);
    let mut world = World::new();
    let mut producer = world.producer("p");
    world.register(&producer, "slow");
    let quiet =
        esatto_schema::DataSourceDescriptor { name: Some("quiet".into()), no_flush: Some(true), ..Default::default() };
    world.register_as(&producer, quiet);
    let consumer = world.consumer();
    world.enable(consumer, &config);
    world.commit(&mut producer, 2, 1, 0, &[&packet("0")]);
    assert_eq!(world.read_texts(consumer), ["0"]);
    let (first, second) = (world.consumer(), world.consumer());
    world.commit(&mut producer, 2, 1, 1, &[&packet("1")]);
    ask(&mut world, first, &by_id(1));
    world.commit(&mut producer, 2, 1, 2, &[&packet("2")]);
    ask(&mut world, second, &by_id(1));
    world.feed(Input::ConsumerDisconnected(first));
    world.feed(Input::ConsumerDisconnected(second));
    assert_eq!(marks(&mut world, consumer), [Some(65)], "the second packet comes back, marked");
}

#[test]
fn a_clone_for_a_trigger_names_it() {
    let (mut world, _, _) = recording(&config(&["ds"]));
    let request = CloneSessionRequest {
        clone_trigger_name: Some("jank".into()),
        clone_trigger_producer_name: Some("watcher".into()),
        clone_trigger_trusted_producer_uid: Some(1234),
        clone_trigger_boot_time_ns: Some(99),
        clone_trigger_delay_ms: Some(1 << 40),
        ..by_id(1)
    };
    let cloner = world.consumer();
    cloned(&mut world, cloner, &request);
    let packets = world.read(cloner);
    let index = packets.iter().position(|p| TracePacketReader::new(p).clone_snapshot_trigger().is_some()).unwrap();
    assert!(TracePacketReader::new(&packets[index - 1]).trace_config().is_some());
    let packet = TracePacketReader::new(&packets[index]);
    let trigger = packet.clone_snapshot_trigger().unwrap();
    assert_eq!((packet.timestamp(), trigger.trigger_name()), (Some(99), Some(&b"jank"[..])));
    assert_eq!((trigger.producer_name(), trigger.trusted_producer_uid()), (Some(&b"watcher"[..]), Some(1234)));
    assert_eq!(trigger.stop_delay_ms(), Some(1 << 40));
}

#[test]
fn other_sessions_see_a_clone_begin_and_end() {
    let mut world = World::new();
    let mut watching = config(&[]);
    watching.builtin_data_sources = Some(esatto_schema::trace_config::BuiltinDataSource {
        enable_concurrent_session_events: Some(true),
        ..Default::default()
    });
    let watcher = world.consumer();
    world.enable(watcher, &watching);
    let cloner = world.consumer();
    cloned(&mut world, cloner, &by_id(1));
    world.consumer_call(cloner, method::FreeBuffers::METHOD, &[]);
    let packets = world.read(watcher);
    let seen: Vec<_> = packets
        .iter()
        .filter_map(|packet| TracePacketReader::new(packet).concurrent_session_event())
        .map(|event| (event.session_id().unwrap(), event.state().unwrap().0))
        .collect();
    assert_eq!(seen, [(2, 5), (2, 1)]);
}
