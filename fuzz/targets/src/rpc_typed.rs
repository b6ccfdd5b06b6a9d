//! Generated clients and servers of the RPC library, each at a socket whose other end sends any
//! bytes.

use std::fs::File;
use std::future::Future;
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context as TaskContext, Waker};

use esatto_ipc::frame::rpc::{Features, encode};
use esatto_ipc::server::{Context, Dispatch, Incoming, Replies, Reply, ServerConnection, ServerLimits};
use esatto_ipc::{CallError, Channel, ChannelLimits, FrameDecoder, Status, Stream};

#[allow(missing_docs, reason = "generated")]
mod messages {
    include!("../../../crates/ipc/tests/rpc/sample/messages.rs");
}
use messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest, store};

const LIMITS: ServerLimits = ServerLimits {
    max_calls: 8,
    max_request_bytes: 4000,
    max_fds: 4,
    max_frame_time: std::time::Duration::from_secs(60),
    pause_at: 20_000,
    max_queued: 1 << 20,
};

static NULL: LazyLock<File> = LazyLock::new(|| File::open("/dev/null").expect("is there"));

/// How the bytes of an input are sent. It begins with these two bytes.
struct Sending {
    /// Which form of the service, and which extensions.
    choice: u8,
    /// Bytes in a piece.
    piece: usize,
    /// Each piece comes with a descriptor.
    has_fds: bool,
}

impl Sending {
    fn split(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[choice, piece], rest) = bytes.split_first_chunk()?;
        Some((Self { choice, piece: usize::from(piece >> 1).max(1) * 40, has_fds: piece & 1 == 1 }, rest))
    }

    fn features(&self) -> Features {
        Features(u32::from(self.choice >> 1))
    }

    /// Sends all bytes, and lets the other end `turn` after each piece until it has taken it.
    fn send(&self, stream: &Stream, bytes: &[u8], mut turn: impl FnMut() -> bool) {
        for piece in bytes.chunks(self.piece) {
            let mut at = 0;
            while at < piece.len() {
                let fd = (self.has_fds && at == 0).then(|| NULL.as_fd());
                let Ok(sent) = stream.send(&piece[at..], fd) else { return };
                at += sent;
                if !turn() {
                    return;
                }
            }
        }
    }
}

/// A service whose calls are answered at once, later, or never.
#[derive(Default)]
struct Shop {
    /// Calls that the next one answers.
    held: Vec<Reply<GetReply>>,
    streams: Vec<Replies<Event>>,
}

impl store::Handler for Shop {
    fn get(&mut self, mut call: Incoming<'_, store::method::Get>) {
        self.held.drain(..).for_each(|reply| reply.send(&GetReply::default()));
        let fd = if call.request_id() % 2 == 0 { call.take_fd() } else { None };
        match (call.bytes().len() % 3, fd) {
            (0, _) => self.held.push(call.into_reply()),
            (1, Some(fd)) => match call.request() {
                Ok(_) => call.into_reply().attach(fd.into_owned()).send(&GetReply::default()),
                Err(status) => call.fail(&status),
            },
            _ => call.answer(|request| Ok(GetReply { value: request.key, ..GetReply::default() })),
        }
    }

    fn watch(&mut self, call: Incoming<'_, store::method::Watch>) {
        self.streams.retain_mut(|replies| replies.try_send(&Event::default()).is_ok());
        match call.request() {
            Ok(request) if request.count.is_some() => self.streams.push(call.into_replies()),
            Ok(_) => call.into_replies().finish(),
            Err(status) => call.fail(&status),
        }
    }

    fn note(&mut self, call: Incoming<'_, store::method::Note>) {
        let _ = call.request();
    }
}

/// The same as futures.
struct AsyncShop;

impl store::Server for AsyncShop {
    async fn get(&self, context: &Context, request: GetRequest) -> Result<GetReply, Status> {
        if let Some(fd) = context.take_fd() {
            context.attach(fd.into_owned());
        }
        if request.payload.is_some() {
            context.cancelled().await;
        }
        Ok(GetReply { value: request.key, ..GetReply::default() })
    }

    async fn watch(&self, _: &Context, request: WatchRequest, mut replies: Replies<Event>) -> Result<(), Status> {
        let payload = Some(vec![0; request.size.unwrap_or(0) as usize % 10_000]);
        for number in 0..request.count.unwrap_or(0) % 50 {
            let event = Event { number: Some(number), payload: payload.clone(), ..Event::default() };
            replies.send(&event).await?;
        }
        Ok(())
    }

    async fn note(&self, _: &Context, _: Text) {}
}

