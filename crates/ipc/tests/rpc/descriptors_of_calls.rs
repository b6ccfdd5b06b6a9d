//! Descriptors that travel with typed calls: each arrives with its message, in every style, and
//! those that nobody takes are closed.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use esatto_ipc::frame::rpc::{Features, InvokeMethod, encode};
use esatto_ipc::server::{Context, Incoming, Replies, ServerConnection, ServerLimits};
use esatto_ipc::{Address, CallError, Channel, Code, ForeignFd, Listener, Status, Stream};

use crate::messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest};
use crate::raw_peer::Raw;
use crate::sample_store::{SOON, get, note, serve, watch};
use crate::store::{self, Handler, Server, method};

/// Pipe, whose reading end shows what was written, and when all writing ends are closed.
fn pipe() -> (File, OwnedFd) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (read.into(), write)
}

/// Waits until all writing ends are closed, and returns what was written.
fn written(mut read: File) -> String {
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    text
}

/// Returns the number of descriptors of this process for a pipe.
fn copies(pipe: &File) -> usize {
    let name = |fd: &dyn std::fmt::Display| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let ours = name(&pipe.as_raw_fd());
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    all.filter(|entry| name(&entry.as_ref().unwrap().file_name().to_str().unwrap()) == ours).count()
}

fn write(fd: ForeignFd, text: &str) {
    File::from(fd.into_owned()).write_all(text.as_bytes()).unwrap();
}

/// Sends each descriptor back: `get` the one that it got, `watch` one with each event.
#[derive(Clone, Debug)]
struct Echo;

impl Server for Echo {
    async fn get(&self, context: &Context, request: GetRequest) -> Result<GetReply, Status> {
        if request.key.as_ref().and_then(|key| key.to_str()) == Some("not taken") {
            return Ok(GetReply::default());
        }
        let fd = context.take_fd();
        let reply = GetReply { value: Some(if fd.is_some() { "yes" } else { "no" }.into()), ..GetReply::default() };
        if let Some(fd) = fd {
            context.attach(fd.into_owned());
        }
        Ok(reply)
    }

    async fn watch(&self, context: &Context, request: WatchRequest, mut replies: Replies<Event>) -> Result<(), Status> {
        let Some(fd) = context.take_fd() else { return Err(Code::InvalidArgument.into()) };
        let fd = fd.into_owned();
        for number in 0..request.count.unwrap_or(0) {
            let event = Event { number: Some(number), ..Event::default() };
            if number % 2 == 0 {
                replies.send_with_fd(&event, fd.try_clone().unwrap()).await?;
            } else {
                replies.send(&event).await?;
            }
        }
        Ok(())
    }

    async fn note(&self, context: &Context, request: Text) {
        if let Some(fd) = context.take_fd() {
            write(fd, request.text.unwrap().to_str().unwrap());
        }
    }
}

impl Handler for Echo {
    fn get(&mut self, mut call: Incoming<'_, method::Get>) {
        if call.request().unwrap().key.as_ref().and_then(|key| key.to_str()) == Some("not taken") {
            return call.into_reply().send(&GetReply::default());
        }
        let fd = call.take_fd();
        let message = GetReply { value: Some(if fd.is_some() { "yes" } else { "no" }.into()), ..GetReply::default() };
        let reply = call.into_reply();
        match fd {
            Some(fd) => reply.attach(fd.into_owned()).send(&message),
            None => reply.send(&message),
        }
    }

    fn watch(&mut self, mut call: Incoming<'_, method::Watch>) {
        let Some(fd) = call.take_fd() else { return call.fail(&Code::InvalidArgument.into()) };
        let fd = fd.into_owned();
        let count = call.request().unwrap().count.unwrap_or(0);
        let mut replies = call.into_replies();
        thread::spawn(move || {
            for number in 0..count {
                let event = Event { number: Some(number), ..Event::default() };
                let sent = if number % 2 == 0 {
                    replies.send_blocking_with_fd(&event, fd.try_clone().unwrap())
                } else {
                    replies.send_blocking(&event)
                };
                if sent.is_err() {
                    return;
                }
            }
            replies.finish();
        });
    }

    fn note(&mut self, mut call: Incoming<'_, method::Note>) {
        if let Some(fd) = call.take_fd() {
            write(fd, call.request().unwrap().text.unwrap().to_str().unwrap());
        }
    }
}

/// Clients of both forms of the service.
fn clients() -> [store::Client; 2] {
    [serve(store::ServeAsync::new(Echo)).0, serve(store::Serve(Echo)).0].map(|channel| store::Client::new(&channel))
}

