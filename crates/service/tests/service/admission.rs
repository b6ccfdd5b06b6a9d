//! Admission of sessions: limits that depend on other sessions.

use esatto_schema::{TraceConfig, trace_config};

use crate::world::{SERVICE_UID, World, buffer, config, source};

#[test]
fn a_config_is_refused_with_a_reason_and_another_may_follow() {
    let mut world = World::new();
    let consumer = world.consumer();
    let no_buffers = TraceConfig { data_sources: vec![source("ds")], ..Default::default() };
    let refused = world.enable(consumer, &no_buffers);
    assert!(world.ended(refused).unwrap().contains("buffers"));
    let absurd = TraceConfig { buffers: vec![buffer(u32::MAX)], ..Default::default() };
    let refused = world.enable(consumer, &absurd);
    assert!(world.ended(refused).unwrap().contains("4294967295"));
    let accepted = world.enable(consumer, &config(&["ds"]));
    assert_eq!(world.ended(accepted), None);
}

#[test]
fn a_second_session_of_the_same_consumer_is_refused() {
    let mut world = World::new();
    let consumer = world.consumer();
    let first = world.enable(consumer, &config(&[]));
    let second = world.enable(consumer, &config(&[]));
    assert_eq!(world.rejected, [first]);
    assert!(world.ended(second).unwrap().contains("session"));
}

#[test]
fn sessions_are_limited_per_user_and_in_total() {
    let mut world = World::new();
    // A user with one session asks for another one when there are 15.
    for uid in [3, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2] {
        let consumer = world.consumer_of(uid);
        let call = world.enable(consumer, &config(&[]));
        assert_eq!(world.ended(call), None);
    }
    let consumer = world.consumer_of(0);
    let call = world.enable(consumer, &config(&[]));
    assert!(world.ended(call).unwrap().contains("uid 0"));
    let consumer = world.consumer_of(3);
    let call = world.enable(consumer, &config(&[]));
    assert!(world.ended(call).unwrap().contains("15"));
}

#[test]
fn names_semaphores_and_exclusive_sessions() {
    let mut world = World::new();
    let named = TraceConfig { unique_session_name: Some("n".into()), ..config(&[]) };
    let semaphore = |max| trace_config::SessionSemaphore {
        name: Some("s".into()),
        max_other_session_count: max,
        ..Default::default()
    };
    let holding = |max| TraceConfig { session_semaphores: vec![semaphore(max)], ..config(&[]) };
    let exclusive = |prio| TraceConfig { exclusive_prio: Some(prio), ..config(&[]) };
    let mut enable = |config: &TraceConfig| {
        let consumer = world.consumer_of(0);
        let call = world.enable(consumer, config);
        (world.ended(call), call)
    };
    let (ok, first) = enable(&named);
    assert_eq!(ok, None);
    assert!(enable(&named).0.is_some());
    assert_eq!(enable(&holding(Some(1))).0, None);
    assert_eq!(enable(&holding(Some(1))).0, None);
    assert!(enable(&holding(Some(9))).0.is_some(), "the smallest limit counts");
    assert_eq!(enable(&exclusive(3)).0, None);
    assert!(enable(&exclusive(3)).0.is_some());
    assert!(enable(&config(&[])).0.is_some());
    assert_eq!(enable(&exclusive(4)).0, None);
    assert!(world.ended(first).unwrap().contains("exclusive_prio 3"), "those before were ended");
}

#[test]
fn lockdown_keeps_other_users_producers_out() {
    let mut world = World::new();
    let before = world.producer("before");
    world.register(&before, "ds");
    let consumer = world.consumer_of(0);
    let lockdown_mode = Some(trace_config::LockdownModeOperation::LOCKDOWN_SET);
    world.enable(consumer, &TraceConfig { lockdown_mode, ..config(&["ds"]) });
    assert!(world.commands(&before).is_empty());
    world.producer("after");
    assert_eq!(world.rejected.len(), 2, "InitializeConnection, and GetAsyncCommand without it");
}

