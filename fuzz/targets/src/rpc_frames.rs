//! Both sides of the RPC library, without sockets.

use std::time::{Duration, Instant};

use esatto_ipc::FrameDecoder;
use esatto_ipc::callee::{Callee, CalleeEvent, SendError};
use esatto_ipc::caller::{Caller, CallerEvent, NewCall};
use esatto_ipc::connection::WriteQueue;
use esatto_ipc::frame::rpc::{Features, encode};
use esatto_ipc::service::{Kind, Service};
use esatto_ports::consumer_port::SERVICE;

/// Largest number of open calls.
const MAX_CALLS: usize = 8;

/// A stream of frames, from a client to a service and from a service to a client.
pub fn rpc_frames(bytes: &[u8]) {
    to_service(bytes);
    to_client(bytes);
}

/// Answers calls, some of them late and in several parts.
fn to_service(bytes: &[u8]) {
    let service = |index: usize| -> Option<&'static Service> { (index == 0).then_some(&SERVICE) };
    let mut callee = Callee::new(MAX_CALLS);
    let mut out = WriteQueue::default();
    let mut now = Instant::now();
    let mut streams = Vec::new();
    each_frame(bytes, |decoder| {
        let Ok(Some((frame, _))) = decoder.next_rpc_frame() else { return false };
        now += Duration::from_millis(1);
        if let CalleeEvent::Invoke(call) = callee.handle(&frame, &service, now, &mut out) {
            if call.method.kind == Kind::ServerStream {
                streams.push(call.key);
            } else if call.args.len() < 100 {
                let sent = callee.reply(call.key, call.args, &mut None, false, &mut out);
                assert!(matches!(sent, Ok(()) | Err(SendError::TooLarge { .. })));
            }
        }
        streams.retain(|&key| match callee.reply(key, b"", &mut None, true, &mut out) {
            Ok(()) => true,
            Err(SendError::Full) => !callee.has_room(key),
            Err(_) => false,
        });
        callee.expire(now, &mut out);
        while let Some(key) = callee.next_ended() {
            assert!(!callee.is_open(key));
        }
        assert!(callee.open_calls() <= MAX_CALLS && callee.next_deadline().is_none_or(|deadline| deadline > now));
        is_well_formed(&mut out);
        true
    });
}

/// Waits for replies to calls of all kinds.
fn to_client(bytes: &[u8]) {
    let mut caller = Caller::new(7);
    let mut out = WriteQueue::default();
    let mut now = Instant::now();
    let start = |caller: &mut Caller, out: &mut WriteQueue, now: Instant| {
        for method_id in [1, 4, 13] {
            let deadline = Some(now + Duration::from_millis(5));
            let call = NewCall {
                service: &SERVICE,
                method_id,
                args: b"",
                fd: &mut None,
                deadline,
                window: 100,
                is_blocking: false,
            };
            let _ = caller.start(call, now, out);
        }
    };
    start(&mut caller, &mut out, now);
    // The fuzzer need not guess this one.
    let mut bind = Vec::new();
    let methods = (1..).zip(SERVICE.methods.iter().map(|method| method.name));
    encode::bind_service_reply(&mut bind, 1, 1, methods, Features::ALL, 7).expect("the names fit");
    bind.extend_from_slice(bytes);
    each_frame(&bind, |decoder| {
        let Ok(Some((frame, len))) = decoder.next_rpc_frame() else { return false };
        now += Duration::from_millis(1);
        match caller.handle(&frame, len, now, &mut out) {
            CallerEvent::Reply { id, has_more: true, .. } if id % 2 == 0 => {
                caller.taken(id, len, frame.has_fd, &mut out)
            }
            CallerEvent::Failed { error, .. } => assert!(error.to_string().contains(error.method())),
            _ => {}
        }
        caller.expire(now, &mut out);
        while caller.next_failed().is_some() {}
        if caller.open_calls() == 0 {
            start(&mut caller, &mut out, now);
        }
        assert_eq!(caller.unsent_bytes(), 0);
        is_well_formed(&mut out);
        true
    });
}

/// Calls `handle` with a decoder until it returns false for each piece of the stream.
fn each_frame(bytes: &[u8], mut handle: impl FnMut(&mut FrameDecoder) -> bool) {
    let mut decoder = FrameDecoder::new();
    let mut at = 0;
    while at < bytes.len() {
        let taken = decoder.push(&bytes[at..]);
        at += taken;
        while handle(&mut decoder) {}
        if taken == 0 || (decoder.has_frame() && decoder.next_frame().is_err()) {
            return;
        }
    }
}

/// Checks that own frames are frames, and forgets them.
fn is_well_formed(out: &mut WriteQueue) {
    let mut frames = FrameDecoder::new();
    let mut at = 0;
    while at < out.buffer().len() {
        at += frames.push(&out.buffer()[at..]);
        while frames.next_rpc_frame().expect("own frames are not too large").is_some() {}
    }
    assert_eq!((frames.buffered(), frames.skipped()), (0, 0));
    out.buffer().clear();
}