#[test]
fn a_descriptor_goes_with_a_request_and_back_with_its_reply() {
    for client in clients() {
        let channel = client.channel().clone();
        let back = |fd: Option<ForeignFd>| write(fd.expect("it came back"), "blocking");
        let (read, fd) = pipe();
        let (reply, fd) = client.get(&get("a")).attach(fd).wait_with_fd().unwrap();
        assert_eq!(reply.value.unwrap().to_str(), Some("yes"));
        back(fd);
        assert_eq!(written(read), "blocking");

        let (read, fd) = pipe();
        let (sender, received) = mpsc::channel();
        let callback = move |result: Result<_, CallError>| sender.send(result.unwrap()).unwrap();
        client.get(&get("a")).attach(fd).then_with_fd(callback).unwrap();
        let (_, fd): (GetReply, Option<ForeignFd>) = loop {
            channel.pump().unwrap();
            if let Ok(reply) = received.try_recv() {
                break reply;
            }
        };
        write(fd.expect("it came back"), "callback");
        assert_eq!(written(read), "callback");

        let (read, fd) = pipe();
        thread::scope(|scope| {
            let call = client.get(&get("a")).attach(fd).await_with_fd();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let drives = scope.spawn(|| client.get(&get("not taken")).wait().unwrap());
            drives.join().unwrap();
            let (_, fd) = runtime.block_on(async {
                channel.spawn_driver().unwrap();
                call.await.unwrap()
            });
            write(fd.expect("it came back"), "future");
        });
        assert_eq!(written(read), "future");
        assert_eq!(client.get(&get("a")).wait_with_fd().unwrap().0.value.unwrap().to_str(), Some("no"));
        assert_eq!(channel.unexpected_fds(), 0);
    }
}

#[test]
fn replies_of_a_stream_have_their_own_descriptors() {
    for client in clients() {
        let (read, fd) = pipe();
        let mut events = client.watch(&watch(9, 0)).attach(fd).timeout(SOON);
        for number in 0..9 {
            let event = events.next_reply().unwrap().unwrap();
            assert_eq!(event.number, Some(number));
            let fd = events.take_fd();
            assert_eq!(fd.is_some(), number % 2 == 0, "{number}");
            fd.into_iter().for_each(|fd| write(fd, &number.to_string()));
        }
        assert_eq!(events.next_reply(), Ok(None));
        assert_eq!(written(read), "02468");

        let (read, fd) = pipe();
        let (sender, ended) = mpsc::channel();
        let callback = move |result: Result<Option<(Event, Option<ForeignFd>)>, CallError>| match result.unwrap() {
            Some((event, fd)) => fd.into_iter().for_each(|fd| write(fd, &event.number.unwrap().to_string())),
            None => sender.send(()).unwrap(),
        };
        client.watch(&watch(4, 0)).attach(fd).for_each_with_fd(callback).unwrap();
        while ended.try_recv().is_err() {
            client.channel().pump().unwrap();
        }
        assert_eq!(written(read), "02");
    }
}

#[test]
fn a_descriptor_goes_with_a_one_way_call() {
    for client in clients() {
        let (read, fd) = pipe();
        client.note(&note("noted")).attach(fd).send().unwrap();
        client.get(&get("a")).wait().unwrap();
        assert_eq!(written(read), "noted");
    }
}

#[test]
fn descriptors_that_nobody_takes_are_closed() {
    for client in clients() {
        let (read, fd) = pipe();
        client.get(&get("not taken")).attach(fd).wait().unwrap();
        assert_eq!(written(read), "");
        // One that the program lets go with the reply, and those of a stream that it drops.
        let (read, fd) = pipe();
        client.get(&get("a")).attach(fd).wait().unwrap();
        let (other, fd) = pipe();
        let mut events = client.watch(&watch(1000, 0)).attach(fd);
        events.next_reply().unwrap();
        drop(events);
        // This one reads the replies that were on their way.
        client.get(&get("a")).wait().unwrap();
        assert_eq!((written(read), written(other)), (String::new(), String::new()));
    }
    // Those of a call that never reaches its service.
    let (ours, theirs) = Stream::pair().unwrap();
    let channel = Channel::new(ours);
    let client = store::Client::new(&channel);
    let (read, fd) = pipe();
    let result = client.get(&get("a")).attach(fd).timeout(Duration::from_millis(20)).wait();
    assert_eq!((result, written(read)), (Err(CallError::Timeout("Store.Get")), String::new()));
    let (read, fd) = pipe();
    client.get(&get("a")).attach(fd).then(|result| assert!(result.is_err())).unwrap();
    drop((client, channel, theirs));
    assert_eq!(written(read), "");
}

#[test]
fn a_stream_of_descriptors_pauses_before_its_client_has_too_many() {
    for client in clients() {
        let (read, fd) = pipe();
        let mut events = client.watch(&watch(10_000, 0)).attach(fd);
        events.next_reply().unwrap();
        // Another call reads what has arrived.
        let end = Instant::now() + Duration::from_millis(300);
        while Instant::now() < end {
            client.get(&get("a")).wait().unwrap();
        }
        let held = copies(&read);
        // A MiB is the room of 64, and the server keeps 64.
        assert!((60..140).contains(&held), "{held}");
        assert!(events.map(Result::unwrap).eq_by_number(1..10_000));
        assert_eq!(written(read), "");
    }
}

trait Numbers {
    fn eq_by_number(self, numbers: std::ops::Range<u32>) -> bool;
}

impl<I: Iterator<Item = Event>> Numbers for I {
    fn eq_by_number(self, numbers: std::ops::Range<u32>) -> bool {
        self.map(|event| event.number.unwrap()).eq(numbers)
    }
}

