//! Encoder of frames. Each function appends one whole frame to `out`, or nothing if it would be too
//! large.
//!
//! Lengths are known before writing, so they are minimal varints, and nothing is moved afterwards.

use esatto_protozero::wire::varint_size;

use super::PeerIdentity;
use crate::error::Error;
use crate::frame_size::{HEADER_LEN, MAX_FRAME};

/// Asks for a service.
///
/// # Errors
///
/// [`Error::MessageTooLarge`], as for all functions of this module.
pub fn bind_service(out: &mut Vec<u8>, request_id: u64, service_name: &str) -> Result<(), Error> {
    let body = len_of_bytes(1, service_name.len());
    begin(out, request_id, 3, body)?;
    put_bytes(out, 1, service_name.as_bytes());
    Ok(())
}

/// Answers that there is no such service.
///
/// # Errors
///
/// [`Error::MessageTooLarge`], which cannot happen here.
pub fn bind_service_failed(out: &mut Vec<u8>, request_id: u64) -> Result<(), Error> {
    begin(out, request_id, 4, 0)
}

/// Answers with the id of the service and its methods. The ids of methods are their positions, from
/// 1.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the names do not fit in a frame.
pub fn bind_service_reply<'m>(
    out: &mut Vec<u8>,
    request_id: u64,
    service_id: u32,
    methods: impl Iterator<Item = (u32, &'m str)> + Clone,
) -> Result<(), Error> {
    let info_len = |id: u32, name: &str| len_of_varint(1, u64::from(id)) + len_of_bytes(2, name.len());
    let list: usize = methods.clone().map(|(id, name)| len_of_bytes(3, info_len(id, name))).sum();
    let body = len_of_varint(1, 1) + len_of_varint(2, u64::from(service_id)) + list;
    begin(out, request_id, 4, body)?;
    put_varint(out, 1, 1);
    put_varint(out, 2, u64::from(service_id));
    for (id, name) in methods {
        put_header(out, 3, info_len(id, name));
        put_varint(out, 1, u64::from(id));
        put_bytes(out, 2, name.as_bytes());
    }
    Ok(())
}

/// Calls a method.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the arguments do not fit in a frame.
pub fn invoke_method(
    out: &mut Vec<u8>,
    request_id: u64,
    service_id: u32,
    method_id: u32,
    args: &[u8],
    drop_reply: bool,
) -> Result<(), Error> {
    let body = len_of_varint(1, u64::from(service_id))
        + len_of_varint(2, u64::from(method_id))
        + len_of_bytes(3, args.len())
        + len_of_varint(4, 1);
    begin(out, request_id, 5, body)?;
    put_varint(out, 1, u64::from(service_id));
    put_varint(out, 2, u64::from(method_id));
    put_bytes(out, 3, args);
    put_varint(out, 4, u64::from(drop_reply));
    Ok(())
}

/// Answers a call that succeeded. The fields success, has_more and the body are always present,
/// even if empty.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the body does not fit in a frame, see [`reply_overhead`].
pub fn reply_ok(out: &mut Vec<u8>, request_id: u64, body: &[u8], has_more: bool) -> Result<(), Error> {
    begin(out, request_id, 6, 4 + len_of_bytes(3, body.len()))?;
    put_varint(out, 1, 1);
    put_varint(out, 2, u64::from(has_more));
    put_bytes(out, 3, body);
    Ok(())
}

/// Returns the largest number of bytes that [`reply_ok`] and [`invoke_method`] add to a body. A
/// body with so many bytes less than a frame fits.
pub const fn reply_overhead() -> usize {
    // Header 4; request id 1 + 10; message 1 + 3; three scalars 1 + 5 each; body 1 + 3.
    4 + 11 + 4 + 18 + 4
}

/// Answers a call that the method rejected. Writes has_more = false, and omits success.
pub fn reply_rejected(out: &mut Vec<u8>, request_id: u64) {
    put_small(out, request_id, &[0x32, 2, 0x10, 0]);
}

/// Answers a call that could not be made (unknown service or method, arguments that do not parse).
/// Writes success = false and nothing else.
pub fn reply_not_invoked(out: &mut Vec<u8>, request_id: u64) {
    put_small(out, request_id, &[0x32, 2, 0x08, 0]);
}

/// Answers a frame that is not a request.
pub fn request_error(out: &mut Vec<u8>, request_id: u64) {
    put_small(out, request_id, b"\x3a\x11\x0a\x0funknown request");
}

