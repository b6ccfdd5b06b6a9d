//! The future of a response.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use http::{Method, Response};
use http_body::Body;
use pin_project_lite::pin_project;

use crate::body::{self, TracedBody};
use crate::call::{End, OpenCall};

pin_project! {
    /// The future of a layer's service: that of the inner service, and the end of a call that is
    /// recorded.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        recording: Option<Box<Recording>>,
    }
}

#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) call: OpenCall,
    /// The method of the request: not all responses have a body.
    pub(crate) method: Method,
}

impl<F> ResponseFuture<F> {
    pub(crate) const fn new(inner: F, recording: Option<Box<Recording>>) -> Self {
        Self { inner, recording }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    type Output = Result<Response<TracedBody<B>>, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.recording.is_some() {
            return poll_recorded(this.inner, this.recording, context);
        }
        // A response is large: it is moved once.
        match this.inner.poll(context) {
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(response.map(TracedBody::plain))),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[inline(never)]
fn poll_recorded<F, B, E>(
    inner: Pin<&mut F>,
    recording: &mut Option<Box<Recording>>,
    context: &mut Context<'_>,
) -> Poll<Result<Response<TracedBody<B>>, E>>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body,
{
    let result = ready!(inner.poll(context));
    Poll::Ready(match recording.take() {
        None => result.map(|response| response.map(TracedBody::plain)),
        Some(recording) => recording.respond(result),
    })
}

impl Recording {
    #[inline(never)]
    fn respond<B: Body, E>(mut self, result: Result<Response<B>, E>) -> Result<Response<TracedBody<B>>, E> {
        match result {
            Ok(response) => {
                let has_body = body::has_body(&self.method, response.status());
                Ok(body::respond(response, self.call, has_body))
            }
            Err(error) => {
                self.call.end(End::Failed, None);
                Err(error)
            }
        }
    }
}
