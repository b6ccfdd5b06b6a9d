//! Context of a step of the service: the clocks and the queue of outputs.

use crate::api::{Attachment, Body, CallId, LogLevel, Now, Output, Outputs, Reply};
#[cfg(feature = "regex")]
use crate::ids::SessionId;

/// Bytes whose copy costs as much work as a visit to one entry.
pub(crate) const WORK_BYTES: usize = 64;

/// Clocks and outputs of one call of `handle`.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) now: &'a Now,
    pub(crate) out: &'a mut Outputs,
    /// Work of this call so far; see [`Service::work`](crate::Service::work).
    pub(crate) work: u64,
    /// Steps that the regular expressions of each session have left in this call, and whether one
    /// of them has given up.
    #[cfg(feature = "regex")]
    pub(crate) steps_left: Vec<(SessionId, u64, bool)>,
}

// Not inlined, because there are very many calls.
impl Context<'_> {
    /// Charges work: entries that were visited or moved, and bytes that were copied in units of
    /// [`WORK_BYTES`].
    #[inline]
    pub(crate) fn charge(&mut self, entries: usize) {
        self.work += entries as u64;
    }

    /// Charges bytes that were copied, encoded or compared.
    #[inline]
    pub(crate) fn charge_bytes(&mut self, bytes: usize) {
        self.work += (bytes / WORK_BYTES) as u64;
    }

    /// Answers a call with a message without fields.
    #[inline(never)]
    pub(crate) fn reply_empty(&mut self, call: CallId) {
        self.send(call, Body::Empty, false, Attachment::Absent);
    }

    /// Answers a call for the last time.
    #[inline(never)]
    pub(crate) fn reply(&mut self, call: CallId, body: Vec<u8>) {
        self.send(call, Body::Encoded(body), false, Attachment::Absent);
    }

    /// Answers a call; more answers follow.
    #[inline(never)]
    pub(crate) fn reply_part(&mut self, call: CallId, body: Vec<u8>) {
        self.send(call, Body::Encoded(body), true, Attachment::Absent);
    }

    #[inline(never)]
    pub(crate) fn send(&mut self, call: CallId, body: Body, has_more: bool, attachment: Attachment) {
        self.charge(1);
        self.charge_bytes(body.as_bytes().len());
        self.out.push(Output::Reply(Reply { call, body, has_more, attachment }));
    }

    #[inline(never)]
    pub(crate) fn reject(&mut self, call: CallId) {
        self.out.push(Output::Reject(call));
    }

    pub(crate) fn push(&mut self, output: Output) {
        self.out.push(output);
    }

    #[inline(never)]
    pub(crate) fn debug(&mut self, text: String) {
        self.push(Output::Log { level: LogLevel::Debug, text });
    }

    #[inline(never)]
    pub(crate) fn info(&mut self, text: String) {
        self.push(Output::Log { level: LogLevel::Info, text });
    }

    #[inline(never)]
    pub(crate) fn warn(&mut self, text: String) {
        self.push(Output::Log { level: LogLevel::Warning, text });
    }

    #[inline(never)]
    pub(crate) fn error(&mut self, text: String) {
        self.push(Output::Log { level: LogLevel::Error, text });
    }
}
