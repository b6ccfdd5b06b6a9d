//! [`FlowIds`]: how the ids of flows are made.

use core::sync::atomic::{AtomicU8, Ordering};

use esatto_ipc::hooks::{self, Call};
use esatto_ipc::peer::fnv1a;

/// Form of the ids that join the two sides of a call (`docs/spec/ipc-tracing.md` §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlowIds {
    /// The form of the bindings: RFC-0035's for FIDL, [`Derived`](Self::Derived) for others.
    #[default]
    OfBindings,
    /// Function of the connection's random number and the number of the call, without collisions
    /// in a connection.
    Derived,
    /// Bits of RFC-0035 of Fuchsia: 16 of the connection, 32 of the method, 8 of the call. They
    /// show their origin, but calls of one method that are 256 apart share an id.
    Rfc0035,
}

const OF_BINDINGS: u8 = 0;
const DERIVED: u8 = 1;
const RFC_0035: u8 = 2;

static CHOSEN: AtomicU8 = AtomicU8::new(OF_BINDINGS);

pub(crate) fn choose(flow_ids: FlowIds) {
    let chosen = match flow_ids {
        FlowIds::OfBindings => OF_BINDINGS,
        FlowIds::Derived => DERIVED,
        FlowIds::Rfc0035 => RFC_0035,
    };
    CHOSEN.store(chosen, Ordering::Relaxed);
}

/// Returns the id of the flow of a request.
pub(crate) fn flow_id(call: &Call) -> u64 {
    match (CHOSEN.load(Ordering::Relaxed), call.own_flow_id) {
        (OF_BINDINGS | RFC_0035, Some(own)) => own,
        (RFC_0035, None) => rfc_0035(call.seed, fnv1a(call.method.full_name.as_bytes()), call.request_id),
        _ => call.flow_id(),
    }
}

/// Returns the id of the flow of a streamed reply. RFC-0035 has none of its own.
pub(crate) fn reply_flow_id(call: &Call, number: u64) -> u64 {
    hooks::flow_id(flow_id(call), number)
}

/// Returns the id of RFC-0035. It is never 0.
fn rfc_0035(connection: u64, method: u64, call: u64) -> u64 {
    let id = (connection & 0xffff) << 48 | (method & 0xffff_ffff) << 16 | call & 0xff;
    if id == 0 { 1 } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_has_its_id() {
        assert_eq!(rfc_0035(0x12345, 0xdead_beef, 0x1ff), 0x2345_dead_beef_00ff);
        assert_eq!(rfc_0035(0x10000, 1 << 32, 0x100), 1, "0 is replaced");
    }
}
