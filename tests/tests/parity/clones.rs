//! Snapshots of a session: what is in them, what is left, and what data sources are asked before.

use crate::compare;
use crate::outcome::Rules::V2;
use crate::stage::Stage;
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
fn recording(stage: &mut Stage<'_>, config: &Proto) -> u64 {
    stage.offer(&["d"]);
    stage.enable(config);
    let buffer = stage.await_start().buffer;
    stage.commit(buffer, 1, &[10, 20]);
    stage.commit(buffer, 2, &[30]);
    buffer
}

#[test]
fn by_the_number_of_the_session() {
    compare(V2, |stage| {
        let buffer = recording(stage, &config());
        stage.clone_session(&by_id(1), 1);
        stage.commit(buffer, 1, &[40]);
        stage.stop_and_read();
    });
}

#[test]
fn by_its_name_and_twice() {
    compare(V2, |stage| {
        let buffer = recording(stage, &config().bytes(22, "name"));
        stage.clone_session(&Proto::new().bytes(4, "name"), 1);
        stage.commit(buffer, 1, &[40]);
        stage.clone_session(&Proto::new().bytes(4, "name"), 1);
        stage.stop_and_read();
    });
}

#[test]
fn for_a_bug_report() {
    compare(V2, |stage| {
        recording(stage, &config().int(30, 7));
        stage.clone_session(&by_id(u64::MAX), 1);
        stage.stop_and_read();
    });
}

#[test]
fn of_buffers_that_are_moved_and_cleared() {
    compare(V2, |stage| {
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
        stage.offer(&["d", "e", "f"]);
        stage.enable(&config);
        let buffers = [(); 3].map(|()| stage.await_start().buffer);
        for (writer, buffer) in (1..).zip(buffers) {
            stage.commit(buffer, writer, &[10, 20]);
        }
        stage.clone_session(&by_id(1), 2);
        for (writer, buffer) in (1..).zip(buffers) {
            stage.commit(buffer, writer, &[30]);
        }
        stage.stop_and_read();
    });
}

#[test]
fn for_a_trigger() {
    compare(V2, |stage| {
        recording(stage, &config());
        let request = by_id(1).bytes(5, "jank").bytes(6, "watcher").int(7, 1234).int(8, 99).int(9, 500);
        stage.clone_session(&request, 1);
        stage.stop_and_read();
    });
}

#[test]
fn of_a_session_that_waits_for_triggers() {
    compare(V2, |stage| {
        let trigger = Proto::new().bytes(1, "go").int(3, 0);
        let triggers = Proto::new().int(1, 4).message(2, &trigger).int(3, 30_000);
        let config = Proto::new()
            .message(1, &buffer())
            .message(2, &source("d", 0))
            .message(17, &triggers)
            .message(20, &builtin());
        recording(stage, &config);
        assert!(stage.producer.call("ActivateTriggers", &Proto::new().bytes(1, "go")).success);
        stage.clone_session(&by_id(1), 1);
        // The trigger is told once.
        stage.clone_session(&by_id(1), 1);
        stage.stop_and_read();
    });
}

#[test]
fn of_a_session_that_has_ended() {
    compare(V2, |stage| {
        recording(stage, &config());
        stage.stop();
        stage.clone_session(&by_id(1), 0);
        stage.read();
    });
}

#[test]
fn of_a_session_that_was_read() {
    compare(V2, |stage| {
        let buffer = recording(stage, &config());
        stage.read();
        stage.commit(buffer, 1, &[40]);
        stage.clone_session(&by_id(1), 1);
        stage.stop_and_read();
    });
}

#[test]
fn of_a_session_that_streams_into_a_file() {
    use std::os::fd::AsFd as _;
    compare(V2, |stage| {
        let path = stage.lab.path("streamed");
        let config = config().int(8, 1).int(9, 60_000).bytes(29, "streamed").int(44, 1);
        let buffer = recording(stage, &config);
        let copy = std::fs::File::create(stage.lab.path("copy")).expect("a file");
        stage.clone_into(&by_id(1), copy.as_fd(), 1);
        stage.file(&std::fs::read(stage.lab.path("copy")).expect("the copy"));
        stage.commit(buffer, 1, &[40]);
        stage.stop();
        let trace = esatto_tests::wait_until("the file is written", || {
            std::fs::read(&path).ok().filter(|bytes| !bytes.is_empty())
        });
        stage.file(&trace);
    });
}

#[test]
fn whose_data_sources_do_not_flush() {
    compare(V2, |stage| {
        recording(stage, &config().int(14, 100));
        stage.clone_session(&by_id(1), 0);
        // The flush that was not acknowledged.
        let _ = stage.await_command(5);
        stage.stop_and_read();
    });
}
