//! [`TestWriter`]: a writer for tests of data sources, whose packets can be read back.

use std::collections::BTreeMap;
use std::sync::Arc;

use esatto::producer::TraceWriter;
use esatto::producer::shm::abi::{ChunkFlags, PageSize};
use esatto::producer::shm::{
    Arbiter, ExhaustedPolicy, Fragment, Fragments, Memory, Outgoing, PrivateRegion, ServiceRegion,
};

/// Memory, and the service's side of it. It keeps all packets: 8 MiB.
pub(crate) struct TestWriter {
    arbiter: Arc<Arbiter>,
    service: ServiceRegion,
    /// Flags, number of fragments and payload of each chunk, by writer and number.
    chunks: BTreeMap<(u16, u32), (ChunkFlags, u16, Vec<u8>)>,
}

impl TestWriter {
    pub(crate) fn new() -> Self {
        let page_size = PageSize::new(32 * 1024).expect("a size of pages");
        let memory: Arc<dyn Memory> = Arc::new(PrivateRegion::new(8 << 20));
        let arbiter = Arbiter::with_options(memory.clone(), page_size, Arc::new(()), Default::default());
        let service = ServiceRegion::new(memory, page_size).expect("whole pages");
        Self { arbiter: arbiter.expect("whole pages"), service, chunks: BTreeMap::new() }
    }

    pub(crate) fn writer(&self) -> TraceWriter {
        self.arbiter.create_writer(1, ExhaustedPolicy::Drop)
    }

    /// Returns the encoded `TracePacket`s of all writers that were flushed or dropped, by writer.
    pub(crate) fn packets(&mut self) -> Vec<Vec<u8>> {
        while let Some(outgoing) = self.arbiter.poll_outgoing() {
            let Outgoing::Commit(request) = outgoing else { continue };
            for chunk in request.moves {
                let mut payload = Vec::new();
                let info = self.service.take_chunk(chunk.page, chunk.chunk, &mut payload).expect("a whole chunk");
                self.chunks.insert((chunk.writer_id, chunk.chunk_id), (info.flags, info.count, payload));
            }
            for patched in request.patches {
                let (_, _, payload) = self.chunks.get_mut(&(patched.writer_id, patched.chunk_id)).expect("taken");
                for patch in patched.patches {
                    let at = usize::from(patch.offset);
                    payload[at..at + patch.data.len()].copy_from_slice(&patch.data);
                }
            }
        }
        let mut packets: Vec<Vec<u8>> = Vec::new();
        let mut continues = false;
        for (flags, count, payload) in self.chunks.values() {
            assert_eq!(flags.contains(ChunkFlags::FIRST_CONTINUES), continues, "a lost chunk");
            for fragment in Fragments::new(payload, *count) {
                let Fragment::Data(data) = fragment else { panic!("{fragment:?}") };
                match packets.last_mut().filter(|_| continues) {
                    Some(packet) => packet.extend_from_slice(data),
                    None => packets.push(data.to_vec()),
                }
                continues = false;
            }
            continues = flags.contains(ChunkFlags::LAST_CONTINUES);
        }
        packets.retain(|packet| !packet.is_empty());
        packets
    }
}

#[test]
fn packets_of_many_chunks_come_back() {
    let mut test = TestWriter::new();
    let mut writer = test.writer();
    let long = "x".repeat(100_000);
    for text in ["a", &long, "b"] {
        let mut packet = writer.new_packet();
        packet.typed::<esatto_schema::TracePacketWriter<'_>>().for_testing().str(text);
    }
    drop(writer);
    let packets = test.packets();
    let texts = packets.iter().map(|packet| {
        let event = esatto_schema::TracePacketReader::new(packet).for_testing();
        event.and_then(|event| event.str()).map(<[u8]>::to_vec)
    });
    let texts: Vec<_> = texts.flatten().collect();
    assert_eq!(texts, [b"a".to_vec(), long.into_bytes(), b"b".to_vec()]);
}
