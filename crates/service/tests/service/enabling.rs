//! EnableTracing checks a config from its first row to its last, and a config that is refused has
//! changed nothing.
//!
//! The tests are named after the rows of `docs/spec/service.md §5`.

use esatto_ports::Rpc as _;
use esatto_ports::consumer_port::method;
use esatto_schema::trace_config::{
    BufferConfig, GuardrailOverrides, LockdownModeOperation, SessionSemaphore, TriggerConfig, trigger_config,
};
use esatto_schema::{PriorityBoostConfig, TraceConfig};
use esatto_service::{ClientId, Input, PriorityBoost};

use crate::world::{World, buffer, config, source};

const DAY_MS: u32 = 24 * 3600 * 1000;

fn guarded() -> TraceConfig {
    TraceConfig { enable_extra_guardrails: Some(true), ..config(&[]) }
}

fn triggered(mode: i32, timeout_ms: u32, names: &[&str]) -> TraceConfig {
    let trigger = |&name: &&str| trigger_config::Trigger { name: Some(name.into()), ..Default::default() };
    let trigger_config = TriggerConfig {
        trigger_mode: Some(trigger_config::TriggerMode(mode)),
        triggers: names.iter().map(trigger).collect(),
        trigger_timeout_ms: Some(timeout_ms),
        ..Default::default()
    };
    TraceConfig { trigger_config: Some(trigger_config), ..config(&[]) }
}

fn if_available(config: TraceConfig) -> TraceConfig {
    let triggers = TriggerConfig { use_clone_snapshot_if_available: Some(true), ..config.trigger_config.unwrap() };
    TraceConfig { trigger_config: Some(triggers), ..config }
}

/// The reason for which a config is refused; the empty text: it is not.
fn verdict(world: &mut World, consumer: ClientId, config: &TraceConfig) -> String {
    let call = world.enable_with(consumer, config, false);
    match world.ended(call) {
        Some(error) => {
            assert!(!error.is_empty(), "a refusal has a reason");
            error
        }
        None => String::new(),
    }
}

/// Each config in a new world: `None` means accepted, a text is part of the reason.
fn check(cases: &[(TraceConfig, Option<&str>)]) {
    for (config, expected) in cases {
        let mut world = World::new();
        let consumer = world.consumer();
        let verdict = verdict(&mut world, consumer, config);
        match expected {
            None => assert_eq!(verdict, "", "{config:?}"),
            Some(part) => {
                assert!(verdict.contains(part), "{verdict:?} does not tell of {part:?}");
                let other = self::verdict(&mut world, consumer, &self::config(&[]));
                assert_eq!(other, "", "the consumer may try again");
            }
        }
    }
}

fn enabled(world: &mut World, config: &TraceConfig) -> ClientId {
    let consumer = world.consumer();
    assert_eq!(verdict(world, consumer, config), "");
    consumer
}

#[test]
fn row_1_a_consumer_has_one_session() {
    let mut world = World::new();
    let consumer = enabled(&mut world, &config(&[]));
    assert!(verdict(&mut world, consumer, &config(&[])).contains("has a session already"));
    world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
    assert_eq!(verdict(&mut world, consumer, &config(&[])), "");
}

#[test]
fn row_2_durations() {
    let lasting = |duration_ms, config: TraceConfig| TraceConfig { duration_ms: Some(duration_ms), ..config };
    check(&[
        (lasting(7 * DAY_MS, config(&[])), None),
        (lasting(7 * DAY_MS + 1, config(&[])), Some("duration_ms")),
        (lasting(DAY_MS, guarded()), None),
        (lasting(DAY_MS + 1, guarded()), Some("duration_ms")),
    ]);
}

#[test]
fn row_3_trigger_timeouts() {
    for mode in [1, 2, 4] {
        check(&[
            (triggered(mode, 1, &[]), None),
            (triggered(mode, 7 * DAY_MS, &[]), None),
            (triggered(mode, 0, &[]), Some("trigger_timeout_ms")),
            (triggered(mode, 7 * DAY_MS + 1, &[]), Some("trigger_timeout_ms")),
            (
                TraceConfig { enable_extra_guardrails: Some(true), ..triggered(mode, DAY_MS + 1, &[]) },
                Some("trigger_timeout_ms"),
            ),
        ]);
    }
    check(&[(triggered(0, 0, &[]), None)]);
}

