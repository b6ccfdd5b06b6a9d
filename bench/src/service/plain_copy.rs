//! The floor of taking chunks in: the same chunks, written by another thread, copied into a ring of
//! the same size. No commit, no check, no record.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use bench_harness::thread_cpu_time;

use super::write::RING_BYTES;

/// A page, and the payload of its one chunk.
const PAGE_BYTES: usize = 4096;
const PAYLOAD: std::ops::Range<usize> = 16..PAGE_BYTES;
/// Default size of a producer's shared memory.
const DEFAULT_SMB_KB: usize = 256;

/// Bytes per second of CPU time of the thread that copies; memory is handed over in halves, as
/// producers do.
pub(super) fn plain_copy(producers: usize, smb_kb: usize, total_bytes: usize) -> f64 {
    let smb_bytes = if smb_kb == 0 { DEFAULT_SMB_KB } else { smb_kb } * 1024;
    let (full, take) = sync_channel::<Vec<u8>>(2 * producers);
    let (give_back, free) = sync_channel::<Vec<u8>>(2 * producers);
    for _ in 0..2 * producers {
        let half = vec![0; smb_bytes / 2];
        give_back.send(half).expect("the receiver lives");
    }
    let packet = [b'x'; 512];
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut left = total_bytes;
            while left > 0 {
                let Ok(mut half) = free.recv() else { return };
                half.chunks_mut(packet.len()).for_each(|to| to.copy_from_slice(&packet[..to.len()]));
                left = left.saturating_sub(half.len());
                if full.send(half).is_err() {
                    return;
                }
            }
        });
        let mut ring = vec![0; RING_BYTES];
        let mut at = 0;
        let mut spent = Duration::ZERO;
        let mut copied = 0;
        while let Ok(half) = take.recv() {
            let begin = thread_cpu_time();
            for page in half.chunks_exact(PAGE_BYTES) {
                let payload = &page[PAYLOAD];
                if at + payload.len() > ring.len() {
                    at = 0;
                }
                ring[at..at + payload.len()].copy_from_slice(payload);
                at += payload.len();
                copied += payload.len();
            }
            spent += thread_cpu_time() - begin;
            // The writer is done when the reader takes no more.
            let _ = give_back.send(half);
        }
        std::hint::black_box(&ring);
        copied as f64 / spent.as_secs_f64()
    })
}
