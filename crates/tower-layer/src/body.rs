//! Bodies whose messages are counted, and with which calls end.

use core::pin::Pin;
use core::task::{Context, Poll, ready};
use std::io::IoSlice;
use std::sync::Arc;

use bytes::Buf as _;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::call::{Call, Direction, End, OpenCall};
use crate::headers::{is_grpc, single};
use crate::messages::MessageFinder;
use crate::status::Status;

/// The most pieces of a frame that are looked at; bodies of hyper, tonic and axum have one.
const PIECES: usize = 16;

pin_project! {
    /// A body that passes another one on and, while the call is recorded, counts its messages and
    /// ends the call.
    #[derive(Debug, Default)]
    pub struct TracedBody<B> {
        #[pin]
        inner: B,
        recording: Option<Box<Recording>>,
    }
}

#[derive(Debug)]
struct Recording {
    call: Whose,
    /// `None`: this is no body of gRPC.
    messages: Option<(Direction, MessageFinder)>,
    /// The bytes that the header `content-length` promises and that were not seen.
    bytes_left: Option<u64>,
}

/// The call to which a body belongs.
#[derive(Debug)]
enum Whose {
    /// The body of the response, with which the call ends.
    Response(OpenCall),
    Request(Arc<Call>),
}

impl<B> TracedBody<B> {
    /// Passes on a body of which nothing is recorded.
    pub(crate) const fn plain(inner: B) -> Self {
        Self { inner, recording: None }
    }

    /// Counts the messages of a request of gRPC.
    pub(crate) fn of_request(inner: B, call: &Arc<Call>) -> Self {
        call.see_messages(Direction::ToServer);
        let recording = Recording {
            call: Whose::Request(Arc::clone(call)),
            messages: Some((Direction::ToServer, MessageFinder::default())),
            bytes_left: None,
        };
        Self { inner, recording: Some(Box::new(recording)) }
    }

    /// Returns the body that this one passes on. Its call ends, if this is the body of a response.
    #[must_use]
    pub fn into_inner(self) -> B {
        self.inner
    }

    /// Returns the body that this one passes on.
    #[must_use]
    pub const fn get_ref(&self) -> &B {
        &self.inner
    }
}

/// Records the head of a response, and lets its body end the call.
pub(crate) fn respond<B: Body>(response: Response<B>, mut open: OpenCall, has_body: bool) -> Response<TracedBody<B>> {
    let (head, inner) = response.into_parts();
    let mut recording = None;
    if let Some(call) = open.get() {
        call.reply(head.status);
        // gRPC sends the status in the head of a response that has no message.
        let is_status = call.is_grpc() && Status::find(&head.headers).is_some();
        if is_status || !has_body || inner.is_end_stream() {
            open.end(End::Complete, Some(&head.headers));
        } else {
            let counts = call.is_grpc() && is_grpc(&head.headers);
            if counts {
                call.see_messages(Direction::ToClient);
            }
            recording = Some(Box::new(Recording {
                messages: counts.then(|| (Direction::ToClient, MessageFinder::default())),
                bytes_left: if counts { None } else { content_length(&head.headers) },
                call: Whose::Response(open),
            }));
        }
    }
    Response::from_parts(head, TracedBody { inner, recording })
}

/// Returns whether a response has a body that is read to its end.
pub(crate) fn has_body(method: &Method, status: StatusCode) -> bool {
    let is_tunnel = method == Method::CONNECT && status.is_success();
    !(method == Method::HEAD
        || is_tunnel
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    single(headers, &CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

impl<B: Body> Body for TracedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        match this.recording {
            // A frame is large: it is not moved.
            None => this.inner.poll_frame(context),
            Some(_) => poll_recorded(this.inner, this.recording, context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A frame of a body, or its error.
type Polled<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

#[inline(never)]
fn poll_recorded<B: Body>(
    mut inner: Pin<&mut B>,
    recorded: &mut Option<Box<Recording>>,
    context: &mut Context<'_>,
) -> Poll<Option<Polled<B>>> {
    let polled = ready!(inner.as_mut().poll_frame(context));
    let is_over = recorded
        .as_mut()
        .is_some_and(|recording| recording.see::<B>(polled.as_ref().map(Result::as_ref), || inner.is_end_stream()));
    if is_over {
        *recorded = None;
    }
    Poll::Ready(polled)
}

impl Recording {
    /// Records a frame. Returns true if it is the last one.
    fn see<B: Body>(
        &mut self,
        polled: Option<Result<&Frame<B::Data>, &B::Error>>,
        is_end_stream: impl FnOnce() -> bool,
    ) -> bool {
        let frame = match polled {
            Some(Ok(frame)) => frame,
            Some(Err(_)) => return self.end(End::Failed, None),
            None => return self.end(End::Complete, None),
        };
        if let Some(trailers) = frame.trailers_ref() {
            return self.end(End::Complete, Some(trailers));
        }
        if let Some(data) = frame.data_ref() {
            let length = data.remaining();
            if self.messages.is_some() {
                let mut pieces = [IoSlice::new(&[]); PIECES];
                // Most bodies have one piece, and cannot name several.
                let count = if data.chunk().len() == length {
                    pieces[0] = IoSlice::new(data.chunk());
                    1
                } else {
                    data.chunks_vectored(&mut pieces)
                };
                self.count(&pieces[..count], length);
            }
            if let Some(left) = &mut self.bytes_left {
                *left = left.saturating_sub(length as u64);
            }
        }
        // Servers do not ask for the end of a body that has told its end.
        if self.bytes_left == Some(0) || is_end_stream() { self.end(End::Complete, None) } else { false }
    }

    /// Counts the messages in a frame of `length` bytes.
    fn count(&mut self, pieces: &[IoSlice<'_>], length: usize) {
        let Some((direction, finder)) = &mut self.messages else { return };
        let call = match &self.call {
            Whose::Response(open) => open.get(),
            Whose::Request(call) => Some(call),
        };
        let Some(call) = call else { return };
        let was_lost = finder.is_lost();
        if pieces.iter().map(|piece| piece.len()).sum::<usize>() == length {
            for piece in pieces {
                finder.read(piece, |bytes| call.message(*direction, bytes));
            }
        } else {
            finder.lose();
        }
        if finder.is_lost() && !was_lost {
            call.lose_messages(*direction);
        }
    }

    /// Ends the call, if this is its response.
    fn end(&mut self, end: End, trailers: Option<&HeaderMap>) -> bool {
        if let Whose::Response(open) = &mut self.call {
            open.end(end, trailers);
        }
        true
    }
}