#[test]
fn rows_4_and_5_trigger_modes() {
    check(&[
        (triggered(3, 1, &[]), Some("trigger_mode is 3")),
        (triggered(5, 1, &[]), Some("trigger_mode is 5")),
        (triggered(-1, 1, &[]), Some("trigger_mode is -1")),
        (if_available(triggered(2, 1, &[])), None),
        (if_available(triggered(0, 1, &[])), Some("use_clone_snapshot_if_available")),
        (if_available(triggered(1, 1, &[])), Some("use_clone_snapshot_if_available")),
        (if_available(triggered(4, 1, &[])), Some("use_clone_snapshot_if_available")),
    ]);
}

#[test]
fn row_6_triggers_take_the_place_of_a_duration() {
    let lasting = |config: TraceConfig| TraceConfig { duration_ms: Some(1), ..config };
    check(&[
        (lasting(triggered(0, 0, &["a"])), None),
        (lasting(triggered(1, 1, &[])), Some("duration_ms")),
        (lasting(triggered(2, 1, &[])), Some("duration_ms")),
        (lasting(triggered(4, 1, &[])), Some("duration_ms")),
    ]);
}

#[test]
fn row_7_file_names_of_bug_reports() {
    let named = |name: &str| TraceConfig { bugreport_filename: Some(name.into()), ..config(&[]) };
    check(&[
        (named("aZ09-_."), None),
        (named("a/b"), Some("bugreport_filename")),
        (named("a b"), Some("bugreport_filename")),
        (named("ä"), Some("bugreport_filename")),
    ]);
}

#[test]
fn row_8_sessions_that_are_hidden_do_not_stream() {
    let streamed =
        |config: TraceConfig| TraceConfig { write_into_file: Some(true), output_path: Some("/x".into()), ..config };
    check(&[
        (streamed(triggered(0, 0, &[])), None),
        (streamed(triggered(1, 1, &[])), None),
        (streamed(triggered(2, 1, &[])), Some("write_into_file")),
        (streamed(triggered(4, 1, &[])), Some("write_into_file")),
        (streamed(if_available(triggered(2, 1, &[]))), Some("write_into_file")),
    ]);
}

#[test]
fn row_9_names_of_triggers() {
    check(&[
        (triggered(1, 1, &["a", "b"]), None),
        (triggered(1, 1, &["a", "b", "a"]), Some("two triggers")),
        (triggered(0, 0, &["a", "a"]), Some("two triggers")),
    ]);
}

#[test]
fn rows_10_to_12_guardrails() {
    let buffers = |sizes: &[u32]| sizes.iter().map(|&size_kb| buffer(size_kb)).collect();
    let raised = |kb| Some(GuardrailOverrides { max_tracing_buffer_size_kb: Some(kb), ..Default::default() });
    check(&[
        (TraceConfig { deferred_start: Some(true), ..config(&[]) }, None),
        (TraceConfig { deferred_start: Some(true), ..guarded() }, Some("deferred_start")),
        (TraceConfig { buffers: buffers(&[5]), ..config(&[]) }, None),
        (TraceConfig { buffers: buffers(&[4, 5]), ..guarded() }, Some("multiple of 4")),
        (TraceConfig { buffers: buffers(&[65_536, 65_536]), ..guarded() }, None),
        (TraceConfig { buffers: buffers(&[65_536, 65_540]), ..guarded() }, Some("131072")),
        (TraceConfig { buffers: buffers(&[131_076]), guardrail_overrides: raised(131_076), ..guarded() }, None),
        (TraceConfig { buffers: buffers(&[131_076]), guardrail_overrides: raised(4), ..guarded() }, Some("131072")),
    ]);
}

