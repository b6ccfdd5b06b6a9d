//! [`HookRecord`]: the functions of the library's hook table, which check that each call's events
//! come in the documented order, and that each begin has its end.

use std::collections::BTreeMap;
use std::sync::Once;
use std::sync::atomic::Ordering;

use esatto_ipc::hooks::{self, Call, End, Hooks, Reply};
use esatto_ipc::service::Kind;
use esatto_protozero::Owned;

use super::services::Packet;
use super::shared::{Shared, with};

/// Calls that hooks were told of, by token.
#[derive(Debug, Default)]
pub(super) struct HookRecord {
    /// The category is recorded.
    pub(super) is_enabled: bool,
    calls: BTreeMap<u64, Told>,
    last_token: u64,
    connections: u64,
    /// Events that arrived.
    pub(super) events: u64,
}

#[derive(Debug)]
struct Told {
    name: &'static str,
    kind: Kind,
    is_server: bool,
    is_sent: bool,
    /// Client: no further event is allowed. Server: the last reply was sent.
    is_over: bool,
    is_reply_open: bool,
    is_last_reply: bool,
    replies: u64,
    has_returned: bool,
}

/// Installs the table, once per process.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let mut table = Hooks::none();
        table.enabled = |_| with(|shared| shared.hooks.is_enabled);
        table.request_begin = begin;
        table.request_sent =
            |call| event(call, |told| assert!(!std::mem::replace(&mut told.is_sent, true), "sent once"));
        table.reply_begin = reply_begin;
        table.reply_end = |call| event(call, Told::reply_end);
        table.ended = ended;
        table.invoke_begin = begin;
        table.invoke_end = |call| {
            event(call, |told| assert!(!std::mem::replace(&mut told.has_returned, true), "a method returns once"))
        };
        table.reply_sent = |call, reply| event(call, |told| told.reply_sent(reply));
        table.rejected = |_, _| with(|shared| shared.hooks.events += 1);
        assert!(hooks::install(table).is_ok(), "nobody else installs hooks");
    });
}

fn begin(call: &Call, message: &[u8]) -> u64 {
    with(|shared| {
        let Shared { hooks, calls, wires, .. } = shared;
        if call.connection.word.load(Ordering::Relaxed) == 0 {
            hooks.connections += 1;
            call.connection.word.store(hooks.connections, Ordering::Relaxed);
        }
        hooks.events += 1;
        hooks.last_token += 1;
        let told = Told {
            name: call.method.full_name,
            kind: call.method.kind,
            is_server: call.is_server,
            is_sent: false,
            is_over: false,
            is_reply_open: false,
            is_last_reply: false,
            replies: 0,
            has_returned: false,
        };
        hooks.calls.insert(hooks.last_token, told);
        assert_eq!(call.bytes, message.len(), "hooks: the size of a request");
        let number = Packet::decode(message).map_or(0, |packet| packet.call);
        let record = calls.get_mut(number as usize).filter(|record| number > 0 && record.is_honest);
        if let Some(record) = record {
            if call.seed != 0 {
                let flow = *record.flow.get_or_insert_with(|| call.flow_id());
                assert_eq!(flow, call.flow_id(), "hooks: both sides have the same id of a flow");
            }
            let is_known = !call.is_server || wires[record.plan.connection].wire.marks_descriptors();
            let has_fd = record.plan.fd.is_some();
            assert!(!is_known || call.has_fd == has_fd, "hooks: a descriptor travels with call {number}");
        }
        hooks.last_token
    })
}

fn event(call: &Call, check: impl FnOnce(&mut Told)) {
    if std::thread::panicking() {
        return;
    }
    with(|shared| {
        shared.hooks.events += 1;
        // A call of an earlier run.
        let Some(told) = shared.hooks.calls.get_mut(&call.token) else { return };
        assert_eq!(told.name, call.method.full_name, "hooks: the token of a call");
        check(told);
    });
}

fn reply_begin(call: &Call, reply: &Reply<'_>) {
    event(call, |told| {
        let is_open = !told.is_server && told.is_sent && !told.is_over && !told.is_reply_open;
        assert!(is_open && told.kind != Kind::OneWay, "hooks: a reply is taken of a call that waits: {told:?}");
        told.replies += 1;
        assert_eq!(told.replies, reply.number, "hooks: replies are numbered");
        told.is_reply_open = true;
        told.is_last_reply = !reply.has_more;
    });
}

fn ended(call: &Call, reason: End) {
    event(call, |told| {
        let is_open = !told.is_server && told.is_sent && !told.is_over && !told.is_reply_open;
        assert!(is_open, "hooks: a call that waits ends ({reason:?}): {told:?}");
        told.is_over = true;
    });
}

impl Told {
    fn reply_end(&mut self) {
        assert!(self.is_reply_open, "hooks: a reply ends after it began: {self:?}");
        self.is_reply_open = false;
        self.is_over = self.is_last_reply;
    }

    fn reply_sent(&mut self, reply: &Reply<'_>) {
        assert!(self.is_server && !self.is_over, "hooks: a reply is sent before the last one: {self:?}");
        assert_ne!(self.kind, Kind::OneWay, "hooks: one-way calls have no reply");
        self.replies += 1;
        assert_eq!(self.replies, reply.number, "hooks: replies are numbered");
        assert!(!reply.is_in_method || !self.has_returned, "hooks: the method has returned: {self:?}");
        self.is_over = !reply.has_more;
    }
}

impl HookRecord {
    /// Checks that each begin has its end, after everything was dropped.
    pub(super) fn check_end(&self) {
        for told in self.calls.values() {
            let is_balanced = if told.is_server {
                told.has_returned
            } else {
                told.is_sent && !told.is_reply_open && (told.is_over || told.kind == Kind::OneWay)
            };
            assert!(is_balanced, "hooks: each begin has its end: {told:?}");
        }
    }
}
