//! Records the traced calls of `esatto-ipc` (`docs/spec/ipc-tracing.md` §6, §7): a slice on each
//! side of a call, and the arrow between them.
//!
//! ```no_run
//! esatto_rpc_trace::install();
//! ```
//!
//! Calls of methods whose schema names a category are then recorded while that category is on.
//! It has the tag `rpc`.
//!
//! Calls on the thread by which the SDK talks to services are not recorded, because the events
//! would cause further calls.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::print_stdout, clippy::print_stderr, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

mod args;
mod connection_sites;
mod flow_ids;
mod method_sites;

use esatto::{Arg, Begun, Event, Track, record};
use esatto_ipc::hooks::{self, Call, End, Hooks, Reply};
use esatto_ipc::service::{Kind, Recorded, TraceValue};

use crate::args::Args;
pub use crate::flow_ids::FlowIds;
use crate::flow_ids::{flow_id, reply_flow_id};
use crate::method_sites::{category_of, sites_of};

/// Lets traced calls of this process be recorded. Returns false if another adapter is installed.
pub fn install() -> bool {
    Options::new().install()
}

/// Choices for [`install`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    flow_ids: FlowIds,
}

impl Options {
    /// Makes the choices of [`install`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the form of the ids that join the two sides of a call. Both sides need the same.
    #[must_use]
    pub fn flow_ids(mut self, flow_ids: FlowIds) -> Self {
        self.flow_ids = flow_ids;
        self
    }

    /// Lets traced calls of this process be recorded. Returns false if another adapter is
    /// installed.
    pub fn install(self) -> bool {
        let is_first = hooks::install(table()).is_ok();
        if is_first {
            flow_ids::choose(self.flow_ids);
            connection_sites::announce();
        }
        is_first
    }
}

fn table() -> Hooks {
    let mut hooks = Hooks::none();
    hooks.enabled =
        |site| category_of(site).is_some_and(|category| category.is_enabled()) && !esatto::raw::is_control_thread();
    hooks.request_begin = request_begin;
    hooks.request_sent = request_sent;
    hooks.reply_begin = reply_begin;
    hooks.reply_end = end;
    hooks.ended = ended;
    hooks.invoke_begin = invoke_begin;
    hooks.invoke_end = invoke_end;
    hooks.reply_sent = reply_sent;
    hooks.rejected = connection_sites::rejected;
    hooks
}

/// A call whose slice on the thread of the caller lasts until the reply.
fn waits(call: &Call) -> bool {
    call.is_blocking && call.method.kind == Kind::Unary
}

fn request_begin(call: &Call, request: &[u8]) -> u64 {
    let Some(sites) = sites_of(call) else { return 0 };
    connection_sites::connect(call, sites);
    let mut more = |event: &mut Event<'_>| request_values(event, call, request);
    let begun = Begun::by(|| {
        let mut args = Args::of(call, call.bytes);
        if has_values(call) {
            args.push(Arg::With(&mut more));
        }
        args.flow(call, Arg::Flow(flow_id(call)));
        let instances = record(&sites.begin, args.all());
        if !waits(call) && call.method.kind != Kind::OneWay {
            record(&sites.begin_pending, &mut [Arg::Track(&lane(call))]);
        }
        instances
    });
    begun.to_bits()
}

fn request_sent(call: &Call) {
    if !waits(call) {
        end(call);
    }
}

fn reply_begin(call: &Call, reply: &Reply<'_>) {
    let Some(sites) = sites_of(call) else { return };
    let begun = Begun::from_bits(call.token);
    let has_failed = reply.failure.is_some() || reply.error.is_some();
    let status = if has_failed { "error" } else { "ok" };
    let mut more = |event: &mut Event<'_>| {
        annotate(event, call.site.reply(), reply.message);
        if let Some((code, _)) = reply.failure {
            event.annotate("code", code.name());
        }
        if let Some(value) = reply.error.and_then(|error| error.value) {
            event.annotate("error", value);
        }
    };
    let mut args = Args::of(call, reply.message.len());
    if waits(call) {
        args.push(Arg::Str(status));
    }
    if has_failed || !call.site.reply().is_empty() {
        args.push(Arg::With(&mut more));
    }
    if waits(call) {
        // An event of its own: readers take an arrow to the end of a slice for one to its begin.
        args.flow(call, Arg::EndFlow(flow_id(call)));
        begun.record(&sites.reply_taken, args.all());
        return;
    }
    // A streamed reply ends its own flow; the last one also ends that of the request.
    let is_streamed = call.method.kind == Kind::ServerStream;
    if is_streamed {
        args.flow(call, Arg::EndFlow(reply_flow_id(call, reply.number)));
    }
    if !is_streamed || !reply.has_more {
        args.flow(call, Arg::EndFlow(flow_id(call)));
    }
    begun.record(&sites.begin_reply, args.all());
    if !reply.has_more {
        begun.record(&sites.end_with_status, &mut [Arg::Str(status), Arg::Track(&lane(call))]);
    }
}