/// Frames of a hostile client, to a generated server. Two bytes before them choose its form.
pub fn rpc_server(bytes: &[u8]) {
    let Some((sending, frames)) = Sending::split(bytes) else { return };
    if sending.choice & 1 == 0 {
        serve(&sending, frames, store::Serve(Shop::default()));
    } else {
        serve(&sending, frames, store::ServeAsync::new(AsyncShop));
    }
}

fn serve(sending: &Sending, frames: &[u8], dispatch: impl Dispatch) {
    let (ours, theirs) = Stream::pair().expect("there are descriptors");
    let mut connection = ServerConnection::new(theirs, dispatch, LIMITS);
    let mut all = Vec::new();
    // The fuzzer need not guess this one.
    encode::bind_service(&mut all, 1, "Store", sending.features(), 7).expect("it fits");
    all.extend_from_slice(frames);
    let mut answers = FrameDecoder::new();
    let mut turn = || {
        while connection.pump().ok() == Some(true) {}
        assert!(connection.open_calls() <= LIMITS.max_calls);
        assert!(connection.queued() < LIMITS.pause_at + 3 * 131_072, "{}", connection.queued());
        receive(&ours, &mut answers)
    };
    sending.send(&ours, &all, &mut turn);
    turn();
    ours.shutdown_write();
    // The service sees the end, whatever it was doing.
    let has_ended = (0..1000).any(|_| {
        receive(&ours, &mut answers);
        connection.pump().is_err()
    });
    assert!(has_ended && connection.open_calls() == 0);
}

/// Takes what the library has sent, which is well-formed. Returns false at the end.
fn receive(stream: &Stream, decoder: &mut FrameDecoder) -> bool {
    loop {
        match stream.recv(decoder.spare()) {
            Ok(Some(received)) if received.len > 0 => {
                decoder.advance(received.len);
                while decoder.next_rpc_frame().expect("own frames are not too large").is_some() {}
                assert_eq!(decoder.skipped(), 0, "own frames are well-formed");
            }
            Ok(None) => return true,
            _ => return false,
        }
    }
}

/// Counts the ends of calls: each has exactly one.
#[derive(Clone, Default)]
struct Ends(Arc<AtomicUsize>);

impl Ends {
    fn add(&self, error: Option<&CallError>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        if let Some(error) = error {
            assert!(error.to_string().contains(error.method()));
        }
    }
}

/// Frames of a hostile service, to a generated client. Two bytes before them choose its
/// extensions.
pub fn rpc_client(bytes: &[u8]) {
    let Some((sending, frames)) = Sending::split(bytes) else { return };
    let (ours, theirs) = Stream::pair().expect("there are descriptors");
    let limits = ChannelLimits { window: 1000, ..ChannelLimits::default() };
    let channel = Channel::with_limits(theirs, limits);
    let client = store::Client::new(&channel);
    let (ends, mut started) = (Ends::default(), 0);
    let mut futures: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for _ in 0..2 {
        let end = ends.clone();
        let callback = move |result: Result<_, CallError>| end.add(result.err().as_ref());
        started += usize::from(client.get(&GetRequest::default()).then_with_fd(callback).is_ok());
        let end = ends.clone();
        let callback = move |result: Result<Option<Event>, CallError>| match result {
            Ok(Some(_)) => {}
            Ok(None) => end.add(None),
            Err(error) => end.add(Some(&error)),
        };
        started += usize::from(client.watch(&WatchRequest::default()).for_each(callback).is_ok());
        let end = ends.clone();
        let call = client.get(&GetRequest::default()).await_with_fd();
        futures.push(Box::pin(async move { end.add(call.await.err().as_ref()) }));
        started += 1;
        let _ = client.note(&Text::default()).send_now();
    }
    // A stream that nobody reads.
    let mut unread = client.watch(&WatchRequest::default()).start().ok();
    let mut all = Vec::new();
    // The fuzzer need not guess this one. The calls have the numbers from 2.
    let methods = (1..).zip(store::SERVICE.methods.iter().map(|method| method.name));
    encode::bind_service_reply(&mut all, 1, 1, methods, sending.features(), 7).expect("it fits");
    all.extend_from_slice(frames);
    let mut answers = FrameDecoder::new();
    let mut cx = TaskContext::from_waker(Waker::noop());
    let mut turn = || {
        while channel.pump().ok() == Some(true) {}
        futures.retain_mut(|future| future.as_mut().poll(&mut cx).is_pending());
        if sending.choice & 1 == 1 {
            if let Some(stream) = &mut unread {
                let _ = pin!(stream).poll_reply(&mut cx);
            }
        }
        assert!(channel.open_calls() <= 9);
        receive(&ours, &mut answers)
    };
    turn();
    sending.send(&ours, &all, &mut turn);
    turn();
    channel.close();
    turn();
    drop(unread);
    assert_eq!((ends.0.load(Ordering::Relaxed), channel.open_calls()), (started, 0), "each call ends once");
}
