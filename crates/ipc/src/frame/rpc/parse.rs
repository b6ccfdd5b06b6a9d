//! Parser of frames with their extensions.

use esatto_protozero::{Field, Fields, Value};

use super::{Features, InvokeMethod, RpcBody, RpcFrame, WireStatus, field};
use crate::frame::{Frame, FrameBody};

/// Parses a frame. Messages without extensions are left to the plain parser.
pub(super) fn frame(payload: &[u8]) -> Option<RpcFrame<'_>> {
    let mut frame =
        RpcFrame { request_id: 0, body: RpcBody::Unknown, trace_seed: 0, features: Features::default(), has_fd: false };
    let mut is_plain = false;
    each_field(payload, |f| {
        match (f.id, f.value) {
            (2, Value::Varint(v)) => frame.request_id = v,
            (5, Value::Bytes(b)) => frame.body = invoke_method(b)?,
            (6, Value::Bytes(b)) => frame.body = invoke_method_reply(b)?,
            (3 | 4 | 7 | 8, Value::Bytes(_)) => is_plain = true,
            (field::TRACE_SEED, Value::Fixed64(v)) => frame.trace_seed = v,
            (field::FEATURES, Value::Varint(v)) => frame.features = Features(low_32_bits(v)),
            (field::CANCEL, Value::Bytes(_)) => frame.body = RpcBody::Cancel,
            (field::CREDIT, Value::Bytes(b)) => frame.body = RpcBody::Credit { bytes: credit(b)? },
            (field::HAS_FD, Value::Varint(v)) => frame.has_fd = v != 0,
            _ => {}
        }
        Some(())
    })?;
    if is_plain {
        frame.body = match Frame::parse(payload)?.body {
            FrameBody::BindService { service_name } => RpcBody::BindService { service_name },
            FrameBody::BindServiceReply { success, service_id, methods } => {
                RpcBody::BindServiceReply { success, service_id, methods }
            }
            FrameBody::RequestError { error } => RpcBody::RequestError { error },
            FrameBody::SetPeerIdentity(identity) => RpcBody::SetPeerIdentity(identity),
            // Two members of the oneof in one frame.
            _ => frame.body,
        };
    }
    Some(frame)
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

fn invoke_method(bytes: &[u8]) -> Option<RpcBody<'_>> {
    let mut call = InvokeMethod::default();
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => call.service_id = low_32_bits(v),
            (2, Value::Varint(v)) => call.method_id = low_32_bits(v),
            (3, Value::Bytes(b)) => call.args = b,
            (4, Value::Varint(v)) => call.drop_reply = v != 0,
            (field::TIMEOUT_US, Value::Varint(v)) => call.timeout_us = v,
            (field::WINDOW, Value::Varint(v)) => call.window = Some(low_32_bits(v)),
            _ => {}
        }
        Some(())
    })?;
    Some(RpcBody::InvokeMethod(call))
}

fn invoke_method_reply(bytes: &[u8]) -> Option<RpcBody<'_>> {
    let (mut success, mut has_more, mut body, mut status) = (false, false, None, None);
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => success = v != 0,
            (2, Value::Varint(v)) => has_more = v != 0,
            (3, Value::Bytes(b)) => body = Some(b),
            (field::STATUS, Value::Bytes(b)) => status = Some(wire_status(b)?),
            _ => {}
        }
        Some(())
    })?;
    Some(RpcBody::InvokeMethodReply { success, has_more, body, status })
}

fn wire_status(bytes: &[u8]) -> Option<WireStatus<'_>> {
    let mut status = WireStatus::default();
    each_field(bytes, |f| {
        match (f.id, f.value) {
            (1, Value::Varint(v)) => status.code = low_32_bits(v) as i32,
            (2, Value::Bytes(b)) => status.text = b,
            (3, Value::Bytes(b)) => status.details = b,
            _ => {}
        }
        Some(())
    })?;
    Some(status)
}

fn credit(bytes: &[u8]) -> Option<u32> {
    let mut credit = 0;
    each_field(bytes, |f| {
        if let (1, Value::Varint(v)) = (f.id, f.value) {
            credit = low_32_bits(v);
        }
        Some(())
    })?;
    Some(credit)
}

/// Returns the low 32 bits: protobuf reads a varint into a 32-bit field by dropping the high bits.
fn low_32_bits(v: u64) -> u32 {
    (v & 0xffff_ffff) as u32
}
