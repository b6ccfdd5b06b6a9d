//! One channel, used by threads that block, by an event loop and by futures, also at once.

use std::os::fd::AsFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::server::{Context, Replies, Server as RpcServer, ServerConnection, ServerLimits};
use esatto_ipc::sys::{PollFd, poll};
use esatto_ipc::{Address, CallError, Channel, Listener, Status, Stream};

use crate::messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest};
use crate::sample_store::{SOON, Sample, get, note, serve, watch};
use crate::store::{self, Server};

/// Waits for the channel and pumps it until `is_done`.
fn event_loop(channel: &Channel, is_done: &dyn Fn() -> bool) {
    let end = Instant::now() + SOON;
    while !is_done() {
        assert!(Instant::now() < end, "{channel:?}");
        if channel.pump().unwrap() {
            continue;
        }
        let deadline = channel.next_deadline().unwrap_or(end).min(end);
        let timeout = deadline.saturating_duration_since(Instant::now()).min(Duration::from_millis(50));
        if !is_done() {
            let _ = poll(&mut [PollFd::new(channel.as_fd(), channel.interest().write)], Some(timeout));
        }
    }
}

#[test]
fn many_threads_may_wait_at_once() {
    let (channel, _) = serve(store::ServeAsync::new(Sample::default()));
    thread::scope(|scope| {
        for t in 0..8 {
            let client = store::Client::new(&channel);
            scope.spawn(move || {
                for i in 0..300 {
                    let key = format!("{t} {i}");
                    assert_eq!(client.get(&get(&key)).wait().unwrap().value.unwrap().to_str(), Some(&*key));
                    if i % 50 == 0 {
                        assert_eq!(client.watch(&watch(20, 1000)).map(Result::unwrap).count(), 20);
                    }
                }
            });
        }
    });
    assert_eq!((channel.open_calls(), channel.unexpected()), (0, 0));
}

#[test]
fn the_last_of_several_waiting_threads_is_answered() {
    const ROUNDS: usize = 10_000;
    let (channel, _) = serve(store::ServeAsync::new(Sample::default()));
    let (sender, answered) = mpsc::channel();
    let round = Arc::new(Barrier::new(2));
    for calls in [1, 2] {
        let (client, sender, round) = (store::Client::new(&channel), sender.clone(), Arc::clone(&round));
        thread::spawn(move || {
            for _ in 0..ROUNDS {
                round.wait();
                // One thread reads for both while it calls. Then the other one must read.
                for _ in 0..calls {
                    client.get(&get("a")).wait().unwrap();
                }
                sender.send(()).unwrap();
            }
        });
    }
    for answer in 0..2 * ROUNDS {
        assert!(answered.recv_timeout(SOON).is_ok(), "answer {answer}: {channel:?}");
    }
}

#[test]
fn an_event_loop_gets_callbacks() {
    let (channel, _) = serve(store::Serve(Sample::default()));
    let client = store::Client::new(&channel);
    let (sender, received) = mpsc::channel();
    for i in 0..10 {
        let sender = sender.clone();
        client.get(&get(&i.to_string())).then(move |result| sender.send(result.unwrap().value).unwrap()).unwrap();
    }
    let count = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicBool::new(false));
    let (counted, end) = (Arc::clone(&count), Arc::clone(&ended));
    let on_event = move |event: Result<Option<Event>, CallError>| match event.unwrap() {
        Some(event) => assert_eq!(event.number, Some(counted.fetch_add(1, Ordering::Relaxed) as u32)),
        None => end.store(true, Ordering::Relaxed),
    };
    client.watch(&watch(200, 20_000)).for_each(on_event).unwrap();
    event_loop(&channel, &|| ended.load(Ordering::Relaxed));
    assert_eq!(count.load(Ordering::Relaxed), 200);
    drop(sender);
    assert!(
        received.try_iter().map(|value| value.unwrap().to_str().unwrap().to_owned()).eq((0..10).map(|i| i.to_string()))
    );
}

