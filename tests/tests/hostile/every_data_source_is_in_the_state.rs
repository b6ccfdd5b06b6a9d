//! A producer registers data sources whose descriptors nearly fill a frame; the answer to
//! QueryServiceState has all of them, as the original's has.

use esatto_tests::raw::RawProducer;
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Harness, Implementation, Skip, bystander};

/// Bytes of the `track_event_descriptor`.
const LARGE: usize = (128 << 10) - 64;
const NAMES: [&str; 5] = ["large.0", "large.1", "large.2", "large.3", "large.4"];

/// The names of the registered data sources, and the size of each descriptor.
fn data_sources(harness: &Harness) -> Vec<(String, usize)> {
    let mut peer = Peer::consumer(harness);
    let (id, frame) = peer.call_frame("QueryServiceState", &Proto::new());
    peer.send(&frame);
    let mut found = Vec::new();
    loop {
        let reply = peer.reply_to(id);
        assert!(reply.success, "QueryServiceState: {reply:?}");
        let state = wire::last(&reply.body, 1).unwrap_or_default();
        for source in wire::all(state, 2) {
            let descriptor = wire::last(source, 1).expect("a descriptor");
            let name = String::from_utf8_lossy(wire::last(descriptor, 1).expect("a name")).into_owned();
            found.push((name, descriptor.len()));
        }
        if !reply.has_more {
            return found;
        }
    }
}

fn register_large(producer: &mut RawProducer) {
    for (name, id) in NAMES.into_iter().zip(1..) {
        let descriptor = Proto::new().bytes(1, name).int(7, id).bytes(6, vec![0; LARGE]);
        producer.register(&descriptor);
    }
}

fn check(harness: &Harness, expected_others: usize) {
    let mut producer = RawProducer::connect(harness, "large");
    register_large(&mut producer);
    let found = data_sources(harness);
    for name in NAMES {
        let size = found.iter().find(|(found, _)| found == name).map(|&(_, size)| size);
        assert!(size.is_some_and(|size| size > LARGE), "{name} is {size:?} of {found:?}");
    }
    assert_eq!(found.len(), NAMES.len() + expected_others);
}

#[test]
fn with_our_service() {
    bystander::watch(|harness, _, _| check(harness, 1));
}

#[test]
fn with_theirs() -> Result<(), Skip> {
    esatto_tests::Peer::Official.require()?;
    let harness = Harness::new();
    let _service = harness.service(Implementation::Theirs);
    check(&harness, 0);
    Ok(())
}
