//! Configs that no service can serve: the consumer gets a text and may try again
//! (`docs/spec/service.md` §5).

use esatto_tests::bystander::{self, Logged};
use esatto_tests::skip;
use esatto_tests::wire::{self, Peer, Proto};

fn buffer(size_kb: u64) -> Proto {
    Proto::new().int(1, size_kb)
}

fn source(name: &str) -> Proto {
    Proto::new().message(1, &Proto::new().bytes(1, name))
}

fn enable(config: &Proto) -> Proto {
    Proto::new().message(1, config)
}

#[test]
fn and_the_consumer_may_try_again() {
    let one_buffer = || Proto::new().message(1, &buffer(256));
    let many = (0..200).fold(Proto::new(), |config, _| config.message(1, &buffer(4)));
    let twins = |name: &str| Proto::new().int(1, 256).bytes(7, name);
    let refused: Vec<(&str, Proto)> = vec![
        ("a data source without a buffer", Proto::new().message(2, &source("x"))),
        ("a buffer of size 0", Proto::new().message(1, &buffer(0))),
        ("a buffer without a size", Proto::new().message(1, &Proto::new())),
        ("a buffer of 4 TiB", Proto::new().message(1, &buffer(u64::from(u32::MAX)))),
        ("a buffer whose size overflows", Proto::new().message(1, &Proto::new().int(1, 4_194_303).int(8, 1))),
        ("200 buffers", many),
        ("8 days", one_buffer().int(3, 8 * 24 * 3600 * 1000)),
        ("a file without a file", one_buffer().int(8, 1)),
        ("two buffers of one name", Proto::new().message(1, &twins("twin")).message(1, &twins("twin"))),
        (
            "a buffer that does not exist",
            one_buffer().message(2, &Proto::new().message(1, &Proto::new().bytes(1, "x").int(2, 7))),
        ),
    ];
    skip(|| {
        bystander::attack(|harness, _| {
            let mut peer = Peer::consumer(harness);
            for (what, config) in refused {
                let reply = peer.call("EnableTracing", &enable(&config));
                assert!(reply.success && !reply.has_more, "{what}: {reply:?}");
                assert_eq!(wire::int(&reply.body, 1), 1, "{what}: disabled");
                assert!(wire::last(&reply.body, 3).is_some_and(|error| !error.is_empty()), "{what}: no reason");
            }
            // The same connection can still record.
            let (enabled, frame) = peer.call_frame("EnableTracing", &enable(&one_buffer()));
            peer.send(&frame);
            assert!(peer.call("DisableTracing", &Proto::new()).success);
            let reply = peer.reply_to(enabled);
            assert!(reply.success && wire::last(&reply.body, 3).is_none(), "{reply:?}");
            assert!(peer.call("FreeBuffers", &Proto::new()).success);
            Logged::Yes
        })
    });
}

#[test]
fn and_calls_without_a_session_are_rejected_or_empty() {
    skip(|| {
        bystander::attack(|harness, _| {
            let mut peer = Peer::consumer(harness);
            for (method, content) in [
                ("ReadBuffers", true),
                ("StartTracing", true),
                ("DisableTracing", true),
                ("FreeBuffers", true),
                ("ChangeTraceConfig", true),
                ("GetTraceStats", false),
                ("Attach", false),
                ("Detach", false),
            ] {
                let reply = peer.call(method, &Proto::new());
                assert_eq!(reply.success, content, "{method}: {reply:?}");
                assert!(!reply.has_more, "{method}: {reply:?}");
            }
            // An empty key gives no access to another session.
            assert!(!peer.call("Attach", &Proto::new().bytes(1, "")).success);
            assert!(!peer.call("Attach", &Proto::new().bytes(1, "no such key")).success);
            assert_eq!(peer.state().sessions_started, 1);
            Logged::No
        })
    });
}
