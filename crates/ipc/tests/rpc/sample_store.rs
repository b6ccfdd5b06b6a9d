//! [`Sample`]: the store that the tests serve, in both forms, and the other end of its socket.

use std::sync::Arc;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use esatto_ipc::server::{Context, Dispatch, Incoming, Replies, ServerConnection, ServerLimits};
use esatto_ipc::{Channel, Code, Error, Status, Stream};

use crate::messages::sample::{Event, GetReply, GetRequest, Text, WatchRequest};
use crate::store::{self, Handler, Server, method};

/// Longest wait of a test.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Store of one value for each key: the key itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) notes: Arc<Mutex<Vec<String>>>,
}

impl Sample {
    fn reply(request: GetRequest) -> Result<GetReply, Status> {
        match request.key.as_ref().and_then(|key| key.to_str()) {
            Some("missing") => Err(Status::new(Code::NotFound, "no such key").with_details(*b"\x01\x02")),
            Some("huge") => Ok(GetReply { payload: Some(vec![0; 200_000]), ..GetReply::default() }),
            _ => Ok(GetReply { value: request.key, payload: request.payload, ..GetReply::default() }),
        }
    }

    pub(crate) fn event(number: u32, request: &WatchRequest) -> Event {
        let payload = vec![0; request.size.unwrap_or(0) as usize];
        Event { number: Some(number), payload: Some(payload), ..Event::default() }
    }

    fn write(&self, note: &Text) {
        let text = note.text.as_ref().map(|text| text.to_str_lossy().into_owned());
        self.notes.lock().unwrap().push(text.unwrap_or_default());
    }
}

impl Handler for Sample {
    fn get(&mut self, call: Incoming<'_, method::Get>) {
        call.answer(Self::reply);
    }

    fn watch(&mut self, call: Incoming<'_, method::Watch>) {
        let request = match call.request() {
            Ok(request) => request,
            Err(status) => return call.fail(&status),
        };
        let mut replies = call.into_replies();
        thread::spawn(move || {
            for number in 0..request.count.unwrap_or(0) {
                if replies.send_blocking(&Self::event(number, &request)).is_err() {
                    return;
                }
            }
            replies.finish();
        });
    }

    fn note(&mut self, call: Incoming<'_, method::Note>) {
        if let Ok(note) = call.request() {
            self.write(&note);
        }
    }
}

impl Server for Sample {
    async fn get(&self, _: &Context, request: GetRequest) -> Result<GetReply, Status> {
        Self::reply(request)
    }

    async fn watch(&self, _: &Context, request: WatchRequest, mut replies: Replies<Event>) -> Result<(), Status> {
        for number in 0..request.count.unwrap_or(0) {
            replies.send(&Self::event(number, &request)).await?;
        }
        Ok(())
    }

    async fn note(&self, _: &Context, request: Text) {
        self.write(&request);
    }
}

/// Serves one connection on a thread, which returns the reason of its end.
pub(crate) fn serve(dispatch: impl Dispatch + Send + 'static) -> (Channel, JoinHandle<Arc<Error>>) {
    let (ours, theirs) = Stream::pair().unwrap();
    let mut connection = ServerConnection::new(theirs, dispatch, ServerLimits::default());
    (Channel::new(ours), thread::spawn(move || connection.block()))
}

/// The two forms of the service, served on a thread each.
pub(crate) fn both_forms() -> Vec<(Sample, Channel, JoinHandle<Arc<Error>>)> {
    let (handler, server) = (Sample::default(), Sample::default());
    let (one, other) = (serve(store::Serve(handler.clone())), serve(store::ServeAsync::new(server.clone())));
    vec![(handler, one.0, one.1), (server, other.0, other.1)]
}

pub(crate) fn get(key: &str) -> GetRequest {
    GetRequest { key: Some(key.into()), ..GetRequest::default() }
}

pub(crate) fn watch(count: u32, size: u32) -> WatchRequest {
    WatchRequest { count: Some(count), size: Some(size), ..WatchRequest::default() }
}

pub(crate) fn note(text: &str) -> Text {
    Text { text: Some(text.into()), ..Text::default() }
}
