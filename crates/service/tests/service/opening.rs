//! The time between a config that passed all checks and a configured session, in which the owner
//! prepares files and priorities.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_protozero::Owned;
use esatto_schema::trace_config::SessionSemaphore;
use esatto_schema::{FlushRequest, TraceConfig, TraceReader};
use esatto_service::{CallId, ClientId, FileId, Input};

use crate::enabling::boosted;
use crate::world::{World, config, packet};

/// A session whose file is being created.
fn opening(config: TraceConfig) -> (World, ClientId, CallId) {
    let mut world = World::new();
    world.opening_is_slow = true;
    let consumer = world.consumer();
    let config = TraceConfig { write_into_file: Some(true), output_path: Some("/x".into()), ..config };
    let end = world.enable(consumer, &config);
    (world, consumer, end)
}

#[test]
fn calls_that_come_while_a_file_is_created_are_not_lost() {
    let (mut world, consumer, end) = opening(TraceConfig { deferred_start: Some(true), ..config(&["ds"]) });
    let mut producer = world.producer("p");
    world.register(&producer, "ds");
    world.consumer_call(consumer, method::StartTracing::METHOD, &[]);
    assert!(world.commands(&producer).is_empty());
    world.finish_slow_work();
    assert!(world.commands(&producer).iter().any(|command| command.start_data_source.is_some()));
    world.commit(&mut producer, 1, 1, 0, &[&packet("x")]);
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(end).as_deref(), Some(""));
    assert!(!world.files[&FileId(1)].is_empty());

    let (mut world, consumer, end) = opening(config(&[]));
    let flush = world.consumer_call(consumer, method::Flush::METHOD, &FlushRequest::default().encode());
    assert!(world.rejected.contains(&flush));
    world.consumer_call(consumer, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(end), None);
    world.finish_slow_work();
    assert_eq!(world.ended(end).as_deref(), Some(""));
}

#[test]
fn a_session_that_is_freed_while_its_file_is_created_is_started_and_stopped_and_its_file_is_complete() {
    for disconnects in [false, true] {
        let (mut world, consumer, end) = opening(config(&["ds"]));
        let producer = world.producer("p");
        world.register(&producer, "ds");
        let next = world.consumer_of(1001);
        if disconnects {
            world.feed(Input::ConsumerDisconnected(consumer));
        } else {
            world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
        }
        assert_eq!(world.ended(end), None);
        // The consumer is free for another session meanwhile, whose end is its own.
        let other = if disconnects { next } else { consumer };
        let other_end = world.enable(other, &config(&[]));
        world.finish_slow_work();
        assert_eq!(world.ended(end).as_deref(), (!disconnects).then_some(""));
        assert_eq!(world.ended(other_end), None);
        let commands = world.commands(&producer);
        let of_kind = [
            commands.iter().position(|command| command.start_data_source.is_some()),
            commands.iter().position(|command| command.stop_data_source.is_some()),
        ];
        assert!(of_kind[0].is_some() && of_kind[0] < of_kind[1], "{commands:?}");
        assert_eq!(world.closed_files, [FileId(1)]);
        let trace = TraceReader::new(&world.files[&FileId(1)]);
        assert!(trace.packet().last().unwrap().trace_stats().is_some());
        world.consumer_call(other, method::DisableTracing::METHOD, &[]);
        assert_eq!(world.ended(other_end).as_deref(), Some(""));
        assert!(world.rejected.is_empty());
    }
}

#[test]
fn freeing_a_session_whose_file_cannot_be_created_reports_the_error() {
    let mut world = World::new();
    (world.opening_is_slow, world.file_error) = (true, Some("it exists".to_owned()));
    let consumer = world.consumer();
    let streamed = TraceConfig { write_into_file: Some(true), output_path: Some("/x".into()), ..config(&[]) };
    let end = world.enable(consumer, &streamed);
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    world.finish_slow_work();
    assert_eq!(world.ended(end).as_deref(), Some("output_path /x: it exists"));
    assert_eq!(world.timers(), 0);
}

