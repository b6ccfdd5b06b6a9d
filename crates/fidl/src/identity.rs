//! Identity of a connection, and ids of flows (`docs/spec/ipc-tracing.md` §15).

use esatto_ipc::observed::{Begin, Connection, Traced};

use crate::protocol::{MethodInfo, MethodKind};

/// Ordinal of the first message of a client: the number of the connection. It is in the range of
/// control messages, and no method has it.
pub(crate) const HELLO: u64 = 0xe5a7_7000_0000_0001;

/// Number of one message for hooks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    /// Transaction id, or the position among the messages of this kind and direction, from 1.
    pub(crate) value: u64,
    pub(crate) kind: MethodKind,
}

impl Number {
    /// Returns the number among all of its direction: those without a response are above all
    /// transaction ids.
    fn request_id(self) -> u64 {
        match self.kind {
            MethodKind::TwoWay => self.value,
            MethodKind::OneWay | MethodKind::Event => 1 << 32 | self.value,
        }
    }

    /// Returns the id of RFC-0035. Bits 8 and 9, which the RFC leaves unused, tell messages
    /// without a response apart.
    fn flow_id(self, connection: u64, ordinal: u64) -> u64 {
        let kind = match self.kind {
            MethodKind::TwoWay => 0,
            MethodKind::OneWay => 1,
            MethodKind::Event => 2,
        };
        let id = (connection & 0xffff) << 48 | (ordinal & 0xffff_ffff) << 16 | kind << 8 | self.value & 0xff;
        if id == 0 { 1 } else { id }
    }
}

fn begin<'a>(
    method: &'static MethodInfo,
    connection: &'a Connection,
    number: Number,
    message: &'a [u8],
    has_fd: bool,
    is_blocking: bool,
) -> Begin<'a> {
    Begin {
        connection,
        request_id: number.request_id(),
        message,
        has_fd,
        is_blocking,
        is_from_acceptor: number.kind == MethodKind::Event,
        own_flow_id: Some(number.flow_id(connection.seed(), method.ordinal)),
    }
}

/// Tells hooks that a message is about to be sent.
#[inline]
pub(crate) fn sending(
    method: &'static MethodInfo,
    connection: &Connection,
    number: Number,
    message: &[u8],
    has_fd: bool,
    is_blocking: bool,
) -> Traced {
    Traced::request(&method.traced, || begin(method, connection, number, message, has_fd, is_blocking))
}

/// Tells hooks that a message came.
#[inline]
pub(crate) fn received(
    method: &'static MethodInfo,
    connection: &Connection,
    number: Number,
    message: &[u8],
    has_fd: bool,
) -> Traced {
    Traced::invocation(&method.traced, || begin(method, connection, number, message, has_fd, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_two_way_methods_are_those_of_the_rfc() {
        let number = |value, kind| Number { value, kind };
        assert_eq!(number(0x1ff, MethodKind::TwoWay).flow_id(0x12345, 0xdead_beef), 0x2345_dead_beef_00ff);
        assert_eq!(number(5, MethodKind::OneWay).flow_id(0x12345, 0xdead_beef), 0x2345_dead_beef_0105);
        assert_eq!(number(5, MethodKind::Event).flow_id(0x12345, 0xdead_beef), 0x2345_dead_beef_0205);
        assert_eq!(number(0x100, MethodKind::TwoWay).flow_id(0, 0), 1, "0 is replaced");
    }
}