#[test]
fn a_user_cannot_lock_out_producers_of_other_users() {
    use trace_config::LockdownModeOperation;
    let mut world = World::new();
    let producer = world.producer("p");
    world.register(&producer, "ds");
    let mut enable = |uid: i32, mode: LockdownModeOperation| {
        let consumer = world.consumer_of(uid);
        let call = world.enable(consumer, &TraceConfig { lockdown_mode: Some(mode), ..config(&["ds"]) });
        (world.ended(call), world.commands(&producer).len())
    };
    let (refused, _) = enable(5, LockdownModeOperation::LOCKDOWN_SET);
    assert!(refused.unwrap().contains("lockdown_mode is for root and the service's own user (uid 7), not for uid 5"));
    // Memory, set-up and start, then set-up and start.
    assert_eq!(enable(5, LockdownModeOperation::LOCKDOWN_CLEAR), (None, 3), "there is nothing to clear");
    assert_eq!(enable(SERVICE_UID, LockdownModeOperation::LOCKDOWN_SET), (None, 0));
    let (refused, _) = enable(5, LockdownModeOperation::LOCKDOWN_CLEAR);
    assert!(refused.unwrap().contains("not for uid 5"), "what root has set stays");
    assert_eq!(enable(0, LockdownModeOperation::LOCKDOWN_CLEAR), (None, 2));
}

#[test]
fn an_exclusive_session_of_a_user_ends_only_sessions_of_this_user() {
    let exclusive = |prio| TraceConfig { exclusive_prio: Some(prio), ..config(&[]) };
    let mut world = World::new();
    let enable = |world: &mut World, uid: i32, config: &TraceConfig| {
        let consumer = world.consumer_of(uid);
        world.enable(consumer, config)
    };
    let of_root = enable(&mut world, 0, &config(&[]));
    let of_bob = enable(&mut world, 5, &config(&[]));
    let of_alice = enable(&mut world, 4, &config(&[]));
    let named = TraceConfig { unique_session_name: Some("n".into()), ..config(&[]) };
    let name_of_bob = enable(&mut world, 5, &named);
    let call = enable(&mut world, 4, &TraceConfig { exclusive_prio: Some(9), ..named });
    assert!(world.ended(call).unwrap().contains("unique_session_name"), "what is not ended stands in the way");
    let alone = enable(&mut world, 4, &exclusive(9));
    assert_eq!(world.ended(alone), None);
    assert!(world.ended(of_alice).unwrap().contains("exclusive_prio 9"));
    for untouched in [of_root, of_bob, name_of_bob] {
        assert_eq!(world.ended(untouched), None);
    }
    // It keeps out further sessions of this user, and of no other user.
    for (uid, prio, is_refused) in [(4, 0, true), (4, 9, true), (5, 0, false), (0, 0, false), (SERVICE_UID, 0, false)] {
        let call = enable(&mut world, uid, &exclusive(prio));
        assert_eq!(world.ended(call).is_some(), is_refused, "uid {uid}");
    }
    // Root's exclusive session ends all others at any priority, and no user's ends it.
    let of_root = enable(&mut world, 0, &exclusive(1));
    assert_eq!(world.ended(of_root), None);
    assert!(world.ended(alone).unwrap().contains("exclusive_prio 1"));
    assert!(world.ended(of_bob).is_some());
    let call = enable(&mut world, 4, &exclusive(u32::MAX));
    assert!(world.ended(call).unwrap().contains("of root or the service's own user exists, which uid 4 cannot end"));
    assert_eq!(world.ended(of_root), None);
    let stronger = enable(&mut world, SERVICE_UID, &exclusive(2));
    assert_eq!(world.ended(stronger), None);
    assert!(world.ended(of_root).unwrap().contains("exclusive_prio 2"));
}
