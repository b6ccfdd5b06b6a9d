//! The operations that a session's owner has requested and that are not answered yet.

use std::time::Instant;

use crate::connection::pending_operation::{Answer, Completer};
use crate::error::Error;

/// The number of an operation on its connection, which comes back with the replies to its call.
pub(crate) type OperationId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    SetUp,
    Start,
    Stop,
    Flush,
    ChangeConfig,
    Stats,
    ServiceState,
    Capabilities,
    Clone,
    Read,
}

impl Kind {
    /// Returns the step that the service failed to do, for the text of the time-out.
    const fn words(self) -> &'static str {
        match self {
            Self::SetUp => "accept the configuration",
            Self::Start => "start all data sources",
            Self::Stop => "stop the session",
            Self::Flush => "flush",
            Self::ChangeConfig => "change the configuration",
            Self::Stats => "return its statistics",
            Self::ServiceState => "return its state",
            Self::Capabilities => "list its capabilities",
            Self::Clone => "clone the session",
            Self::Read => "deliver the trace",
        }
    }
}

#[derive(Debug)]
struct Operation {
    id: OperationId,
    kind: Kind,
    completer: Completer,
    deadline: Instant,
    /// Parts of an answer that arrives in several.
    bytes: Vec<u8>,
}

/// Only a few at a time.
#[derive(Debug, Default)]
pub(super) struct Operations {
    waiting: Vec<Operation>,
    last_id: OperationId,
}

impl Operations {
    pub(super) fn add(&mut self, kind: Kind, completer: Completer, deadline: Instant) -> OperationId {
        self.last_id = self.last_id.wrapping_add(1);
        self.waiting.push(Operation { id: self.last_id, kind, completer, deadline, bytes: Vec::new() });
        self.last_id
    }

    /// Returns the oldest operation of a kind.
    pub(super) fn first(&self, kind: Kind) -> Option<OperationId> {
        self.waiting.iter().find(|o| o.kind == kind).map(|o| o.id)
    }

    /// Keeps a part of an answer until the last part arrives.
    pub(super) fn append(&mut self, id: OperationId, bytes: &[u8]) {
        if let Some(operation) = self.waiting.iter_mut().find(|o| o.id == id) {
            operation.bytes.extend_from_slice(bytes);
        }
    }

    /// Ends an operation. The bytes that were kept come before those of the answer.
    pub(super) fn end(&mut self, id: OperationId, answer: Answer) {
        if let Some(at) = self.waiting.iter().position(|o| o.id == id) {
            let Operation { completer, mut bytes, .. } = self.waiting.remove(at);
            completer.complete(answer.map(|last| {
                bytes.extend_from_slice(&last);
                bytes
            }));
        }
    }

    /// Ends all operations of a kind.
    pub(super) fn end_all(&mut self, kind: Kind, result: &Result<(), Error>) {
        while let Some(id) = self.first(kind) {
            self.end(id, result.clone().map(|()| Vec::new()));
        }
    }

    /// Ends all operations with an error.
    pub(super) fn fail(&mut self, error: &Error) {
        while let Some(operation) = self.waiting.pop() {
            operation.completer.complete(Err(error.clone()));
        }
    }

    /// Gives the service more time for the operations of a kind, because it has sent something.
    pub(super) fn extend(&mut self, kind: Kind, deadline: Instant) {
        self.waiting.iter_mut().filter(|o| o.kind == kind).for_each(|o| o.deadline = deadline);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|o| o.deadline).min()
    }

    /// Ends the operations that have waited too long, and returns their kinds.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<Kind> {
        let mut kinds = Vec::new();
        while let Some(late) = self.waiting.iter().find(|o| o.deadline <= now) {
            let (id, kind) = (late.id, late.kind);
            kinds.push(kind);
            self.end(id, Err(Error::timed_out(kind.words())));
        }
        kinds
    }
}