#[test]
fn a_callback_may_call_again() {
    let (channel, _) = serve(store::Serve(Sample::default()));
    let client = store::Client::new(&channel);
    let (sender, received) = mpsc::channel();
    let again = client.clone();
    let callback = move |_| {
        again.get(&get("inner")).wait().unwrap();
        again.get(&get("later")).then(move |result| sender.send(result.unwrap()).unwrap()).unwrap();
    };
    client.get(&get("outer")).then(callback).unwrap();
    let mut reply = None;
    while reply.is_none() {
        channel.pump().unwrap();
        reply = received.try_recv().ok();
    }
    assert_eq!(reply.unwrap().value.unwrap().to_str(), Some("later"));
}

#[test]
fn deadlines_pass_in_every_style() {
    // Nobody answers.
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let client = store::Client::new(&channel);
    let short = Duration::from_millis(20);
    let error = client.get(&get("a")).timeout(short).wait().unwrap_err();
    assert_eq!(error, CallError::Timeout("Store.Get"));
    assert_eq!(client.get(&get("a")).timeout(Duration::ZERO).wait(), Err(CallError::Timeout("Store.Get")));
    let error = client.watch(&watch(1, 1)).timeout(short).next_reply().unwrap_err();
    assert_eq!(error, CallError::Timeout("Store.Watch"));
    let (sender, received) = mpsc::channel();
    client.get(&get("a")).timeout(short).then(move |result| sender.send(result).unwrap()).unwrap();
    let has_failed = AtomicBool::new(false);
    event_loop(&channel, &|| {
        has_failed.load(Ordering::Relaxed)
            || received.try_recv().is_ok_and(|result| {
                assert_eq!(result, Err(CallError::Timeout("Store.Get")));
                has_failed.store(true, Ordering::Relaxed);
                true
            })
    });
    assert_eq!(channel.open_calls(), 0);
    drop(theirs);
    assert_eq!(client.get(&get("a")).wait(), Err(CallError::Disconnected("Store.Get")));
}

#[test]
fn a_sleeping_thread_takes_over_the_reading() {
    // The first thread reads and has a long wait; the second has a shorter deadline.
    let (ours, _theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let client = store::Client::new(&channel);
    thread::scope(|scope| {
        let first = scope.spawn(|| client.get(&get("a")).timeout(Duration::from_secs(3)).wait());
        thread::sleep(Duration::from_millis(50));
        let begin = Instant::now();
        let second = client.get(&get("b")).timeout(Duration::from_millis(50)).wait();
        assert_eq!(second, Err(CallError::Timeout("Store.Get")));
        assert!(begin.elapsed() < Duration::from_secs(2));
        assert_eq!(first.join().unwrap(), Err(CallError::Timeout("Store.Get")));
    });
}

/// Executor of one future.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn futures_complete_while_another_thread_reads() {
    let (channel, _) = serve(store::Serve(Sample::default()));
    let client = store::Client::new(&channel);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| event_loop(&channel, &|| is_over.load(Ordering::Relaxed)));
        let value = block_on(async { client.get(&get("a")).await.unwrap().value });
        assert_eq!(value.unwrap().to_str(), Some("a"));
        is_over.store(true, Ordering::Relaxed);
    });
}

#[derive(Debug, Default)]
struct Slow {
    cancelled: Arc<AtomicUsize>,
}

struct CountDrop(Arc<AtomicUsize>);