#[test]
fn rows_13_to_17_buffers_and_their_names() {
    let named = |name: &str| BufferConfig { name: Some(name.into()), ..buffer(4) };
    let aimed = |target: Option<u32>, name: Option<&str>| {
        let mut source = source("ds");
        let config = source.config.as_mut().unwrap();
        config.target_buffer = target;
        config.target_buffer_name = name.map(Into::into);
        vec![source]
    };
    let with = |buffers, data_sources| TraceConfig { buffers, data_sources, ..Default::default() };
    let two = || vec![named("x"), named("y")];
    check(&[
        (with(vec![], vec![]), None),
        (with(vec![buffer(1); 128], vec![]), None),
        (with(vec![buffer(1); 129], vec![]), Some("129")),
        (with(vec![named(""), named("")], vec![]), None),
        (with(vec![named("x"), named("x")], vec![]), Some("two buffers")),
        (with(two(), aimed(None, Some("y"))), None),
        (with(two(), aimed(None, Some("z"))), Some("target_buffer_name")),
        (with(two(), aimed(Some(0), Some("y"))), None),
        (with(two(), aimed(Some(1), Some("y"))), None),
        (with(two(), aimed(Some(1), Some("x"))), Some("target_buffer 1")),
        (with(two(), aimed(Some(2), None)), Some("target_buffer is 2")),
        (with(vec![], aimed(None, None)), Some("0 buffers")),
    ]);
}

#[test]
fn rows_18_and_19_exclusive_sessions() {
    let exclusive = |priority| TraceConfig { exclusive_prio: Some(priority), ..config(&[]) };
    let mut world = World::new();
    let ordinary = world.consumer();
    let ordinary_end = world.enable(ordinary, &config(&[]));
    let first = world.consumer();
    let first_end = world.enable(first, &exclusive(5));
    assert!(world.ended(ordinary_end).unwrap().contains("exclusive_prio 5"));
    for refused in [0, 4, 5] {
        let consumer = world.consumer();
        assert!(verdict(&mut world, consumer, &exclusive(refused)).contains("exclusive_prio 5"));
    }
    // A disabled session counts until it is freed, and so does a clone of it.
    world.consumer_call(first, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.ended(first_end).as_deref(), Some(""));
    let cloner = world.consumer();
    crate::clones::ask(&mut world, cloner, &crate::clones::by_id(2));
    world.consumer_call(first, method::FreeBuffers::METHOD, &[]);
    assert!(verdict(&mut world, ordinary, &config(&[])).contains("exclusive_prio 5"));
    assert_eq!(verdict(&mut world, ordinary, &exclusive(6)), "", "its consumer was free for a new session");
    assert!(world.read(cloner).is_empty(), "and the clone is gone");
}

#[test]
fn row_19_a_refused_exclusive_session_ends_no_session() {
    let mut world = World::new();
    let ordinary = world.consumer();
    let end = world.enable(ordinary, &config(&[]));
    let exclusive = |config: TraceConfig| TraceConfig { exclusive_prio: Some(1), ..config };
    let consumer = world.consumer();
    let no_file = TraceConfig { write_into_file: Some(true), ..config(&[]) };
    assert!(verdict(&mut world, consumer, &exclusive(no_file.clone())).contains("write_into_file"));
    world.file_error = Some("it exists".to_owned());
    let bad_path = TraceConfig { output_path: Some("/x".into()), ..no_file };
    assert!(verdict(&mut world, consumer, &exclusive(bad_path)).contains("it exists"));
    assert_eq!(world.ended(end), None);
    // Those that it would end do not stand in its way.
    let mut world = World::new();
    for _ in 0..5 {
        enabled(&mut world, &config(&[]));
    }
    enabled(&mut world, &exclusive(config(&[])));
}

#[test]
fn row_20_names_are_unique_until_their_session_is_freed() {
    let named = TraceConfig { unique_session_name: Some("n".into()), ..config(&[]) };
    let mut world = World::new();
    let first = enabled(&mut world, &named);
    world.consumer_call(first, method::DisableTracing::METHOD, &[]);
    let second = world.consumer();
    assert!(verdict(&mut world, second, &named).contains("unique_session_name"));
    world.consumer_call(first, method::FreeBuffers::METHOD, &[]);
    assert_eq!(verdict(&mut world, second, &named), "");
    enabled(&mut world, &TraceConfig { unique_session_name: Some("".into()), ..config(&[]) });
    enabled(&mut world, &config(&[]));
}

