//! Parser of IPCFrame and its parts. It is written by hand because every client pays for this
//! message with each commit.

use esatto_protozero::{Field, Fields, Value};

use super::{Frame, FrameBody, PeerIdentity};

/// Field numbers of IPCFrame and its parts (wire-protocol.md §3).
pub(super) mod field {
    pub(crate) const REQUEST_ID: u32 = 2;
    pub(crate) const BIND_SERVICE: u32 = 3;
    pub(crate) const BIND_SERVICE_REPLY: u32 = 4;
    pub(crate) const INVOKE_METHOD: u32 = 5;
    pub(crate) const INVOKE_METHOD_REPLY: u32 = 6;
    pub(crate) const REQUEST_ERROR: u32 = 7;
    pub(crate) const SET_PEER_IDENTITY: u32 = 8;
}

/// Method list of a BindServiceReply: pairs of id and name, which were checked when the frame was
/// decoded.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Methods<'a> {
    reply: &'a [u8],
}

impl<'a> Methods<'a> {
    /// Iterates over the entries in the order of the list, without invalid ones (id 0, empty name).
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        Fields::new(self.reply).filter_map(|f| match (f.id, f.value) {
            (3, Value::Bytes(info)) => method_info(info).filter(|&(id, name)| id != 0 && !name.is_empty()),
            _ => None,
        })
    }
}

pub(super) fn frame(payload: &[u8]) -> Option<Frame<'_>> {
    let mut request_id = 0;
    let mut body = FrameBody::Unknown;
    let well_formed = each_field(payload, |f| {
        match (f.id, f.value) {
            (field::REQUEST_ID, Value::Varint(v)) => request_id = v,
            (field::BIND_SERVICE, Value::Bytes(b)) => body = bind_service(b)?,
            (field::BIND_SERVICE_REPLY, Value::Bytes(b)) => body = bind_service_reply(b)?,
            (field::INVOKE_METHOD, Value::Bytes(b)) => body = invoke_method(b)?,
            (field::INVOKE_METHOD_REPLY, Value::Bytes(b)) => body = invoke_method_reply(b)?,
            (field::REQUEST_ERROR, Value::Bytes(b)) => body = request_error(b)?,
            (field::SET_PEER_IDENTITY, Value::Bytes(b)) => body = set_peer_identity(b)?,
            _ => {}
        }
        Some(())
    });
    well_formed.map(|()| Frame { request_id, body })
}

/// Calls `visit` with each field. Returns `None` if `visit` does, or if the bytes are malformed.
#[inline]
fn each_field<'a>(bytes: &'a [u8], mut visit: impl FnMut(Field<'a>) -> Option<()>) -> Option<()> {
    let mut fields = Fields::new(bytes);
    for f in fields.by_ref() {
        visit(f)?;
    }
    (!fields.is_malformed()).then_some(())
}

fn invoke_method(bytes: &[u8]) -> Option<FrameBody<'_>> {
    let (mut service_id, mut method_id, mut args, mut drop_reply) = (0, 0, &[][..], false);
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => service_id = low_32_bits(v),
            (2, Value::Varint(v)) => method_id = low_32_bits(v),
            (3, Value::Bytes(b)) => args = b,
            (4, Value::Varint(v)) => drop_reply = v != 0,
            _ => {}
        }
        Some(())
    })?;
    Some(FrameBody::InvokeMethod { service_id, method_id, args, drop_reply })
}

fn invoke_method_reply(bytes: &[u8]) -> Option<FrameBody<'_>> {
    let (mut success, mut has_more, mut body) = (false, false, &[][..]);
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => success = v != 0,
            (2, Value::Varint(v)) => has_more = v != 0,
            (3, Value::Bytes(b)) => body = b,
            _ => {}
        }
        Some(())
    })?;
    Some(FrameBody::InvokeMethodReply { success, has_more, body })
}

fn bind_service(bytes: &[u8]) -> Option<FrameBody<'_>> {
    let service_name = only_text(bytes)?;
    Some(FrameBody::BindService { service_name })
}

fn request_error(bytes: &[u8]) -> Option<FrameBody<'_>> {
    let error = only_text(bytes)?;
    Some(FrameBody::RequestError { error })
}

fn bind_service_reply(reply: &[u8]) -> Option<FrameBody<'_>> {
    let (mut success, mut service_id) = (false, 0);
    each_field(reply, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => success = v != 0,
            (2, Value::Varint(v)) => service_id = low_32_bits(v),
            (3, Value::Bytes(info)) => {
                method_info(info)?;
            }
            _ => {}
        }
        Some(())
    })?;
    Some(FrameBody::BindServiceReply { success, service_id, methods: Methods { reply } })
}

fn method_info(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (mut id, mut name) = (0, &[][..]);
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => id = low_32_bits(v),
            (2, Value::Bytes(b)) => name = b,
            _ => {}
        }
        Some(())
    })?;
    Some((id, name))
}

fn set_peer_identity(bytes: &[u8]) -> Option<FrameBody<'_>> {
    let mut identity = PeerIdentity::default();
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => identity.pid = Some(low_32_bits(v) as i32),
            (2, Value::Varint(v)) => identity.uid = Some(low_32_bits(v) as i32),
            (3, Value::Bytes(b)) => identity.machine_id_hint = b,
            (4, Value::Bytes(b)) => identity.machine_name = b,
            _ => {}
        }
        Some(())
    })?;
    Some(FrameBody::SetPeerIdentity(identity))
}

/// Parses a message that has only a text in field 1.
fn only_text(bytes: &[u8]) -> Option<&[u8]> {
    let mut text = &[][..];
    each_field(bytes, |f| {
        if let (1, Value::Bytes(b)) = (f.id, f.value) {
            text = b;
        }
        Some(())
    })?;
    Some(text)
}

/// Returns the low 32 bits: protobuf reads a varint into a 32-bit field by dropping the high bits.
fn low_32_bits(v: u64) -> u32 {
    (v & 0xffff_ffff) as u32
}
