//! Bodies of requests: their type is fixed by the service, so counting their messages needs a way
//! back to that type.

use crate::body::TracedBody;

/// Treatment of the bodies of requests: [`AsTheyAre`] or [`Counted`].
pub trait RequestBodies<B> {
    /// Set if the body is to be wrapped while a call is recorded.
    #[doc(hidden)]
    const COUNTED: bool;

    /// Returns a body of the type that the service takes.
    #[doc(hidden)]
    fn convert(&self, body: TracedBody<B>) -> B;
}

/// Passes the bodies of requests on: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsTheyAre;

/// Counts messages in the bodies of requests.
#[derive(Debug)]
pub struct Counted<B>(pub(crate) fn(TracedBody<B>) -> B);

impl<B> Clone for Counted<B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B> Copy for Counted<B> {}

impl<B> RequestBodies<B> for AsTheyAre {
    const COUNTED: bool = false;

    fn convert(&self, body: TracedBody<B>) -> B {
        body.into_inner()
    }
}

impl<B> RequestBodies<B> for Counted<B> {
    const COUNTED: bool = true;

    fn convert(&self, body: TracedBody<B>) -> B {
        self.0(body)
    }
}