#[test]
fn a_session_that_waits_for_its_priority_has_no_effects() {
    let mut world = World::new();
    world.opening_is_slow = true;
    world.priority_error = Some("no".to_owned());
    let consumer = world.consumer();
    let streamed = TraceConfig { write_into_file: Some(true), ..boosted(2, 1) };
    let adopted = world.enable_with(consumer, &streamed, true);
    // Another one, for the same priority, waits for the same answer.
    let other = world.consumer();
    let other_end = world.enable(other, &boosted(2, 1));
    assert_eq!((world.ended(adopted), world.ended(other_end)), (None, None));
    let clone = crate::clones::ask(&mut world, other, &crate::clones::by_id(1));
    assert!(crate::clones::answer(&world, clone).is_some_and(|answer| answer.success == Some(false)));
    world.finish_slow_work();
    assert!(world.ended(adopted).unwrap().contains("priority_boost is not possible: no"));
    assert!(world.ended(other_end).unwrap().contains("priority_boost is not possible: no"));
    assert!(world.files[&FileId(1)].is_empty(), "nothing is written for a config that was refused");
    assert_eq!(world.closed_files, [FileId(1)]);
}

/// Two sessions whose files are being created at the same time, and what becomes of them when they
/// are.
fn opening_together(first: TraceConfig, second: TraceConfig) -> [Option<String>; 2] {
    let mut world = World::new();
    world.opening_is_slow = true;
    let ends = [first, second].map(|config| {
        let consumer = world.consumer();
        let path = Some(format!("/{}", consumer.0).into());
        world.enable(consumer, &TraceConfig { write_into_file: Some(true), output_path: path, ..config })
    });
    world.finish_slow_work();
    ends.map(|end| world.ended(end))
}

#[test]
fn of_two_exclusive_sessions_that_open_together_the_stronger_one_stays() {
    let exclusive = |priority| TraceConfig { exclusive_prio: Some(priority), ..config(&[]) };
    let [weak, strong] = opening_together(exclusive(1), exclusive(2));
    assert_eq!(strong, None);
    assert!(weak.unwrap().contains("exclusive_prio 2"));
    let [strong, weak] = opening_together(exclusive(2), exclusive(1));
    assert_eq!(strong, None);
    assert!(weak.unwrap().contains("exclusive_prio 2"));
    let [ordinary, strong] = opening_together(config(&[]), exclusive(1));
    assert_eq!(strong, None);
    assert!(ordinary.unwrap().contains("exclusive_prio 1"));
}

/// Each is stronger than the one before, and would end it; but until they are open, all of them are
/// there.
#[test]
fn a_user_has_no_more_exclusive_sessions_that_open_than_sessions() {
    let mut world = World::new();
    world.opening_is_slow = true;
    let ends: Vec<_> = (1..20)
        .map(|priority| {
            let consumer = world.consumer();
            let path = Some(format!("/{priority}").into());
            let exclusive = TraceConfig { exclusive_prio: Some(priority), output_path: path, ..config(&[]) };
            world.enable(consumer, &TraceConfig { write_into_file: Some(true), ..exclusive })
        })
        .collect();
    assert_eq!(world.service.holdings().sessions, 5);
    assert!(ends[..5].iter().all(|end| world.ended(*end).is_none()));
    assert!(ends[5..].iter().all(|end| world.ended(*end).is_some_and(|error| error.contains("has 5 sessions"))));
    world.finish_slow_work();
    assert_eq!(world.service.holdings().sessions, 1, "the strongest one is left");
    assert!(world.ended(ends[4]).is_none());
}

#[test]
fn a_session_that_opens_holds_its_semaphores() {
    let semaphore = SessionSemaphore { name: Some("s".into()), ..Default::default() };
    let holding = TraceConfig { session_semaphores: vec![semaphore], ..config(&[]) };
    let [first, second] = opening_together(holding.clone(), holding);
    assert_eq!(first, None);
    assert!(second.unwrap().contains("session_semaphores"));
}