fn ended(call: &Call, reason: End) {
    let Some(sites) = sites_of(call) else { return };
    let status = match reason {
        End::Finished => "ok",
        End::Disconnected => "disconnected",
        End::Timeout => "timeout",
        End::Cancelled => "cancelled",
        _ => "error",
    };
    let begun = Begun::from_bits(call.token);
    let mut args = Args::of(call, 0);
    args.push(Arg::Str(status));
    args.flow(call, Arg::EndFlow(flow_id(call)));
    begun.record(&sites.reply_taken, args.all());
    if waits(call) {
        begun.record(&sites.end, &mut []);
    } else if call.method.kind != Kind::OneWay {
        begun.record(&sites.end_with_status, &mut [Arg::Str(status), Arg::Track(&lane(call))]);
    }
}

fn invoke_begin(call: &Call, request: &[u8]) -> u64 {
    let Some(sites) = sites_of(call) else { return 0 };
    connection_sites::connect(call, sites);
    let mut more = |event: &mut Event<'_>| request_values(event, call, request);
    let begun = Begun::by(|| {
        let mut args = Args::of(call, call.bytes);
        if has_values(call) {
            args.push(Arg::With(&mut more));
        }
        let flow = flow_id(call);
        args.flow(call, if call.method.kind == Kind::OneWay { Arg::EndFlow(flow) } else { Arg::Flow(flow) });
        record(&sites.begin, args.all())
    });
    begun.to_bits()
}

fn invoke_end(call: &Call) {
    if !call.has_failed() {
        return end(call);
    }
    if let Some(sites) = sites_of(call) {
        Begun::from_bits(call.token).record(&sites.end_with_status, &mut [Arg::Str("error")]);
    }
}

fn reply_sent(call: &Call, reply: &Reply<'_>) {
    let Some(sites) = sites_of(call) else { return };
    let is_streamed = call.method.kind == Kind::ServerStream;
    if reply.is_in_method && !is_streamed {
        return;
    }
    let flow = if is_streamed { reply_flow_id(call, reply.number) } else { flow_id(call) };
    let mut more = |event: &mut Event<'_>| {
        if let Some((code, _)) = reply.failure {
            event.annotate("status", "error");
            event.annotate("code", code.name());
        }
        if let Some(error) = reply.error {
            event.annotate("status", "error");
            if let Some(value) = error.value {
                event.annotate("error", value);
            }
        }
    };
    let mut args = Args::of(call, reply.message.len());
    if reply.failure.is_some() || reply.error.is_some() {
        args.push(Arg::With(&mut more));
    }
    args.flow(call, Arg::Flow(flow));
    Begun::from_bits(call.token).record(&sites.reply_sent, args.all());
}

/// Ends the slice on the track of the thread, in the sessions that have its begin.
fn end(call: &Call) {
    if let Some(sites) = sites_of(call) {
        Begun::from_bits(call.token).record(&sites.end, &mut []);
    }
}

/// Returns the side of this end of the connection.
fn role(call: &Call) -> &'static str {
    if call.is_server == call.is_from_acceptor { "client" } else { "server" }
}

/// Returns the track of a call that its caller does not wait for.
fn lane(call: &Call) -> Track {
    Track::with_name("rpc", flow_id(call))
}

/// Returns true if [`request_values`] has something to write. Other events take the fast path of
/// the SDK.
fn has_values(call: &Call) -> bool {
    call.has_fd || !call.site.request().is_empty()
}

fn request_values(event: &mut Event<'_>, call: &Call, request: &[u8]) {
    annotate(event, call.site.request(), request);
    if call.has_fd {
        event.annotate("fds", 1_u64);
    }
}

fn annotate(event: &mut Event<'_>, values: &[TraceValue], message: &[u8]) {
    for value in values {
        match value.read(message) {
            Some(Recorded::Uint(number)) => event.annotate(value.name(), number),
            Some(Recorded::Int(number)) => event.annotate(value.name(), number),
            Some(Recorded::Double(number)) => event.annotate(value.name(), number),
            Some(Recorded::Bool(truth)) => event.annotate(value.name(), truth),
            Some(Recorded::Text(text)) => event.annotate(value.name(), &*String::from_utf8_lossy(text)),
            _ => {}
        }
    }
}
