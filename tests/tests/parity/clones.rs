//! Snapshots of a session: their content, the rest in the source, and the flushes of data sources
//! before.

use crate::compare;
use crate::outcome::Rules::V2;
use crate::players::Players;
use esatto_tests::wire::Proto;

/// A V2 buffer of 256 KiB.
fn buffer() -> Proto {
    Proto::new().int(1, 256).int(8, 1)
}

fn source(name: &str, buffer: u64) -> Proto {
    Proto::new().message(1, &Proto::new().bytes(1, name).int(2, buffer))
}

/// No clock snapshot comes in between.
fn builtin() -> Proto {
    Proto::new().int(6, 60_000)
}

fn config() -> Proto {
    Proto::new().message(1, &buffer()).message(2, &source("d", 0)).message(20, &builtin())
}

/// The session with this number.
fn by_id(id: u64) -> Proto {
    Proto::new().int(1, id)
}

/// A session that has recorded something.
fn recording(players: &mut Players<'_>, config: &Proto) -> u64 {
    players.offer(&["d"]);
    players.enable(config);
    let buffer = players.await_start().buffer;
    players.commit(buffer, 1, &[10, 20]);
    players.commit(buffer, 2, &[30]);
    buffer
}

#[test]
fn by_the_number_of_the_session() {
    compare(V2, |players| {
        let buffer = recording(players, &config());
        players.clone_session(&by_id(1), 1);
        players.commit(buffer, 1, &[40]);
        players.stop_and_read();
    });
}

#[test]
fn by_its_name_and_twice() {
    compare(V2, |players| {
        let buffer = recording(players, &config().bytes(22, "name"));
        players.clone_session(&Proto::new().bytes(4, "name"), 1);
        players.commit(buffer, 1, &[40]);
        players.clone_session(&Proto::new().bytes(4, "name"), 1);
        players.stop_and_read();
    });
}

#[test]
fn for_a_bug_report() {
    compare(V2, |players| {
        recording(players, &config().int(30, 7));
        players.clone_session(&by_id(u64::MAX), 1);
        players.stop_and_read();
    });
}

#[test]
fn of_buffers_that_are_moved_and_cleared() {
    compare(V2, |players| {
        let marked = |mark| Proto::new().int(1, 256).int(mark, 1).int(8, 1);
        let (moved, cleared) = (marked(5), marked(6));
        let config = Proto::new()
            // In front: v56 names the writers of moved buffers before all others.
            .message(1, &moved)
            .message(1, &buffer())
            .message(1, &cleared)
            .message(2, &source("d", 0))
            .message(2, &source("e", 1))
            .message(2, &source("f", 2))
            .message(20, &builtin());
        players.offer_without_state(&["d", "e", "f"]);
        players.enable(&config);
        let buffers = [(); 3].map(|()| players.await_start().buffer);
        for (writer, buffer) in (1..).zip(buffers) {
            players.commit(buffer, writer, &[10, 20]);
        }
        players.clone_session(&by_id(1), 2);
        for (writer, buffer) in (1..).zip(buffers) {
            players.commit(buffer, writer, &[30]);
        }
        players.stop_and_read();
    });
}

#[test]
fn for_a_trigger() {
    compare(V2, |players| {
        recording(players, &config());
        let request = by_id(1).bytes(5, "jank").bytes(6, "watcher").int(7, 1234).int(8, 99).int(9, 500);
        players.clone_session(&request, 1);
        players.stop_and_read();
    });
}

#[test]
fn of_a_session_that_waits_for_triggers() {
    compare(V2, |players| {
        let trigger = Proto::new().bytes(1, "go").int(3, 0);
        let triggers = Proto::new().int(1, 4).message(2, &trigger).int(3, 30_000);
        let config = Proto::new()
            .message(1, &buffer())
            .message(2, &source("d", 0))
            .message(17, &triggers)
            .message(20, &builtin());
        recording(players, &config);
        assert!(players.producer.call("ActivateTriggers", &Proto::new().bytes(1, "go")).success);
        players.clone_session(&by_id(1), 1);
        // The trigger is in one trace only.
        players.clone_session(&by_id(1), 1);
        players.stop_and_read();
    });
}

#[test]
fn of_a_session_that_has_ended() {
    compare(V2, |players| {
        recording(players, &config());
        players.stop();
        players.clone_session(&by_id(1), 0);
        players.read();
    });
}

#[test]
fn of_a_session_that_was_read() {
    compare(V2, |players| {
        let buffer = recording(players, &config());
        players.read();
        players.commit(buffer, 1, &[40]);
        players.clone_session(&by_id(1), 1);
        players.stop_and_read();
    });
}

#[test]
fn of_a_session_that_streams_into_a_file() {
    use std::os::fd::AsFd as _;
    compare(V2, |players| {
        let path = players.harness.path("streamed");
        let config = config().int(8, 1).int(9, 60_000).bytes(29, "streamed").int(44, 1);
        let buffer = recording(players, &config);
        let copy = std::fs::File::create(players.harness.path("copy")).expect("a file");
        players.clone_into(&by_id(1), copy.as_fd(), 1);
        players.file(&std::fs::read(players.harness.path("copy")).expect("the copy"));
        players.commit(buffer, 1, &[40]);
        players.stop();
        let trace = esatto_tests::wait_until("the file is written", || {
            std::fs::read(&path).ok().filter(|bytes| !bytes.is_empty())
        });
        players.file(&trace);
    });
}

#[test]
fn whose_data_sources_do_not_flush() {
    compare(V2, |players| {
        recording(players, &config().int(14, 100));
        players.clone_session(&by_id(1), 0);
        // The flush that was not acknowledged.
        let _ = players.await_command(5);
        players.stop_and_read();
    });
}
