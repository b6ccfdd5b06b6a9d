use esatto_shm::Outgoing;

use crate::rig::{Rig, test_packet};

#[test]
fn nothing_is_committed_while_a_reservation_is_open() {
    let rig = Rig::new(16384);
    let mut ordinary = rig.writer();
    let mut early = rig.arbiter.create_startup_writer(7);
    test_packet(&mut early, 1, "early");
    early.flush();
    test_packet(&mut ordinary, 1, "ordinary");
    ordinary.flush();
    rig.send_pending();
    let events = rig.recorder.outgoing.lock().unwrap();
    assert!(matches!(events[..], [Outgoing::RegisterWriter { writer_id: 1, target_buffer: 1 }]), "{events:?}");
}

#[test]
fn binding_registers_the_writers_and_then_commits_with_the_real_buffer() {
    let rig = Rig::new(16384);
    let mut early = rig.arbiter.create_startup_writer(7);
    test_packet(&mut early, 1, "early");
    early.flush();
    {
        let mut packet = early.new_packet();
        packet.message().begin(1).bytes(1, &[1; 5000]);
    }
    rig.send_pending();
    rig.arbiter.bind_reservation(7, 3);
    rig.arbiter.bind_reservation(7, 4);
    rig.send_pending();
    test_packet(&mut early, 2, "later");
    early.flush();
    rig.send_pending();
    let late = rig.arbiter.create_startup_writer(7);
    rig.send_pending();
    let events = rig.recorder.outgoing.lock().unwrap();
    let [
        Outgoing::RegisterWriter { writer_id: 1, target_buffer: 3 },
        Outgoing::Commit(first),
        Outgoing::Commit(second),
        Outgoing::RegisterWriter { writer_id: 2, target_buffer: 3 },
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(first.moves.len(), 2);
    assert!(first.moves.iter().chain(&second.moves).all(|m| m.target_buffer == 3));
    assert!(first.patches.iter().all(|p| p.target_buffer == 3) && first.patches.len() == 1);
    drop(late);
}

#[test]
fn chunks_of_an_aborted_reservation_are_discarded() {
    let rig = Rig::new(16384);
    let mut early = rig.arbiter.create_startup_writer(7);
    test_packet(&mut early, 1, "early");
    early.flush();
    rig.arbiter.abort_reservation(7);
    rig.arbiter.bind_reservation(7, 3);
    drop(early);
    rig.send_pending();
    let events = rig.recorder.outgoing.lock().unwrap();
    let [Outgoing::Commit(commit)] = &events[..] else { panic!("{events:?}") };
    assert!(commit.moves.iter().all(|m| m.target_buffer == 0));
}

#[test]
fn a_startup_writer_drops_instead_of_waiting() {
    let rig = Rig::new(8192);
    let mut early = rig.arbiter.create_startup_writer(7);
    for i in 0..1000 {
        test_packet(&mut early, i, "early");
    }
    assert_eq!(early.drop_count(), 1);
    assert!(rig.recorder.stalls.lock().unwrap().is_empty());
}
