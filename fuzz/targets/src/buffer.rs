//! The central buffer: chunks and patches in any order, with anything in them.

use esatto_service::ChunkHeader;
use esatto_service::buffer::{CentralBuffer, Chunk, FillPolicy, Identity, Patch, ProducerId, WriterId};

use crate::script::Script;

/// Chunks of few writers, patches, reading and cloning.
pub fn buffer(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let policy = if script.u8() % 2 == 0 { FillPolicy::Ring } else { FillPolicy::Discard };
    let size_kb = u32::from(script.u8() % 16) + 1;
    let mut buffer = CentralBuffer::new(size_kb, policy).expect("a small buffer");
    while !script.is_empty() {
        match script.u8() % 8 {
            0..=3 => copy(&mut buffer, &mut script),
            4 => patch(&mut buffer, &mut script),
            5 => read(&mut buffer, script.u8().into()),
            6 => read(&mut buffer, usize::MAX),
            _ => {
                if let Some(mut copy) = buffer.try_clone() {
                    read(&mut copy, usize::MAX);
                }
            }
        }
        assert!(buffer.writers().count() <= bytes.len());
    }
    read(&mut buffer, usize::MAX);
    buffer.begin_read();
    assert!(buffer.next_packet().is_none(), "all was read");
}

fn copy(buffer: &mut CentralBuffer, script: &mut Script<'_>) {
    let (producer, writer) = who(script);
    let header = ChunkHeader {
        writer_id: writer.0,
        chunk_id: chunk_id(script),
        count: script.u16() & 0x3ff,
        flags: script.u8() & 7,
    };
    let complete = script.u8() % 4 != 0;
    let payload = script.string();
    buffer.copy(&Chunk { producer, identity: Identity::default(), header, complete, payload });
}

fn patch(buffer: &mut CentralBuffer, script: &mut Script<'_>) {
    let (producer, writer) = who(script);
    let chunk = chunk_id(script);
    let more = script.u8() % 2 == 0;
    let count = script.u8() % 8;
    let patches: Vec<Patch> =
        (0..count).map(|_| Patch { offset: script.u16().into(), data: script.u32().to_le_bytes() }).collect();
    buffer.patch(producer, writer, chunk, patches.into_iter(), more);
}

fn read(buffer: &mut CentralBuffer, at_most: usize) {
    let capacity = buffer.size_bytes();
    buffer.begin_read();
    let mut total = 0;
    for _ in 0..at_most {
        let Some(packet) = buffer.next_packet() else { break };
        let size = packet.slices().map(<[u8]>::len).sum::<usize>();
        assert_eq!(size, packet.size_bytes());
        total += size.max(1);
        assert!(total <= capacity, "no more comes out than fits in");
    }
}

fn who(script: &mut Script<'_>) -> (ProducerId, WriterId) {
    let byte = script.u8();
    (ProducerId(u16::from(byte & 1) + 1), WriterId(u16::from(byte >> 1 & 3)))
}

/// Near 0, near the wrap, or anything.
fn chunk_id(script: &mut Script<'_>) -> u32 {
    let byte = script.u8();
    match byte & 0xc0 {
        0 | 0x40 => u32::from(byte & 0x3f),
        0x80 => u32::MAX - u32::from(byte & 0x3f),
        _ => script.u32(),
    }
}
