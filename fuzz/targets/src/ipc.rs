//! Streams of frames.

use std::sync::Arc;

use esatto_ipc::host::{Host, HostEvent};
use esatto_ipc::{Family, FrameDecoder, Peer};

/// A stream of frames, decoded in two splits that must agree.
pub fn ipc_frames(bytes: &[u8]) {
    let run = |piece: usize| {
        let mut decoder = FrameDecoder::new();
        let mut digest = Vec::new();
        let mut at = 0;
        'stream: while at < bytes.len() {
            let end = bytes.len().min(at.saturating_add(piece));
            at += decoder.push(&bytes[at..end]);
            loop {
                match decoder.next_frame() {
                    Ok(Some(frame)) => digest.push(format!("{frame:?}")),
                    Ok(None) => break,
                    Err(error) => {
                        digest.push(error.to_string());
                        break 'stream;
                    }
                }
            }
        }
        (digest, decoder.skipped(), decoder.consumed())
    };
    assert_eq!(run(3), run(usize::MAX));
}

/// Frames of a client, handled by a host.
pub fn ipc_host(bytes: &[u8]) {
    let ports = [&esatto_ports::producer_port::SERVICE, &esatto_ports::relay_port::SERVICE];
    let mut host = Host::new(Arc::new(ports), Peer::remote(Family::Inet, "localhost".into()));
    let mut decoder = FrameDecoder::new();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        at += decoder.push(&bytes[at..]);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => {
                    out.clear();
                    if let Some(HostEvent::Invoke(call)) = host.handle(&frame, &mut out) {
                        host.reply_ok(call.request_id, call.args, true, &mut out)
                            .expect("a reply as large as its call");
                    }
                    // Each answer must itself be a stream of frames.
                    let mut replies = FrameDecoder::new();
                    assert_eq!(replies.push(&out), out.len());
                    while replies.next_frame().expect("own frames are not too large").is_some() {}
                    assert_eq!((replies.buffered(), replies.skipped()), (0, 0));
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}
