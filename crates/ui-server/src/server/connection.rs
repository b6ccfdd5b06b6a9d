//! One connection: requests in time, answers in turn.

use core::time::Duration;
use std::io::{self, Read as _, Write};
use std::net::TcpStream;
use std::time::Instant;

use super::places::Place;
use super::{Activity, Site};
use crate::http::{Answer, BadRequest, MAX_HEAD_BYTES, Request, Status};

/// Time for the whole head of a request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time for which an admitted connection may wait for its next request.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// Time for which a client may take no byte of an answer.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Answers requests until the connection ends.
pub(super) fn serve(mut stream: TcpStream, place: Place, site: &dyn Site, activity: &Activity) {
    // An error ends the connection, and there is nobody to tell it to.
    let _ = answer_all(&mut stream, &place, site, activity);
}

fn answer_all(stream: &mut TcpStream, place: &Place, site: &dyn Site, activity: &Activity) -> io::Result<()> {
    // Accepted sockets inherit nothing of the listener here, but may elsewhere.
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(WRITE_TIME))?;
    let mut read = Vec::new();
    let mut patience = HEAD_TIME;
    loop {
        let request = match next_request(stream, &mut read, patience)? {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(BadRequest(status)) => {
                Answer::refusal(status, "this server answers short requests only\n").write(stream, false, false)?;
                return Ok(());
            }
        };
        let mut answer = site.answer(&request);
        if answer.is_admitted && !place.admit() {
            answer = Answer::refusal(Status::Unavailable, "too many connections\n");
        }
        let keeps_alive = answer.is_admitted && request.keeps_alive();
        let is_head = request.method() == "HEAD";
        let is_delivery = answer.is_delivery && !is_head;
        let running = answer.is_admitted.then(|| activity.request());
        let takeover = answer.write(stream, is_head, keeps_alive)?;
        stream.flush()?;
        if is_delivery {
            activity.delivered();
        }
        drop(running);
        if let Some(takeover) = takeover {
            takeover(stream.try_clone()?, core::mem::take(&mut read));
            return Ok(());
        }
        if !keeps_alive {
            return Ok(());
        }
        patience = IDLE_TIME;
    }
}

/// Reads the next request, or returns `None` at the end of the connection.
fn next_request(
    stream: &mut TcpStream,
    read: &mut Vec<u8>,
    patience: Duration,
) -> io::Result<Result<Option<Request>, BadRequest>> {
    // Slow bytes do not prolong the time.
    let mut deadline = Instant::now() + patience;
    let mut has_begun = false;
    loop {
        if !read.is_empty() {
            match Request::parse(read) {
                Ok(Some((request, length))) => {
                    read.drain(..length);
                    return Ok(Ok(Some(request)));
                }
                Ok(None) if !has_begun => {
                    has_begun = true;
                    deadline = deadline.min(Instant::now() + HEAD_TIME);
                }
                Ok(None) => {}
                Err(bad) => return Ok(Err(bad)),
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Ok(None));
        }
        stream.set_read_timeout(Some(left))?;
        let begin = read.len();
        // At least one byte more than any head, so that a head that is too long is noticed.
        read.resize((begin + 4096).min(MAX_HEAD_BYTES + 1), 0);
        let came = stream.read(&mut read[begin..]);
        read.truncate(begin + came.as_ref().map_or(0, |&came| came));
        if came? == 0 {
            return Ok(Ok(None));
        }
    }
}
