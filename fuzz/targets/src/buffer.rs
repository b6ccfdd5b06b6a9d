//! The service's central buffer.

use esatto_service::ChunkHeader;
use esatto_service::buffer::{CentralBuffer, Chunk, FillPolicy, Identity, Patch, ProducerId, WriterId};

use crate::script::Script;

/// A script for a central buffer: chunks with any content, repeated chunks, patches, reads, clones
/// and ids that are used again. The books of the buffer must balance after each step.
pub fn buffer(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let options = script.u8();
    let policy = if options & 1 == 0 { FillPolicy::Ring } else { FillPolicy::Discard };
    let Ok(mut buffer) = CentralBuffer::new(if options & 2 == 0 { 4 } else { 64 }, policy) else { return };
    let mut payload = Vec::new();
    while !script.is_empty() {
        match script.u8() % 8 {
            0..=3 => write(&mut buffer, &mut script, &mut payload),
            4 => amend(&mut buffer, &mut script),
            5 => {
                if let Some(mut clone) = buffer.try_clone() {
                    read(&mut clone, usize::MAX);
                }
            }
            6 => read(&mut buffer, usize::from(script.u8())),
            _ => read(&mut buffer, usize::MAX),
        }
        buffer.assert_consistent();
    }
}

fn write(buffer: &mut CentralBuffer, script: &mut Script<'_>, payload: &mut Vec<u8>) {
    let bits = script.u8();
    let producer = ProducerId(u16::from(bits & 1) + 1);
    let packets = script.u16();
    let header = ChunkHeader {
        writer_id: u16::from(bits >> 1 & 3),
        // Mostly a few ids around the wrap.
        chunk_id: u32::from(script.u8() & 0x1f).wrapping_sub(8) << if bits & 0x80 == 0 { 0 } else { 26 },
        count: packets & 0x3ff,
        flags: (packets >> 10 & 7) as u8,
    };
    let len = usize::from(script.u16()) % if bits & 0x40 == 0 { 600 } else { 70_000 };
    let fill = script.u8();
    payload.clear();
    payload.extend_from_slice(script.bytes(len.min(64)));
    payload.resize(len, fill);
    let (complete, identity) = (bits & 0x20 == 0, Identity::default());
    if complete && bits & 0x08 != 0 {
        buffer.copy_from(producer, identity, header, &payload.as_slice(), &mut Vec::new());
    } else {
        buffer.copy(&Chunk { producer, identity, header, complete, payload });
    }
}

fn amend(buffer: &mut CentralBuffer, script: &mut Script<'_>) {
    let bits = script.u8();
    let chunk_id = u32::from(script.u8() & 0x1f).wrapping_sub(8);
    let patch = Patch { offset: script.u16().into(), data: [script.u8(); 4] };
    let (producer, writer) = (ProducerId(u16::from(bits & 1) + 1), WriterId(u16::from(bits >> 1 & 3)));
    match bits >> 6 {
        0 | 1 => {
            buffer.patch(producer, writer, chunk_id, core::iter::once(patch), bits & 8 != 0);
        }
        2 => buffer.renew_writer(producer, writer),
        _ => buffer.retire_producer(producer),
    }
}

fn read(buffer: &mut CentralBuffer, limit: usize) {
    buffer.begin_read();
    for _ in 0..limit {
        let Some(packet) = buffer.next_packet() else { return };
        assert!(packet.size_bytes() > 0, "an empty packet is returned");
    }
}
