//! FreeBuffers, and a consumer that disconnects, while the session runs: the commands to the
//! producer, the content of the file, and the replies to the consumer in their order.

use crate::compare;
use crate::outcome::Rules::V2;
use crate::players::Players;
use crate::sessions::without_path;
use esatto_tests::raw::RawConsumer;
use esatto_tests::wait_until;
use esatto_tests::wire::Proto;
use std::path::PathBuf;

/// How a session is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    FreeBuffers,
    Disconnect,
}

/// A V2 buffer, the data source `d`, no clock snapshot that comes in between, and a file that is
/// written once, at the end.
fn config(path: Option<&PathBuf>) -> Proto {
    let source = Proto::new().message(1, &Proto::new().bytes(1, "d"));
    let builtin = Proto::new().int(6, 60_000);
    let config = Proto::new().message(1, &Proto::new().int(1, 256).int(8, 1)).message(2, &source);
    match path {
        Some(path) => {
            config.int(8, 1).int(9, 60_000).message(20, &builtin).bytes(29, path.to_string_lossy().as_bytes())
        }
        None => config.message(20, &builtin),
    }
}

/// A session is freed while its data source, which acknowledges its stop or does not, has written
/// packets and committed some.
fn freed(players: &mut Players<'_>, how: How, descriptor: &Proto, into_file: bool) {
    players.producer.register(descriptor);
    let path = into_file.then(|| players.harness.path("streamed"));
    players.enable(&config(path.as_ref()));
    let buffer = players.await_start().buffer;
    players.commit(buffer, 1, &[10, 20]);
    players.commit(buffer, 2, &[30]);
    match how {
        How::FreeBuffers => {
            let (freed, frame) = players.consumer.peer.call_frame("FreeBuffers", &Proto::new());
            players.consumer.peer.send(&frame);
            for _ in 0..2 {
                let reply = players.consumer.peer.read().expect("a reply");
                let which = if reply.request_id == freed { "FreeBuffers" } else { "EnableTracing" };
                players.told(&format!("{which} {} {:?}", reply.success, reply.body));
            }
        }
        How::Disconnect => players.consumer = RawConsumer::connect(players.harness),
    }
    let _ = players.await_command(2);
    if let Some(path) = path {
        let trace = wait_until("the file is written", || std::fs::read(&path).ok().filter(|bytes| !bytes.is_empty()));
        players.file(&without_path(&trace));
    }
}

fn descriptor() -> Proto {
    Proto::new().bytes(1, "d").int(4, 1)
}

#[test]
fn a_running_session_without_a_file() {
    for how in [How::FreeBuffers, How::Disconnect] {
        compare(V2, |players| freed(players, how, &descriptor(), false));
    }
}

#[test]
fn a_running_session_that_writes_into_a_file() {
    for how in [How::FreeBuffers, How::Disconnect] {
        compare(V2, |players| freed(players, how, &descriptor(), true));
    }
}

#[test]
fn a_free_does_not_wait_for_the_stop_of_a_data_source() {
    for how in [How::FreeBuffers, How::Disconnect] {
        compare(V2, |players| freed(players, how, &descriptor().int(2, 1), true));
    }
}

#[test]
fn a_session_can_be_freed_before_its_first_command() {
    for how in [How::FreeBuffers, How::Disconnect] {
        compare(V2, |players| {
            players.offer(&["d"]);
            let path = players.harness.path("streamed");
            players.enable(&config(Some(&path)));
            match how {
                How::FreeBuffers => {
                    let (freed, frame) = players.consumer.peer.call_frame("FreeBuffers", &Proto::new());
                    players.consumer.peer.send(&frame);
                    for _ in 0..2 {
                        let reply = players.consumer.peer.read().expect("a reply");
                        let which = if reply.request_id == freed { "FreeBuffers" } else { "EnableTracing" };
                        players.told(&format!("{which} {} {:?}", reply.success, reply.body));
                    }
                }
                How::Disconnect => players.consumer = RawConsumer::connect(players.harness),
            }
            let trace =
                wait_until("the file is written", || std::fs::read(&path).ok().filter(|bytes| !bytes.is_empty()));
            players.file(&without_path(&trace));
            let _ = players.await_command(2);
        });
    }
}