#[test]
fn row_21_semaphores_admit_as_many_as_the_strictest_holder() {
    let holding = |max: Option<u64>| {
        let semaphore = SessionSemaphore { name: Some("s".into()), max_other_session_count: max, ..Default::default() };
        TraceConfig { session_semaphores: vec![semaphore], ..config(&[]) }
    };
    let mut world = World::new();
    let first = enabled(&mut world, &holding(Some(9)));
    enabled(&mut world, &holding(Some(1)));
    enabled(&mut world, &config(&[]));
    let third = world.consumer();
    assert!(verdict(&mut world, third, &holding(Some(9))).contains("session_semaphores"));
    world.consumer_call(first, method::DisableTracing::METHOD, &[]);
    assert_eq!(verdict(&mut world, third, &holding(Some(9))), "", "those that are disabled do not count");
    let mut world = World::new();
    enabled(&mut world, &holding(Some(9)));
    let sole = world.consumer();
    assert!(verdict(&mut world, sole, &holding(None)).contains("session_semaphores"));
}

#[test]
fn row_22_guarded_sessions_of_one_name_keep_their_distance() {
    let named = |name: &str| TraceConfig { unique_session_name: Some(name.into()), ..guarded() };
    let mut world = World::new();
    let consumer = world.consumer();
    let round = |world: &mut World, config: &TraceConfig| {
        let verdict = verdict(world, consumer, config);
        world.consumer_call(consumer, method::FreeBuffers::METHOD, &[]);
        verdict
    };
    // A config that is refused for another reason does not count.
    let refused = TraceConfig { write_into_file: Some(true), ..named("a") };
    assert!(round(&mut world, &refused).contains("write_into_file"));
    assert_eq!(round(&mut world, &named("a")), "");
    assert_eq!(round(&mut world, &named("b")), "");
    world.advance_ms(300_000);
    assert!(round(&mut world, &named("a")).contains("300 s"));
    world.advance_ms(1);
    assert_eq!(round(&mut world, &named("a")), "");
    // Without a name all are one.
    assert_eq!(round(&mut world, &guarded()), "");
    assert!(round(&mut world, &guarded()).contains("300 s"));
}

#[test]
fn rows_23_and_24_the_number_of_sessions() {
    let mut world = World::new();
    for _ in 0..5 {
        enabled(&mut world, &config(&[]));
    }
    let consumer = world.consumer();
    assert!(verdict(&mut world, consumer, &config(&[])).contains("uid 1000 has 5 sessions"));
    for uid in 100..110 {
        let consumer = world.consumer_of(uid);
        assert_eq!(verdict(&mut world, consumer, &config(&[])), "");
    }
    let consumer = world.consumer_of(100);
    assert!(verdict(&mut world, consumer, &config(&[])).contains("15 sessions"));
}

#[test]
fn three_users_cannot_keep_out_other_users() {
    let mut world = World::new();
    let mut enable = |uid: i32| {
        let consumer = world.consumer_of(uid);
        verdict(&mut world, consumer, &config(&[]))
    };
    for number in 0..15 {
        assert_eq!(enable(100 + number / 5), "");
    }
    for newcomer in 103..108 {
        assert_eq!(enable(newcomer), "", "a user without a session gets one");
        assert!(enable(newcomer).contains("for users without a session"), "and no second one");
    }
    assert!(enable(108).contains("there are 20 sessions, no more are possible; the rest is for root"));
    for _ in 0..4 {
        assert_eq!(enable(0), "", "root has a reserve");
    }
    assert_eq!(enable(crate::world::SERVICE_UID), "", "so has the service's own user");
    assert!(enable(0).contains("there are 25 sessions"));
}

