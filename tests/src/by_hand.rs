//! A producer of which every byte is known: it speaks the protocol by hand and writes packets that
//! are given.

use std::os::fd::AsFd;

use crate::wire::{self, Peer, Proto};
use crate::{Harness, Implementation, wait_until};

/// Records `packets` as those of one writer.
///
/// The config must have a data source `source` and one buffer. When everything is committed the
/// producer goes, and then the recording is stopped. Returns the trace.
///
/// # Panics
///
/// The service does not do its part.
#[must_use]
pub fn record(
    service: Implementation,
    consumer: Implementation,
    config: &str,
    source: &str,
    packets: &[Vec<u8>],
) -> Vec<u8> {
    let harness = Harness::new();
    let service = harness.service(service);
    let mut peer = Peer::producer(&harness);
    assert!(peer.call("InitializeConnection", &Proto::new().bytes(3, source).int(4, 1)).success);
    let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
    peer.send(&frame);
    let descriptor = Proto::new().bytes(1, source).int(4, 1);
    assert!(peer.call("RegisterDataSource", &Proto::new().message(1, &descriptor)).success);
    let mut recording = harness.record(consumer, "trace", config);

    let (mut memory, mut buffer) = (None, None);
    while buffer.is_none() {
        let reply = peer.reply_to(commands);
        memory = memory.or_else(|| peer.take_descriptor());
        // Set up or started: both name the buffer.
        for command in [1, 6] {
            if let Some(start) = wire::last(&reply.body, command) {
                buffer = wire::last(start, 2).map(|config| wire::int(config, 2));
            }
        }
    }
    let (memory, buffer) = (memory.expect("memory comes with the first command"), buffer.expect("a buffer"));
    assert!(peer.call("RegisterTraceWriter", &Proto::new().int(1, 1).int(2, buffer)).success);
    for (id, chunk) in chunks(packets).into_iter().enumerate() {
        let page =
            [&0x1000_0003u32.to_le_bytes(), &[0; 4][..], &(id as u32).to_le_bytes(), &[1, 0], &chunk[..]].concat();
        rustix::io::pwrite(memory.as_fd(), &page, 0).expect("the memory can be written");
        let commit = Proto::new().message(1, &Proto::new().int(1, 0).int(2, 0).int(3, buffer));
        assert!(peer.call("CommitData", &commit).success);
    }
    drop(peer);
    wait_until("the producer is gone", || harness.state().producers.is_empty().then_some(()));
    let trace = recording.stop();
    drop(service);
    std::fs::read(trace).expect("a trace")
}

/// Packets in chunks of a page: the number of packets, then each with its size in front.
fn chunks(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const ROOM: usize = 4096 - 8 - 8;
    let mut chunks = Vec::new();
    let (mut count, mut content) = (0u16, Vec::new());
    for packet in packets {
        let size = Proto::new().bytes(1, packet).0.split_off(1);
        if content.len() + size.len() > ROOM {
            chunks.push([&count.to_le_bytes()[..], &content].concat());
            (count, content) = (0, Vec::new());
        }
        count += 1;
        content.extend_from_slice(&size);
    }
    chunks.push([&count.to_le_bytes()[..], &content].concat());
    // Pages are reused: their old content must not be read as packets.
    chunks.iter_mut().for_each(|chunk| chunk.resize(ROOM + 2, 0));
    chunks
}
