//! HTTP/1.1, as much as a browser needs: requests without a body, answers with one.

mod answer;
mod request;

pub use answer::{Answer, Status};
pub use request::Request;

pub(crate) use answer::Body;
pub(crate) use request::{BadRequest, MAX_HEAD_BYTES};