impl Drop for CountDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Server for Slow {
    async fn get(&self, context: &Context, request: GetRequest) -> Result<GetReply, Status> {
        if request.key.as_ref().and_then(|key| key.to_str()) == Some("never") {
            let _count = CountDrop(Arc::clone(&self.cancelled));
            context.cancelled().await;
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(GetReply { value: request.key, payload: request.payload, ..GetReply::default() })
    }

    async fn watch(&self, _: &Context, request: WatchRequest, mut replies: Replies<Event>) -> Result<(), Status> {
        for number in 0..request.count.unwrap_or(0) {
            tokio::task::yield_now().await;
            replies.send(&Sample::event(number, &request)).await?;
        }
        Ok(())
    }

    async fn note(&self, _: &Context, _: Text) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokio_drives_both_sides() {
    let folder = std::env::temp_dir().join(format!("esatto-rpc-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let address = Address::Path(folder.join("store"));
    let listener = Listener::bind(&address).unwrap();
    let slow = Slow::default();
    let cancelled = Arc::clone(&slow.cancelled);
    let server = tokio::spawn(async move { RpcServer::new(store::ServeAsync::new(slow)).serve(&listener).await });

    let channel = Channel::connect(&address, SOON).unwrap();
    channel.spawn_driver().unwrap();
    let client = store::Client::new(&channel);
    let begin = Instant::now();
    let calls: Vec<_> = (0..200).map(|i| tokio::spawn(client.get(&get(&i.to_string())).into_future())).collect();
    for (i, call) in calls.into_iter().enumerate() {
        let key = i.to_string();
        assert_eq!(call.await.unwrap().unwrap().value.unwrap().to_str(), Some(&*key));
    }
    assert!(begin.elapsed() < Duration::from_millis(900), "200 calls of 5 ms each run at once");

    let mut events = client.watch(&watch(300, 20_000));
    for number in 0..300 {
        let event = std::future::poll_fn(|cx| events.poll_reply(cx)).await.unwrap().unwrap();
        assert_eq!(event.number, Some(number));
    }
    assert!(std::future::poll_fn(|cx| events.poll_reply(cx)).await.is_none());
    client.note(&note("x")).send_async().await.unwrap();

    // More than both directions of the socket hold, several times: each side waits for room, and
    // must hear of what the other one sends meanwhile.
    for _ in 0..5 {
        let large = |i: usize| GetRequest { payload: Some(vec![i as u8; 100_000]), ..get(&i.to_string()) };
        let calls: Vec<_> = (0..30).map(|i| tokio::spawn(client.get(&large(i)).into_future())).collect();
        for (i, call) in calls.into_iter().enumerate() {
            assert!(call.await.unwrap().unwrap().payload == large(i).payload, "reply {i}");
        }
        // The socket is empty again.
        assert_eq!(client.get(&get("b")).await.unwrap().value.unwrap().to_str(), Some("b"));
    }

    // Dropping the future cancels the call in the server.
    let never = client.get(&get("never")).into_future();
    let _ = tokio::time::timeout(Duration::from_millis(50), never).await.unwrap_err();
    // So does the deadline.
    let error = client.get(&get("never")).timeout(Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error, CallError::Timeout("Store.Get"));
    let end = Instant::now() + SOON;
    while cancelled.load(Ordering::Relaxed) < 2 {
        assert!(Instant::now() < end);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(channel.open_calls(), 0);
    server.abort();
    let _ = server.await;
    assert_eq!(client.get(&get("a")).await, Err(CallError::Disconnected("Store.Get")));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_server_runs_on_an_event_loop() {
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let mut connection = ServerConnection::new(theirs, (), ServerLimits::default());
    // The handler is not part of the connection.
    let mut handler = store::Serve(Sample::default());
    let client = store::Client::new(&channel);
    thread::scope(|scope| {
        let calls = scope.spawn(move || {
            for i in 0..50 {
                client.get(&get(&i.to_string())).wait().unwrap();
            }
            client.watch(&watch(20, 100_000)).map(Result::unwrap).count()
        });
        let woken = Arc::new(esatto_ipc::sys::WakeFd::new().unwrap());
        connection.set_waker(&Waker::from(Arc::clone(&woken)));
        while !calls.is_finished() {
            let Ok(has_more) = connection.pump_with(&mut handler) else { break };
            if !has_more {
                let interest = connection.interest();
                let socket = PollFd::new(connection.as_fd(), interest.write);
                let _ = poll(&mut [socket, PollFd::new(woken.as_fd(), false)], Some(Duration::from_millis(20)));
                woken.reset();
            }
        }
        assert_eq!(calls.join().unwrap(), 20);
    });
}
