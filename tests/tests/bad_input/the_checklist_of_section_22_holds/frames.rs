//! Rows 1 to 12: frames and binds.

use esatto_tests::Harness;
use esatto_tests::wire::{self, MAX_PAYLOAD, Peer, Proto};

fn sockets(harness: &Harness) -> [Peer; 2] {
    [Peer::connect(&harness.producer_socket()), Peer::connect(&harness.consumer_socket())]
}

/// The frame of a bind.
fn bind(request_id: u64, name: &str) -> Vec<u8> {
    Proto::new().int(2, request_id).message(3, &Proto::new().bytes(1, name)).frame()
}

fn assert_answers(peer: &mut Peer) {
    peer.send(&bind(77, "NoSuchService"));
    assert_eq!(peer.read().expect("the connection stands").request_id, 77);
}

/// A call with drop_reply.
fn silent_call(method: u64, args: &Proto) -> Vec<u8> {
    let invoke = Proto::new().int(1, 1).int(2, method).message(3, args).int(4, 1);
    Proto::new().int(2, 55).message(5, &invoke).frame()
}

pub(super) fn row_22_01_frames_byte_by_byte(harness: &Harness, _: u16) {
    for (mut peer, name) in sockets(harness).into_iter().zip(["ProducerPort", "ConsumerPort"]) {
        let frames = [bind(1, name), bind(2, "NoSuchService"), bind(3, name)].concat();
        frames.iter().for_each(|byte| peer.send(&[*byte]));
        for id in 1..=3 {
            assert_eq!(peer.read().expect("an answer").request_id, id);
        }
    }
}

pub(super) fn row_22_02_a_frame_of_131072_bytes(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        let bind = Proto::new().int(2, 7).message(3, &Proto::new().bytes(1, "NoSuchService"));
        let padding = MAX_PAYLOAD as usize - bind.0.len() - 4;
        let frame = bind.bytes(1, vec![0; padding]).frame();
        assert_eq!(frame.len(), 131_072);
        peer.send(&frame);
        assert_eq!(peer.read().expect("an answer").request_id, 7);
    }
}

pub(super) fn row_22_03_a_frame_of_one_byte_more(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&131_069_u32.to_le_bytes());
        assert!(peer.is_closed(), "without an answer");
    }
}

pub(super) fn row_22_04_an_empty_frame(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&[0; 4]);
        assert_answers(&mut peer);
    }
}

pub(super) fn row_22_05_a_frame_that_is_no_protobuf(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&[5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff]);
        assert_answers(&mut peer);
    }
}

pub(super) fn row_22_06_bind_of_an_unknown_name(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&bind(1, "NoSuchService"));
        let frame = peer.read_frame().expect("an answer");
        let reply = wire::last(&frame, 4).expect("BindServiceReply");
        assert_eq!((wire::int(reply, 1), wire::int(reply, 2), wire::all(reply, 3).len()), (0, 0, 0));
    }
}

pub(super) fn row_22_07_bind_twice(harness: &Harness, _: u16) {
    for (mut peer, name) in sockets(harness).into_iter().zip(["ProducerPort", "ConsumerPort"]) {
        let [first, second] = [1, 2].map(|id| {
            peer.send(&bind(id, name));
            let frame = peer.read_frame().expect("an answer");
            assert_eq!(wire::int(&frame, 2), id);
            wire::last(&frame, 4).expect("BindServiceReply").to_vec()
        });
        assert_eq!(wire::int(&first, 1), 1);
        assert_eq!(first, second);
    }
}

pub(super) fn row_22_08_method_99_with_drop_reply(harness: &Harness, _: u16) {
    for mut peer in [Peer::producer(harness), Peer::consumer(harness)] {
        peer.send(&silent_call(99, &Proto::new()));
        let reply = peer.read().expect("an answer all the same");
        assert_eq!((reply.request_id, reply.success, reply.error), (55, false, None));
        assert_eq!(wire::last(&reply.frame, 6), Some(&[8, 0][..]), "success is written");
    }
}

pub(super) fn row_22_09_a_method_before_initialize_connection(harness: &Harness, _: u16) {
    let mut peer = Peer::producer(harness);
    for method in ["RegisterDataSource", "CommitData", "GetAsyncCommand", "Sync"] {
        let reply = peer.call(method, &Proto::new());
        assert!(!reply.success && !reply.has_more && reply.error.is_none(), "{method}: {reply:?}");
    }
}

pub(super) fn row_22_10_the_same_with_drop_reply(harness: &Harness, _: u16) {
    let mut peer = Peer::producer(harness);
    for method in 2..=12 {
        peer.send(&silent_call(method, &Proto::new()));
    }
    assert_answers(&mut peer);
}

pub(super) fn row_22_11_a_frame_with_padding_only(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        peer.send(&Proto::new().bytes(1, "padding").frame());
        let reply = peer.read().expect("an answer");
        assert!(reply.error.is_some() && reply.request_id == 0, "{reply:?}");
    }
}

pub(super) fn row_22_12_what_only_a_service_may_send(harness: &Harness, _: u16) {
    for mut peer in sockets(harness) {
        for field in [4, 6, 7] {
            peer.send(&Proto::new().int(2, 9).message(field, &Proto::new()).frame());
            let reply = peer.read().expect("an answer");
            assert!(reply.error.is_some() && reply.request_id == 9, "field {field}: {reply:?}");
        }
    }
}
