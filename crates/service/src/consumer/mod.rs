//! Consumers, and their calls that wait for an answer (`docs/spec/wire-protocol.md §12, §14`).

pub(crate) mod departed;
pub(crate) mod events;
mod producer_entries;
pub(crate) mod state_query;

use std::collections::VecDeque;

use esatto_map::{Map, Set};
use esatto_protozero::Owned;
use esatto_schema::EnableTracingResponse;

use crate::api::{CallId, ClientId, Peer};
use crate::client_text::cut_text;
use crate::context::Context;
use crate::ids::SessionId;
use events::Observer;
use state_query::Query;

/// All consumers.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    by_client: Map<ClientId, Consumer>,
    /// Consumers with events that were not sent yet.
    to_notify: Set<ClientId>,
}

impl Consumers {
    pub(crate) fn len(&self) -> usize {
        self.by_client.len()
    }

    pub(crate) fn connect(&mut self, client: ClientId, peer: Peer) {
        self.by_client.insert(client, Consumer::new(peer));
    }

    pub(crate) fn remove(&mut self, client: ClientId) -> Option<Consumer> {
        self.by_client.remove(&client)
    }

    pub(crate) fn get(&self, client: ClientId) -> Option<&Consumer> {
        self.by_client.get(&client)
    }

    pub(crate) fn get_mut(&mut self, client: ClientId) -> Option<&mut Consumer> {
        self.by_client.get_mut(&client)
    }
}

/// A client of the consumer port.
#[derive(Debug)]
pub(crate) struct Consumer {
    pub(crate) uid: i32,
    pub(crate) pid: Option<i32>,
    pub(crate) session: Option<SessionId>,
    /// The EnableTracing call, which waits for the end of tracing.
    pub(crate) enable_call: Option<CallId>,
    /// An EnableTracing call whose session was detached. Only a later EnableTracing call ends it.
    pub(crate) detached_call: Option<CallId>,
    pub(crate) read_call: Option<CallId>,
    pub(crate) clone_call: Option<CallId>,
    observer: Observer,
    /// QueryServiceState calls without a complete answer, oldest first.
    pub(crate) queries: VecDeque<Query>,
}

impl Consumer {
    pub(crate) fn new(peer: Peer) -> Self {
        Self {
            uid: peer.uid,
            pid: peer.pid,
            session: None,
            enable_call: None,
            detached_call: None,
            read_call: None,
            clone_call: None,
            observer: Observer::default(),
            queries: VecDeque::new(),
        }
    }
}

/// Answers EnableTracing: tracing has ended, or never began.
pub(crate) fn reply_disabled(call: CallId, error: Option<String>, cx: &mut Context<'_>) {
    let error = error.map(cut_text);
    let response = EnableTracingResponse { disabled: Some(true), error: error.map(Into::into), ..Default::default() };
    cx.reply(call, response.encode());
}
