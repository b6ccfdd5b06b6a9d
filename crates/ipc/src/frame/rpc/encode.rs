//! Encoder of frames with extensions. Each function appends one whole frame to `out`, or nothing if
//! it would be too large.

use esatto_protozero::wire::varint_size;

use super::{Features, InvokeMethod, WireStatus, field};
use crate::error::Error;
use crate::frame_size::{HEADER_LEN, MAX_FRAME};

/// Bytes of a status text that are sent if the whole status does not fit in a frame.
const CUT_TEXT: usize = 1024;

/// Asks for a service. Tells the extensions that this side knows, and the seed unless it is 0.
///
/// # Errors
///
/// [`Error::MessageTooLarge`], as for most functions of this module.
pub fn bind_service(
    out: &mut Vec<u8>,
    request_id: u64,
    service_name: &str,
    features: Features,
    trace_seed: u64,
) -> Result<(), Error> {
    let body = len_of_bytes(1, service_name.len());
    begin(out, request_id, 3, body, len_of_bind_extras(features, trace_seed))?;
    put_bytes(out, 1, service_name.as_bytes());
    put_bind_extras(out, features, trace_seed);
    Ok(())
}

/// Answers that there is no such service. The extensions hold for the connection nevertheless.
pub fn bind_service_failed(out: &mut Vec<u8>, request_id: u64, features: Features, trace_seed: u64) {
    begin(out, request_id, 4, 0, len_of_bind_extras(features, trace_seed)).expect("a few bytes");
    put_bind_extras(out, features, trace_seed);
}

/// Answers with the id of the service and its methods. The ids of methods are their positions, from
/// 1. Repeats the extensions and the seed that both sides know.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the names do not fit in a frame.
pub fn bind_service_reply<'m>(
    out: &mut Vec<u8>,
    request_id: u64,
    service_id: u32,
    methods: impl Iterator<Item = (u32, &'m str)> + Clone,
    features: Features,
    trace_seed: u64,
) -> Result<(), Error> {
    let info_len = |id: u32, name: &str| len_of_varint(1, u64::from(id)) + len_of_bytes(2, name.len());
    let list: usize = methods.clone().map(|(id, name)| len_of_bytes(3, info_len(id, name))).sum();
    let body = len_of_varint(1, 1) + len_of_varint(2, u64::from(service_id)) + list;
    begin(out, request_id, 4, body, len_of_bind_extras(features, trace_seed))?;
    put_varint(out, 1, 1);
    put_varint(out, 2, u64::from(service_id));
    for (id, name) in methods {
        put_header(out, 3, info_len(id, name));
        put_varint(out, 1, u64::from(id));
        put_bytes(out, 2, name.as_bytes());
    }
    put_bind_extras(out, features, trace_seed);
    Ok(())
}

/// Calls a method.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the arguments do not fit in a frame.
pub fn invoke_method(out: &mut Vec<u8>, request_id: u64, call: &InvokeMethod<'_>, has_fd: bool) -> Result<(), Error> {
    let timeout = if call.timeout_us == 0 { 0 } else { len_of_varint(field::TIMEOUT_US, call.timeout_us) };
    let window = call.window.map_or(0, |window| len_of_varint(field::WINDOW, u64::from(window)));
    let body = len_of_varint(1, u64::from(call.service_id))
        + len_of_varint(2, u64::from(call.method_id))
        + len_of_bytes(3, call.args.len())
        + len_of_varint(4, 1)
        + timeout
        + window;
    begin(out, request_id, 5, body, len_of_has_fd(has_fd))?;
    put_varint(out, 1, u64::from(call.service_id));
    put_varint(out, 2, u64::from(call.method_id));
    put_bytes(out, 3, call.args);
    put_varint(out, 4, u64::from(call.drop_reply));
    if call.timeout_us != 0 {
        put_varint(out, field::TIMEOUT_US, call.timeout_us);
    }
    if let Some(window) = call.window {
        put_varint(out, field::WINDOW, u64::from(window));
    }
    put_has_fd(out, has_fd);
    Ok(())
}

/// Answers a call that succeeded. The fields success, has_more and the body are always present,
/// even if empty.
///
/// # Errors
///
/// [`Error::MessageTooLarge`] if the body does not fit in a frame.
pub fn reply_ok(out: &mut Vec<u8>, request_id: u64, body: &[u8], has_more: bool, has_fd: bool) -> Result<(), Error> {
    begin(out, request_id, 6, 4 + len_of_bytes(3, body.len()), len_of_has_fd(has_fd))?;
    put_varint(out, 1, 1);
    put_varint(out, 2, u64::from(has_more));
    put_bytes(out, 3, body);
    put_has_fd(out, has_fd);
    Ok(())
}