/// Takes a descriptor with each call and keeps it, because it never answers.
#[derive(Debug)]
struct Keeper;

impl Server for Keeper {
    async fn get(&self, _: &Context, _: GetRequest) -> Result<GetReply, Status> {
        std::future::pending().await
    }

    async fn watch(&self, _: &Context, _: WatchRequest, _: Replies<Event>) -> Result<(), Status> {
        std::future::pending().await
    }

    async fn note(&self, _: &Context, _: Text) {}
}

#[test]
fn open_calls_hold_a_bounded_number_of_descriptors() {
    let (channel, server) = serve(store::ServeAsync::new(Keeper));
    let client = store::Client::new(&channel);
    let (read, fd) = pipe();
    let (sender, failed) = mpsc::channel();
    for _ in 0..100 {
        // The queue has a bound of its own.
        loop {
            let sender = sender.clone();
            let callback = move |result: Result<GetReply, CallError>| drop(sender.send(result.unwrap_err()));
            match client.get(&get("a")).attach(fd.try_clone().unwrap()).then(callback) {
                Err(CallError::QueueFull(_)) => channel.pump().unwrap(),
                sent => break sent.unwrap(),
            };
        }
    }
    drop(fd);
    let mut refused = 0;
    while refused < 100 - ServerLimits::default().max_fds {
        channel.pump().unwrap();
        while let Ok(error) = failed.try_recv() {
            assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
            refused += 1;
        }
    }
    assert_eq!(channel.open_calls(), ServerLimits::default().max_fds);
    drop((client, channel));
    server.join().unwrap();
    assert_eq!(written(read), "", "all are closed with the connection");
}

#[test]
fn a_caller_that_does_not_write_queues_a_bounded_number_of_descriptors() {
    let (ours, _theirs) = Stream::pair().unwrap();
    let client = store::Client::new(&Channel::new(ours));
    let (_, fd) = pipe();
    let error = (0..1000).find_map(|_| client.note(&note("x")).attach(fd.try_clone().unwrap()).send_now().err());
    assert_eq!(error, Some(CallError::QueueFull("Store.Note")));
}

#[test]
fn a_socket_without_descriptors_refuses_the_call() {
    let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap()).unwrap();
    let address = Address::Inet { host: "127.0.0.1".into(), port: listener.port().unwrap() };
    thread::spawn(move || esatto_ipc::Server::new(store::ServeAsync::new(Echo)).serve_blocking(&listener));
    let channel = Channel::connect(&address, SOON).unwrap();
    let client = store::Client::new(&channel);
    let (read, fd) = pipe();
    let error = client.get(&get("a")).attach(fd).wait().unwrap_err();
    let text = "Store.Get failed: file descriptors cannot be sent over this kind of socket";
    assert_eq!((error.to_string().as_str(), written(read).as_str()), (text, ""));
    let (_, fd) = pipe();
    let error = client.watch(&watch(1, 0)).attach(fd).next_reply().unwrap_err();
    assert_eq!(error, CallError::DescriptorsUnsupported("Store.Watch"));
    let (_, fd) = pipe();
    let error = client.note(&note("x")).attach(fd).send().unwrap_err();
    assert_eq!(error, CallError::DescriptorsUnsupported("Store.Note"));
    // The channel works on.
    client.get(&get("not taken")).wait().unwrap();
    assert_eq!(channel.open_calls(), 0);
}

/// A client that does not mark its frames sends a descriptor some frames before the call that
/// takes it, as the kernel may deliver it.
#[test]
fn of_old_clients_the_next_call_that_takes_a_descriptor_has_it() {
    let features = Features(Features::ALL.0 & !Features::DESCRIPTORS.0);
    let form = |is_async: bool| {
        let (ours, theirs) = Stream::pair().unwrap();
        thread::spawn(move || {
            let limits = ServerLimits::default();
            if is_async {
                ServerConnection::new(theirs, store::ServeAsync::new(Echo), limits).block();
            } else {
                ServerConnection::new(theirs, store::Serve(Echo), limits).block();
            }
        });
        Raw::new(ours)
    };
    for is_async in [true, false] {
        let mut raw = form(is_async);
        raw.bind(features);
        let (read, fd) = pipe();
        let mut bytes = Vec::new();
        for (id, key) in [(2, "not taken"), (3, "not taken"), (4, "a")] {
            let args = esatto_protozero::Owned::encode(&get(key));
            let call = InvokeMethod { service_id: 1, method_id: 1, args: &args, ..Default::default() };
            encode::invoke_method(&mut bytes, id, &call, false).unwrap();
        }
        raw.send_with(&bytes, Some(fd.as_fd()));
        drop(fd);
        for id in 2..5 {
            let taken = raw.receive(|frame| (frame.request_id, format!("{:?}", frame.body).contains("121, 101, 115")));
            assert_eq!(taken, (id, id == 4), "async: {is_async}");
        }
        drop(raw);
        assert_eq!(written(read), "", "async: {is_async}");
    }
}
