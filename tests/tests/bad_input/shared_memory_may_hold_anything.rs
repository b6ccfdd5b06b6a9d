//! A producer writes random bytes into its shared memory, and commits, patches and flushes chunks
//! that do not exist. Its own recording stays readable, and the bystander's is whole.

use esatto_tests::bystander::{self, Logged, Random};
use esatto_tests::wire::{self, Peer, Proto};
use esatto_tests::{Implementation, skip, tp};
use std::os::fd::{AsFd, BorrowedFd};

const CONFIG: &str = r#"
buffers { size_kb: 1024 fill_policy: RING_BUFFER }
data_sources { config { name: "hostile" } }
"#;

/// A number that is small, at a limit, or anything.
fn number(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => random.below(4),
        1 => random.below(300),
        2 => [0x7f, 0xff, 0x3ff, 0x7fff, 0xffff, 0x1_0000, u64::from(u32::MAX), u64::MAX][random.below(8) as usize],
        _ => random.number(),
    }
}

fn commit(random: &mut Random, target_buffer: u64) -> Proto {
    let mut request = Proto::new();
    for _ in 0..random.below(20) {
        let buffer = if random.below(4) == 0 { number(random) } else { target_buffer };
        let mut chunk = Proto::new().int(1, random.below(70)).int(2, random.below(16)).int(3, buffer);
        if random.below(8) == 0 {
            chunk = chunk.bytes(4, vec![0xab; random.below(64) as usize]);
        }
        request = request.message(1, &chunk);
    }
    for _ in 0..random.below(5) {
        let mut patches =
            Proto::new().int(1, target_buffer).int(2, random.below(8)).int(3, random.below(8)).int(5, random.below(2));
        for _ in 0..random.below(4) {
            let data = vec![0xff; if random.below(4) == 0 { number(random) % 64 } else { 4 } as usize];
            patches = patches.message(4, &Proto::new().int(1, number(random)).bytes(2, data));
        }
        request = request.message(2, &patches);
    }
    if random.below(10) == 0 {
        request = request.int(3, number(random));
    }
    request
}

/// Page headers of any kind before random bytes: mostly such that chunks count as complete.
fn scribble(random: &mut Random, memory: BorrowedFd<'_>, size: u64) {
    for page in 0..size / 4096 {
        let layout = random.below(8);
        let states = match random.below(3) {
            0 => 0,
            1 => 0x2AAA_AAAA, // all chunks complete
            _ => random.number() & 0x0fff_ffff,
        };
        let header = ((layout << 28) | states) as u32;
        let mut bytes: Vec<u8> = (0..4096).map(|_| if random.below(3) == 0 { random.byte() } else { 0 }).collect();
        bytes[..4].copy_from_slice(&header.to_le_bytes());
        bytes[4..8].fill(0);
        rustix::io::pwrite(memory, &bytes, page * 4096).expect("the memory can be written");
    }
}

fn wreak_havoc(harness: &esatto_tests::Harness, seed: u64) {
    let mut random = Random::new(seed);
    let mut peer = Peer::producer(harness);
    assert!(peer.call("InitializeConnection", &Proto::new().bytes(3, "hostile").int(4, 1)).success);
    let (commands, frame) = peer.call_frame("GetAsyncCommand", &Proto::new());
    peer.send(&frame);
    let source = Proto::new().bytes(1, "hostile").int(7, 1);
    assert!(peer.call("RegisterDataSource", &Proto::new().message(1, &source)).success);
    let mut recording = harness.record(Implementation::under_test(), &format!("hostile-{seed}"), CONFIG);

    let mut memory = None;
    let target_buffer = loop {
        let reply = peer.reply_to(commands);
        memory = memory.or_else(|| peer.take_descriptor());
        if let Some(start) = wire::last(&reply.body, 1) {
            break wire::int(wire::last(start, 2).expect("a config"), 2);
        }
    };
    let memory = memory.expect("setup_tracing brings a descriptor");
    let size = rustix::fs::fstat(&memory).expect("a size").st_size as u64;
    for writer in 1..8 {
        let _ = peer.call("RegisterTraceWriter", &Proto::new().int(1, writer).int(2, target_buffer));
    }
    for _ in 0..200 {
        scribble(&mut random, memory.as_fd(), size);
        let _ = peer.call("CommitData", &commit(&mut random, target_buffer));
    }
    assert!(peer.call("Sync", &Proto::new()).success, "the connection stands");
    // The last chunks are scraped after the producer has gone.
    scribble(&mut random, memory.as_fd(), size);
    drop(peer);
    let trace = recording.stop();
    // It is readable, with any content of the packets.
    let _ = tp::query(&trace, "select count(*) from stats");
}

#[test]
fn while_it_commits_and_when_it_dies() {
    skip(|| {
        bystander::attack(|harness, _| {
            for seed in 1..4 {
                wreak_havoc(harness, seed);
            }
            Logged::No
        })
    });
}
