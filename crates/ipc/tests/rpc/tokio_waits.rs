//! [`TokioIo`]: waiting for bytes, and for room, at the same time.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use esatto_ipc::tokio::TokioIo;
use esatto_ipc::{Readiness, Stream};
use tokio::time::{sleep, timeout};

use crate::sample_store::SOON;

/// Fills a socket until it takes no more.
fn fill(stream: &Stream) {
    while stream.send(&[0; 4096], None).unwrap() > 0 {}
}

/// Reads all that has arrived.
fn drain(stream: &Stream) {
    while stream.recv(&mut [0; 65536]).unwrap().is_some() {}
}

/// Asks for both, for room last, as drivers do. Returns which is there.
fn poll_both(io: &mut impl Readiness, cx: &mut Context<'_>) -> Poll<(bool, bool)> {
    match (io.poll_readable(cx).is_ready(), io.poll_writable(cx).is_ready()) {
        (false, false) => Poll::Pending,
        ready => Poll::Ready(ready),
    }
}

#[tokio::test]
async fn who_waits_for_room_also_hears_of_bytes() {
    let (ours, theirs) = Stream::pair().unwrap();
    let mut io = TokioIo::duplicate(&ours).unwrap();
    fill(&ours);
    let task = tokio::spawn(async move { poll_fn(|cx| poll_both(&mut io, cx)).await });
    sleep(Duration::from_millis(50)).await;
    assert!(!task.is_finished(), "it waits for both");
    theirs.send(b"x", None).unwrap();
    assert_eq!(timeout(SOON, task).await.unwrap().unwrap(), (true, false));
}

#[tokio::test]
async fn room_and_bytes_are_told_again_and_again() {
    let (ours, theirs) = Stream::pair().unwrap();
    let mut io = TokioIo::duplicate(&ours).unwrap();
    for _ in 0..3 {
        fill(&ours);
        let mut both = poll_fn(|cx| poll_both(&mut io, cx));
        let room = timeout(Duration::from_millis(50), &mut both).await;
        assert!(room.is_err(), "{room:?}");
        drain(&theirs);
        assert_eq!(timeout(SOON, both).await.unwrap(), (false, true));
        // Only bytes are waited for: twice, as the first question still follows one for room.
        for _ in 0..2 {
            theirs.send(b"x", None).unwrap();
            timeout(SOON, poll_fn(|cx| io.poll_readable(cx))).await.unwrap().unwrap();
            drain(&ours);
        }
    }
}