/// Ends a stream without a last message.
pub fn end_of_stream(out: &mut Vec<u8>, request_id: u64) {
    begin(out, request_id, 6, 4, 0).expect("a few bytes");
    put_varint(out, 1, 1);
    put_varint(out, 2, 0);
}

/// Answers a call that failed. If the status does not fit in a frame, its details are left out and
/// its text is cut.
pub fn reply_status(out: &mut Vec<u8>, request_id: u64, status: &WireStatus<'_>) {
    if write_status(out, request_id, status).is_err() {
        let text = &status.text[..status.text.len().min(CUT_TEXT)];
        let cut = WireStatus { code: status.code, text, details: &[] };
        write_status(out, request_id, &cut).expect("a short text fits");
    }
}

fn write_status(out: &mut Vec<u8>, request_id: u64, status: &WireStatus<'_>) -> Result<(), Error> {
    #[expect(clippy::cast_sign_loss, reason = "negative numbers have ten bytes")]
    let code = i64::from(status.code) as u64;
    let bytes = |field, bytes: &[u8]| if bytes.is_empty() { 0 } else { len_of_bytes(field, bytes.len()) };
    let len = len_of_varint(1, code) + bytes(2, status.text) + bytes(3, status.details);
    begin(out, request_id, 6, 4 + len_of_bytes(field::STATUS, len), 0)?;
    put_varint(out, 1, 0);
    put_varint(out, 2, 0);
    put_header(out, field::STATUS, len);
    put_varint(out, 1, code);
    for (field, bytes) in [(2, status.text), (3, status.details)] {
        if !bytes.is_empty() {
            put_bytes(out, field, bytes);
        }
    }
    Ok(())
}

/// Tells the service that nobody waits for the call any more.
pub fn cancel(out: &mut Vec<u8>, request_id: u64) {
    begin(out, request_id, field::CANCEL, 0, 0).expect("a few bytes");
}

/// Gives a stream more room.
pub fn credit(out: &mut Vec<u8>, request_id: u64, bytes: u32) {
    begin(out, request_id, field::CREDIT, len_of_varint(1, u64::from(bytes)), 0).expect("a few bytes");
    put_varint(out, 1, u64::from(bytes));
}

fn len_of_bind_extras(features: Features, trace_seed: u64) -> usize {
    let features = if features.0 == 0 { 0 } else { len_of_varint(field::FEATURES, u64::from(features.0)) };
    features + if trace_seed == 0 { 0 } else { tag_size(field::TRACE_SEED) + 8 }
}

fn put_bind_extras(out: &mut Vec<u8>, features: Features, trace_seed: u64) {
    if features.0 != 0 {
        put_varint(out, field::FEATURES, u64::from(features.0));
    }
    if trace_seed != 0 {
        put_raw_varint(out, u64::from(field::TRACE_SEED << 3 | 1));
        out.extend_from_slice(&trace_seed.to_le_bytes());
    }
}

fn len_of_has_fd(has_fd: bool) -> usize {
    if has_fd { len_of_varint(field::HAS_FD, 1) } else { 0 }
}

fn put_has_fd(out: &mut Vec<u8>, has_fd: bool) {
    if has_fd {
        put_varint(out, field::HAS_FD, 1);
    }
}

/// Writes header, request id, and the beginning of member `field`. The caller writes its `body`
/// bytes next, and then `extras` bytes of further fields of the frame.
#[expect(clippy::cast_possible_truncation, reason = "at most `MAX_FRAME`")]
fn begin(out: &mut Vec<u8>, request_id: u64, field: u32, body: usize, extras: usize) -> Result<(), Error> {
    let payload = len_of_varint(2, request_id) + len_of_bytes(field, body) + extras;
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

fn tag_size(field: u32) -> usize {
    varint_size(u64::from(field << 3))
}

fn len_of_varint(field: u32, v: u64) -> usize {
    tag_size(field) + varint_size(v)
}

fn len_of_bytes(field: u32, len: usize) -> usize {
    tag_size(field) + varint_size(len as u64) + len
}

fn put_varint(out: &mut Vec<u8>, field: u32, v: u64) {
    put_raw_varint(out, u64::from(field << 3));
    put_raw_varint(out, v);
}

fn put_header(out: &mut Vec<u8>, field: u32, len: usize) {
    put_raw_varint(out, u64::from(field << 3 | 2));
    put_raw_varint(out, len as u64);
}

fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
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
