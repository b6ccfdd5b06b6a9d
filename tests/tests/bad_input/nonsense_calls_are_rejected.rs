//! Calls of methods that do not exist, at the wrong time, with the wrong arguments, or with
//! unexpected descriptors.

use esatto_tests::bystander::{self, Logged};
use esatto_tests::skip;
use esatto_tests::wire::{Peer, Proto};

#[test]
fn unknown_services_and_methods_are_rejected() {
    skip(|| {
        bystander::attack(|harness, _| {
            for mut peer in [Peer::producer(harness), Peer::consumer(harness)] {
                for (service, method) in [(1, 0), (1, 99), (1, u64::MAX), (0, 1), (77, 1), (u64::MAX, u64::MAX)] {
                    let (id, frame) = peer.raw_call_frame(service, method, &[]);
                    peer.send(&frame);
                    let reply = peer.reply_to(id);
                    assert!(!reply.success && reply.error.is_none(), "service {service}, method {method}: {reply:?}");
                }
                // Arguments that are no protobuf.
                let (id, frame) = peer.raw_call_frame(1, 1, &[0xff; 3]);
                peer.send(&frame);
                assert!(!peer.reply_to(id).success);
            }
            Logged::No
        })
    });
}

#[test]
fn a_service_of_the_other_socket_is_not_bound() {
    skip(|| {
        bystander::attack(|harness, _| {
            for (socket, name) in [
                (harness.producer_socket(), "ConsumerPort"),
                (harness.producer_socket(), "RelayPort"),
                (harness.producer_socket(), ""),
                (harness.consumer_socket(), "ProducerPort"),
            ] {
                let mut peer = Peer::connect(&socket);
                peer.send(&Proto::new().int(2, 9).message(3, &Proto::new().bytes(1, name)).frame());
                let frame = peer.read_frame().expect("an answer");
                let reply = esatto_tests::wire::last(&frame, 4).expect("BindServiceReply");
                assert_eq!(esatto_tests::wire::int(reply, 1), 0, "{name} is bound");
            }
            Logged::No
        })
    });
}

#[test]
fn flushes_of_nothing_and_unknown_instances_are_harmless() {
    skip(|| {
        bystander::attack(|harness, _| {
            let mut peer = Peer::producer(harness);
            assert!(peer.call("InitializeConnection", &Proto::new().bytes(3, "liar")).success);
            for id in [0, 1, 2, 3, u64::MAX] {
                for method in ["NotifyDataSourceStarted", "NotifyDataSourceStopped"] {
                    let _ = peer.call(method, &Proto::new().int(1, id));
                }
                let _ = peer.call("UnregisterTraceWriter", &Proto::new().int(1, id));
                let _ = peer.call("CommitData", &Proto::new().int(3, id));
            }
            let _ = peer.call("UnregisterDataSource", &Proto::new().bytes(1, "track_event"));
            assert!(peer.call("Sync", &Proto::new()).success);
            Logged::No
        })
    });
}
