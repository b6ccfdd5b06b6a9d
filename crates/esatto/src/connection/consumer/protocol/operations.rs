//! What the owner of a session has asked for and is not answered yet.

use std::time::{Duration, Instant};

use crate::connection::pending::{Answer, Completer};
use crate::error::Error;

/// Names an operation on its connection; comes back with the replies of its call.
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
    /// What the service did not do, if it is not done in time.
    const fn words(self) -> &'static str {
        match self {
            Self::SetUp => "accept the configuration",
            Self::Start => "start all data sources",
            Self::Stop => "stop the session",
            Self::Flush => "flush",
            Self::ChangeConfig => "change the configuration",
            Self::Stats => "tell its statistics",
            Self::ServiceState => "describe itself",
            Self::Capabilities => "tell what it can do",
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
    /// Parts of an answer that comes in several.
    bytes: Vec<u8>,
}

/// Few at a time.
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

    /// The oldest operation of a kind.
    pub(super) fn first(&self, kind: Kind) -> Option<OperationId> {
        self.waiting.iter().find(|o| o.kind == kind).map(|o| o.id)
    }

    /// Keeps a part of an answer for the last one.
    pub(super) fn append(&mut self, id: OperationId, bytes: &[u8]) {
        if let Some(operation) = self.waiting.iter_mut().find(|o| o.id == id) {
            operation.bytes.extend_from_slice(bytes);
        }
    }

    /// Ends an operation; bytes that were kept come before those of the answer.
    pub(super) fn end(&mut self, id: OperationId, answer: Answer) {
        if let Some(at) = self.waiting.iter().position(|o| o.id == id) {
            let Operation { completer, mut bytes, .. } = self.waiting.remove(at);
            completer.complete(answer.map(|last| {
                bytes.extend_from_slice(&last);
                bytes
            }));
        }
    }

    /// Ends all of a kind.
    pub(super) fn end_all(&mut self, kind: Kind, result: &Result<(), Error>) {
        while let Some(id) = self.first(kind) {
            self.end(id, result.clone().map(|()| Vec::new()));
        }
    }

    /// Ends everything.
    pub(super) fn fail(&mut self, error: &Error) {
        while let Some(operation) = self.waiting.pop() {
            operation.completer.complete(Err(error.clone()));
        }
    }

    /// The service has been heard of: it gets more time for this.
    pub(super) fn extend(&mut self, kind: Kind, deadline: Instant) {
        self.waiting.iter_mut().filter(|o| o.kind == kind).for_each(|o| o.deadline = deadline);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|o| o.deadline).min()
    }

    /// Ends what has waited for too long; the kinds of that.
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

/// How long the service may take for anything, beyond what was agreed on.
pub(super) const PATIENCE: Duration = Duration::from_secs(15);
