//! A binary config may come from the future: the service echoes unknown fields into the trace.

use esatto_tests::bystander::{self, Logged};
use esatto_tests::skip;
use esatto_tests::wire::{self, Peer, Proto};

#[test]
fn and_echoed_into_the_trace() {
    skip(|| {
        bystander::attack(|harness, _| {
            let unknown = Proto::new().bytes(9999, "from the future");
            let source = Proto::new().bytes(1, "nobody").bytes(9998, "deep inside");
            let mut config =
                Proto::new().message(1, &Proto::new().int(1, 64)).message(2, &Proto::new().message(1, &source));
            config.0.extend_from_slice(&unknown.0);

            let mut peer = Peer::consumer(harness);
            let (enabled, frame) = peer.call_frame("EnableTracing", &Proto::new().message(1, &config));
            peer.send(&frame);
            assert!(peer.call("DisableTracing", &Proto::new()).success);
            assert!(peer.reply_to(enabled).success);
            let echo = packets(&mut peer).into_iter().find_map(|packet| wire::last(&packet, 33).map(<[u8]>::to_vec));
            let echo = echo.expect("a packet with the config");
            assert_eq!(wire::last(&echo, 9999), Some(&b"from the future"[..]));
            let source = wire::last(wire::last(&echo, 2).expect("a data source"), 1).expect("its config");
            assert_eq!(wire::last(source, 9998), Some(&b"deep inside"[..]));
            Logged::No
        })
    });
}

/// Reads the buffers of the peer's session.
fn packets(peer: &mut Peer) -> Vec<Vec<u8>> {
    let mut out = vec![Vec::new()];
    let mut reply = peer.call("ReadBuffers", &Proto::new());
    loop {
        for slice in wire::all(&reply.body, 2) {
            let packet = out.last_mut().expect("there is always one under way");
            packet.extend_from_slice(wire::last(slice, 1).unwrap_or_default());
            if wire::int(slice, 2) != 0 {
                out.push(Vec::new());
            }
        }
        if !reply.has_more {
            return out;
        }
        reply = peer.reply_to(reply.request_id);
    }
}