/// Tells the process for which a relay forwards. It has request id 0 and no answer.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the texts do not fit in a frame.
pub fn set_peer_identity(out: &mut Vec<u8>, identity: &PeerIdentity<'_>) -> Result<(), Error> {
    #[expect(clippy::cast_sign_loss, reason = "negative numbers have ten bytes")]
    let sign_extended = |v: i32| i64::from(v) as u64;
    let pid = identity.pid.map(sign_extended);
    let uid = identity.uid.map(sign_extended);
    let scalar = |field, v: Option<u64>| v.map_or(0, |v| len_of_varint(field, v));
    let text = |field, t: &[u8]| if t.is_empty() { 0 } else { len_of_bytes(field, t.len()) };
    let (hint, name) = (identity.machine_id_hint, identity.machine_name);
    begin(out, 0, 8, scalar(1, pid) + scalar(2, uid) + text(3, hint) + text(4, name))?;
    if let Some(pid) = pid {
        put_varint(out, 1, pid);
    }
    if let Some(uid) = uid {
        put_varint(out, 2, uid);
    }
    for (field, text) in [(3, hint), (4, name)] {
        if !text.is_empty() {
            put_bytes(out, field, text);
        }
    }
    Ok(())
}

/// Writes header, request id, and the beginning of member `field`. The caller writes its `body`
/// bytes next.
#[expect(clippy::cast_possible_truncation, reason = "at most `MAX_FRAME`")]
fn begin(out: &mut Vec<u8>, request_id: u64, field: u8, body: usize) -> Result<(), Error> {
    let payload = len_of_varint(2, request_id) + len_of_bytes(field, body);
    let len = HEADER_LEN + payload;
    if len > MAX_FRAME {
        return Err(Error::MessageTooLarge { len });
    }
    out.reserve(len);
    out.extend_from_slice(&(payload as u32).to_le_bytes());
    put_varint(out, 2, request_id);
    put_header(out, field, body);
    Ok(())
}

/// Writes a frame with a request id and a few fixed bytes.
#[expect(clippy::cast_possible_truncation, reason = "a few bytes")]
fn put_small(out: &mut Vec<u8>, request_id: u64, member: &[u8]) {
    let payload = len_of_varint(2, request_id) + member.len();
    out.extend_from_slice(&(payload as u32).to_le_bytes());
    put_varint(out, 2, request_id);
    out.extend_from_slice(member);
}

// Field numbers in this protocol are below 16: every tag is one byte.

fn len_of_varint(_field: u8, v: u64) -> usize {
    1 + varint_size(v)
}

fn len_of_bytes(_field: u8, len: usize) -> usize {
    1 + varint_size(len as u64) + len
}

fn put_varint(out: &mut Vec<u8>, field: u8, v: u64) {
    out.push(field << 3);
    put_raw_varint(out, v);
}

fn put_header(out: &mut Vec<u8>, field: u8, len: usize) {
    out.push(field << 3 | 2);
    put_raw_varint(out, len as u64);
}

fn put_bytes(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    put_header(out, field, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_raw_varint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push((v & 0x7f) as u8 | 0x80);
        v >>= 7;
    }
    out.push((v & 0x7f) as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_lengths_match_the_written_bytes() {
        for shift in 0..64 {
            for v in [(1_u64 << shift) - 1, 1 << shift, u64::MAX >> shift] {
                let mut out = Vec::new();
                put_raw_varint(&mut out, v);
                assert_eq!(out.len(), varint_size(v), "{v:#x}");
            }
        }
    }

    #[test]
    fn the_overhead_is_enough_for_the_worst_ids() {
        let body = vec![0; MAX_FRAME - reply_overhead()];
        let mut out = Vec::new();
        reply_ok(&mut out, u64::MAX, &body, true).unwrap();
        assert!(out.len() <= MAX_FRAME);
        out.clear();
        invoke_method(&mut out, u64::MAX, u32::MAX, u32::MAX, &body, true).unwrap();
        assert!(out.len() <= MAX_FRAME);
    }

    #[test]
    fn a_message_that_is_too_large_writes_nothing() {
        let mut out = vec![7];
        let e = reply_ok(&mut out, 1, &[0; MAX_FRAME], false).unwrap_err();
        assert!(matches!(e, Error::MessageTooLarge { len } if len > MAX_FRAME));
        assert_eq!(out, [7]);
    }
}