#[test]
fn memory_for_buffers_is_shared_among_users() {
    const MIB: u64 = 1 << 20;
    let mut world = World::new();
    world.service.limit_buffers(96 * MIB);
    let with = |mib: u32| TraceConfig { buffers: vec![buffer(1024 * mib)], ..Default::default() };
    let enable = |world: &mut World, uid: i32, mib: u32| {
        let consumer = world.consumer_of(uid);
        (verdict(world, consumer, &with(mib)), consumer)
    };
    let (verdict, _) = enable(&mut world, 100, 49);
    let left = "49152 KiB are left for uid 100: its sessions have 0 KiB, and those of all users may have 98304 KiB";
    assert_eq!(verdict, format!("the buffers have 50176 KiB together, {left}"));
    let (verdict, of_alice) = enable(&mut world, 100, 20);
    assert_eq!(verdict, "");
    // A clone takes as much.
    let cloner = world.consumer_of(100);
    let clone = crate::clones::ask(&mut world, cloner, &crate::clones::by_id(1));
    assert_eq!(crate::clones::answer(&world, clone).and_then(|answer| answer.success), Some(true));
    assert_eq!(enable(&mut world, 100, 26).0, "", "of a clone counts what it has taken, which is nothing");
    let cloner = world.consumer_of(100);
    let clone = crate::clones::ask(&mut world, cloner, &crate::clones::by_id(3));
    let error = crate::clones::answer(&world, clone).and_then(|answer| answer.error).unwrap().to_string();
    assert!(error.contains("2048 KiB are left for uid 100"), "{error}");
    assert!(enable(&mut world, 100, 3).0.contains("2048 KiB are left"));
    // Other users have half of the rest, root all of it.
    assert!(enable(&mut world, 101, 26).0.contains("25600 KiB are left for uid 101"));
    assert_eq!(enable(&mut world, 101, 25).0, "");
    assert!(enable(&mut world, 0, 26).0.contains("25600 KiB are left for uid 0"));
    assert_eq!(enable(&mut world, 0, 25).0, "");
    assert!(enable(&mut world, 102, 1).0.contains("0 KiB are left"));
    // A freed share can be used again, also that of sessions that an exclusive one ends.
    world.consumer_call(of_alice, method::FreeBuffers::METHOD, &[]);
    assert_eq!(enable(&mut world, 102, 10).0, "");
    let exclusive = world.consumer_of(0);
    let config = TraceConfig { exclusive_prio: Some(1), ..with(96) };
    assert_eq!(self::verdict(&mut world, exclusive, &config), "");
}

#[test]
fn names_of_guarded_sessions_are_shared_among_users() {
    let mut world = World::new();
    let begin = |world: &mut World, uid: i32, name: &str| {
        let consumer = world.consumer_of(uid);
        let config = TraceConfig { unique_session_name: Some(name.into()), ..guarded() };
        let verdict = verdict(world, consumer, &config);
        world.feed(Input::ConsumerDisconnected(consumer));
        verdict
    };
    let greedy = (0..2000).take_while(|number| begin(&mut world, 100, &format!("greedy {number}")).is_empty()).count();
    assert_eq!(greedy, 511);
    assert!(begin(&mut world, 100, "more").contains("uid 100 has used up its share"));
    for number in 0..100 {
        assert_eq!(begin(&mut world, 101, &format!("other {number}")), "");
    }
    for uid in 200..300 {
        for number in 0..300 {
            begin(&mut world, uid, &format!("{uid} {number}"));
        }
    }
    for number in 0..100 {
        assert_eq!(begin(&mut world, 0, &format!("root {number}")), "", "root has a reserve");
    }
    world.advance_ms(300_001);
    assert_eq!(begin(&mut world, 100, "more"), "", "what is forgotten can be had again");
    assert_eq!(begin(&mut world, 100, "greedy 1"), "");
}

#[test]
fn row_25_a_filter_that_cannot_be_loaded() {
    let filter = esatto_schema::trace_config::TraceFilter { bytecode: Some(vec![1, 2]), ..Default::default() };
    check(&[(TraceConfig { trace_filter: Some(Box::new(filter)), ..config(&[]) }, Some("trace_filter"))]);
}

pub(crate) fn boosted(policy: i32, priority: u32) -> TraceConfig {
    let priority_boost = PriorityBoostConfig {
        policy: Some(esatto_schema::priority_boost_config::BoostPolicy(policy)),
        priority: Some(priority),
        ..Default::default()
    };
    TraceConfig { priority_boost: Some(priority_boost), ..config(&[]) }
}

