use std::io::{ErrorKind, Write as _};
use std::net::{TcpListener, TcpStream};

use esatto_ipc::Admission;

use super::*;

const ALICE: Owner = Owner::Uid(1000);
const BOB: Owner = Owner::Uid(1001);
const OURS: Owner = Owner::Uid(77);

/// Returns a socket whose `close` blocks until the other end is closed.
fn lingering() -> (OwnedFd, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    rustix::net::sockopt::set_socket_linger(&socket, Some(Duration::from_secs(3600))).unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 65536]).map_err(|e| assert_eq!(e.kind(), ErrorKind::WouldBlock)).is_ok() {}
    (socket.into(), listener.accept().unwrap().0)
}

/// Returns a descriptor, and a check whether it was closed.
fn tracer() -> (OwnedFd, impl Fn() -> bool) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
    (write, move || rustix::io::read(&read, &mut [0; 1]) == Ok(0))
}

fn disposer(closers: &Closers, owner: Owner) -> Disposer {
    Disposer { closers: closers.clone(), owner }
}

fn wait_until(what: &str, check: impl Fn() -> bool) {
    let begin = Instant::now();
    while !check() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_user_whose_descriptors_do_not_close_delays_no_other_user() {
    let closers = Closers::new(77);
    let mut other_ends = Vec::new();
    // One user more than there are threads.
    for uid in 0..=MAX_THREADS as i32 {
        let (fd, other_end) = lingering();
        other_ends.push(other_end);
        disposer(&closers, Owner::Uid(2000 + uid)).close_passed(fd);
    }
    wait_until("all threads are busy", || closers.shared.lock().busy_others == MAX_THREADS);
    let (fd, is_closed) = tracer();
    disposer(&closers, OURS).close_connection(fd);
    wait_until("what is ours is closed", is_closed);
    assert_eq!(closers.shared.open.load(Ordering::Relaxed), MAX_THREADS + 1, "the others still are not");
    // The threads interrupt what does not end by itself.
    wait_until("all are closed", || {
        closers.interrupt_and_replace();
        !closers.is_busy()
    });
    wait_until("the threads end", || closers.shared.lock().threads == 0);
    drop(other_ends);
}

#[test]
fn many_users_whose_descriptors_never_close_delay_no_other_user() {
    let closers = Closers::new(77);
    let mut other_ends = Vec::new();
    // This test interrupts none of these.
    let mut block = |uid| {
        let (fd, other_end) = lingering();
        other_ends.push(other_end);
        disposer(&closers, Owner::Uid(uid)).close_passed(fd);
    };
    (0..2 * MAX_THREADS as i32).for_each(|uid| block(2000 + uid));
    wait_until("all threads are busy", || closers.shared.lock().busy_others == MAX_THREADS);
    let (fd, is_closed) = tracer();
    let alice = disposer(&closers, ALICE);
    alice.close_passed(fd);
    wait_until("what others passed is closed", || {
        closers.replace_stuck();
        is_closed()
    });
    // More than can be replaced: all threads but the last are stuck.
    let all = (MAX_STUCK_THREADS + MAX_THREADS - 1) as i32;
    (2 * MAX_THREADS as i32..all).for_each(|uid| block(2000 + uid));
    wait_until("no more can be replaced", || {
        closers.replace_stuck();
        closers.shared.is_exhausted.load(Ordering::Relaxed)
    });
    let attacker = disposer(&closers, Owner::Uid(2000));
    assert_eq!((attacker.admission(), alice.admission()), (Admission::Denied, Admission::Granted));
    wait_until("all have a thread", || closers.shared.lock().busy_others == MAX_THREADS - 1);
    assert!(closers.shared.lock().threads <= MAX_STUCK_THREADS + MAX_THREADS + RESERVED_THREADS);
    for _ in 0..3 {
        let (fd, is_closed) = tracer();
        alice.close_passed(fd);
        wait_until("the last thread closes it", is_closed);
    }
    drop(other_ends);
    wait_until("all are closed", || !closers.is_busy());
    assert_eq!(attacker.admission(), Admission::Granted);
    let lanes = closers.shared.lock();
    assert_eq!((lanes.stuck, lanes.busy_others, lanes.queues.len()), (0, 0, 0));
}

#[test]
fn every_lane_of_a_burst_gets_a_thread() {
    let closers = Closers::new(77);
    for _ in 0..50 {
        // Leaves an idle thread, which every further lane wakes.
        let (fd, is_closed) = tracer();
        disposer(&closers, ALICE).close_passed(fd);
        wait_until("the first is closed", is_closed);
        wait_until("its thread is idle", || closers.shared.lock().idle > 0);
        let (blocked, other_ends): (Vec<_>, Vec<_>) = (0..3).map(|_| lingering()).unzip();
        for (uid, fd) in (2000..).zip(blocked) {
            disposer(&closers, Owner::Uid(uid)).close_passed(fd);
        }
        let (fd, is_closed) = tracer();
        disposer(&closers, BOB).close_passed(fd);
        wait_until("the last is closed", is_closed);
        drop(other_ends);
        wait_until("all are closed", || !closers.is_busy());
    }
}

#[test]
fn a_user_with_a_stuck_descriptor_comes_last() {
    let closers = Closers::new(77);
    let shared = &closers.shared;
    let mut lanes = shared.lock();
    let lane = |owner, kind| Lane { owner, kind };
    let (stuck, waits) = (lane(ALICE, Kind::Passed), lane(ALICE, Kind::Connections));
    lanes.queues.insert(stuck, Queue::default());
    lanes.busy_others = 1;
    shared.make_ready(&mut lanes, waits);
    lanes.set_stuck(stuck);
    shared.make_ready(&mut lanes, lane(BOB, Kind::Passed));
    assert_eq!((lanes.next_lane(), lanes.next_lane()), (Some(lane(BOB, Kind::Passed)), Some(waits)));
    shared.make_ready(&mut lanes, waits);
    shared.make_ready(&mut lanes, lane(BOB, Kind::Passed));
    assert_eq!((lanes.next_lane(), lanes.next_lane()), (Some(lane(BOB, Kind::Passed)), Some(waits)));
}

#[test]
fn an_empty_connection_waits_for_no_other_user() {
    let closers = Closers::new(77);
    let mut other_ends = Vec::new();
    for uid in 0..MAX_THREADS as i32 {
        let (fd, other_end) = lingering();
        other_ends.push(other_end);
        disposer(&closers, Owner::Uid(2000 + uid)).close_passed(fd);
    }
    wait_until("all threads are busy", || closers.shared.lock().busy_others == MAX_THREADS);
    let alice = disposer(&closers, ALICE);
    for holds_something in [false, true] {
        let (mut ours, theirs) = esatto_ipc::Stream::pair().unwrap();
        ours.set_disposal(Arc::new(disposer(&closers, ALICE)));
        if holds_something {
            theirs.send(b"x", None).unwrap();
        }
        drop(ours);
        let is_waiting = || alice.closers.connections_of(ALICE) == 1;
        match holds_something {
            false => wait_until("it is closed", || !is_waiting()),
            true => assert!(is_waiting(), "it may hold descriptors"),
        }
    }
    drop(other_ends);
    wait_until("all is closed", || !closers.is_busy());
}

#[test]
fn the_unit_has_room_for_all_threads() {
    let unit = include_str!("../../../../packaging/systemd/traced.service");
    let tasks_max = unit.lines().find_map(|line| line.strip_prefix("TasksMax=")).unwrap();
    let closing = MAX_THREADS + RESERVED_THREADS + MAX_STUCK_THREADS;
    assert!(tasks_max.parse::<usize>().unwrap() > crate::trace_files::MAX_FILES + closing, "{tasks_max}");
}

#[test]
fn connections_do_not_wait_for_passed_descriptors() {
    let closers = Closers::new(77);
    let alice = disposer(&closers, ALICE);
    let (fd, other_end) = lingering();
    alice.close_passed(fd);
    let (fd, is_closed) = tracer();
    alice.close_connection(fd);
    wait_until("the connection is closed", is_closed);
    drop(other_end);
    wait_until("all is closed", || !closers.is_busy());
}

#[test]
fn a_user_with_too_many_open_descriptors_may_pass_no_more() {
    let closers = Closers::new(77);
    let (alice, bob) = (disposer(&closers, ALICE), disposer(&closers, BOB));
    let (fd, other_end) = lingering();
    alice.close_passed(fd);
    for _ in 1..MAX_PASSED {
        assert_eq!(alice.admission(), Admission::Granted);
        alice.close_passed(tracer().0);
    }
    assert_eq!((alice.admission(), bob.admission()), (Admission::Later, Admission::Granted));
    wait_until("patience ends", || alice.admission() == Admission::Denied);
    assert_eq!(bob.admission(), Admission::Granted);
    assert_eq!(closers.connections_of(ALICE), 0);
    drop(other_end);
    wait_until("all is closed", || !closers.is_busy());
    assert_eq!(alice.admission(), Admission::Granted);
    assert!(closers.shared.lock().queues.is_empty(), "nothing is kept");
}
