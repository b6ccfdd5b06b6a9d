//! A service's view of the commits of one writer: patched chunks in order, and their packets.

use std::collections::BTreeMap;

use esatto_shm::{CommitRequest, Fragment, abi::ChunkFlags};

use crate::rig::{Rig, Taken};

#[derive(Default)]
pub(crate) struct Reader {
    chunks: BTreeMap<u32, Taken>,
    patches: usize,
}

impl Reader {
    /// Takes everything that was sent since the last call. Patches must be for chunks that came
    /// before or with them, and for bytes that are zero.
    pub(crate) fn receive(&mut self, rig: &Rig) {
        for commit in rig.commits() {
            self.receive_one(rig, &commit);
        }
    }

    /// Returns the readable packets, up to the first packet that is not whole or waits for a patch.
    pub(crate) fn packets(&self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let mut open: Option<Vec<u8>> = None;
        for (i, chunk) in self.chunks.values().enumerate() {
            assert_eq!(chunk.info.chunk_id, i as u32, "no chunk is missing");
            let flags = chunk.info.flags;
            if flags.contains(ChunkFlags::NEEDS_PATCHING) {
                return packets;
            }
            assert_eq!(flags.contains(ChunkFlags::FIRST_CONTINUES), open.is_some());
            let fragments = chunk.fragments();
            for (j, fragment) in fragments.iter().enumerate() {
                let last = j + 1 == fragments.len();
                match fragment {
                    Fragment::Data(data) => {
                        let mut packet = open.take().unwrap_or_default();
                        packet.extend_from_slice(data);
                        if last && flags.contains(ChunkFlags::LAST_CONTINUES) {
                            open = Some(packet);
                        } else if !packet.is_empty() {
                            packets.push(packet);
                        }
                    }
                    Fragment::Dropped => open = None,
                    Fragment::Invalid => panic!("chunk {i}"),
                }
            }
        }
        packets
    }

    /// Number of patches received.
    pub(crate) fn patches(&self) -> usize {
        self.patches
    }

    fn receive_one(&mut self, rig: &Rig, commit: &CommitRequest) {
        for entry in &commit.moves {
            let taken = rig.take(entry.page, entry.chunk);
            assert!(self.chunks.insert(taken.info.chunk_id, taken).is_none());
        }
        for entry in &commit.patches {
            let chunk = self.chunks.get_mut(&entry.chunk_id).expect("the chunk comes first");
            assert!(chunk.info.flags.contains(ChunkFlags::NEEDS_PATCHING));
            assert!(entry.patches.is_sorted_by_key(|p| p.offset));
            for patch in &entry.patches {
                let at = usize::from(patch.offset);
                assert_eq!(chunk.payload[at..at + 4], [0; 4]);
                assert_ne!(patch.data[0], 0);
                chunk.payload[at..at + 4].copy_from_slice(&patch.data);
                self.patches += 1;
            }
            if !entry.has_more_patches {
                chunk.info.flags = chunk.info.flags.without(ChunkFlags::NEEDS_PATCHING);
            }
        }
    }
}