#[test]
fn row_26_the_strongest_boost_holds_while_its_session_exists() {
    check(&[(boosted(2, 0), Some("priority_boost")), (boosted(0, 1), Some("priority_boost"))]);
    let mut world = World::new();
    let weak = enabled(&mut world, &boosted(1, 3));
    assert_eq!(world.priority, Some(PriorityBoost::Other(3)));
    let strong = enabled(&mut world, &boosted(2, 1));
    assert_eq!(world.priority, Some(PriorityBoost::Fifo(1)));
    enabled(&mut world, &boosted(1, 20));
    assert_eq!(world.priority, Some(PriorityBoost::Fifo(1)));
    world.consumer_call(strong, method::DisableTracing::METHOD, &[]);
    assert_eq!(world.priority, Some(PriorityBoost::Fifo(1)), "not only while it records");
    world.consumer_call(strong, method::FreeBuffers::METHOD, &[]);
    assert_eq!(world.priority, Some(PriorityBoost::Other(20)));
    world.feed(Input::ConsumerDisconnected(weak));
    assert_eq!(world.priority, Some(PriorityBoost::Other(20)));
    let exclusive = world.consumer();
    assert_eq!(verdict(&mut world, exclusive, &TraceConfig { exclusive_prio: Some(1), ..config(&[]) }), "");
    assert_eq!(world.priority, None);
}

#[test]
fn row_26_a_boost_that_is_not_possible_refuses_the_config() {
    let mut world = World::new();
    enabled(&mut world, &boosted(1, 3));
    world.priority_error = Some("not permitted".to_owned());
    let consumer = world.consumer();
    assert!(verdict(&mut world, consumer, &boosted(2, 1)).contains("not permitted"));
    world.priority_error = None;
    assert_eq!(verdict(&mut world, consumer, &boosted(2, 1)), "", "it is tried again");
    assert_eq!(world.priority, Some(PriorityBoost::Fifo(1)));
}

#[test]
fn rows_27_and_28_the_file() {
    let streamed = TraceConfig { write_into_file: Some(true), ..config(&[]) };
    let with_path = TraceConfig { output_path: Some("/x".into()), ..streamed.clone() };
    check(&[(streamed.clone(), Some("file descriptor")), (with_path.clone(), None)]);
    check(&[(TraceConfig { write_into_file: None, ..with_path.clone() }, None)]);
    let mut world = World::new();
    let consumer = world.consumer();
    let both = world.enable_with(consumer, &with_path, true);
    assert!(world.ended(both).unwrap().contains("not both"));
    world.file_error = Some("it exists".to_owned());
    assert_eq!(verdict(&mut world, consumer, &with_path), "output_path /x: it exists");
    assert!(world.files.is_empty(), "nothing is left behind");
}

#[test]
fn row_30_sizes_and_modes_of_buffers() {
    let mode = |mode| BufferConfig {
        experimental_mode: Some(esatto_schema::trace_config::buffer_config::ExperimentalMode(mode)),
        ..buffer(4)
    };
    let with = |buffer| TraceConfig { buffers: vec![crate::world::buffer(4), buffer], ..Default::default() };
    check(&[
        (with(buffer(0)), Some("size_kb is 0")),
        (with(buffer(4_194_301)), Some("size_kb is 4194301")),
        (with(buffer(u32::MAX)), Some("size_kb")),
        (with(mode(0)), None),
        (with(mode(1)), None),
        (with(mode(2)), Some("experimental_mode is 2")),
    ]);
}

#[test]
fn a_refused_config_leaves_no_lockdown_behind() {
    let mut world = World::new();
    let locking = TraceConfig {
        lockdown_mode: Some(LockdownModeOperation::LOCKDOWN_SET),
        write_into_file: Some(true),
        ..config(&["ds"])
    };
    let consumer = world.consumer_of(0);
    assert_ne!(verdict(&mut world, consumer, &locking), "");
    world.file_error = Some("no".to_owned());
    let with_path = TraceConfig { output_path: Some("/x".into()), ..locking };
    assert_ne!(verdict(&mut world, consumer, &with_path), "");
    // The producer's uid is not the service's.
    let producer = world.producer("p");
    world.register(&producer, "ds");
    enabled(&mut world, &config(&["ds"]));
    assert_eq!(world.commands(&producer).len(), 3);
}
