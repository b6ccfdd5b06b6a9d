//! Second stage: reads, hashes and compresses the files that the scanner found.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, BufWriter, Read, Write};
use std::thread;

use esatto::{Flow, counter, instant, slice};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::categories::{CRUNCH, DISK, PIPES, QUEUES};
use super::parcel::Parcel;
use super::queue::Queue;
use super::{MAX_FILE_BYTES, tracks};

const WORKERS: usize = 3;
const QUEUE_LIMIT: usize = 32;
/// Bytes that are hashed or compressed at a time. Each block is a slice.
const BLOCK_BYTES: usize = 32 * 1024;

/// Takes parcels from `input` until it ends, and sends them on with checksum and compressed
/// content.
pub(crate) fn run(input: impl Read + Send, out: impl Write + Send) -> io::Result<u64> {
    let (to_crunch, to_send) = (Queue::new(QUEUE_LIMIT), Queue::new(QUEUE_LIMIT));
    let bytes = AtomicU64::new(0);
    let work = || {
        while let Some((parcel, depth)) = to_crunch.pop() {
            counter!(QUEUES, &tracks::TO_CRUNCH, depth);
            if let Some(done) = crunch(parcel, &bytes) {
                match to_send.push(done) {
                    Some(depth) => counter!(QUEUES, &tracks::TO_SEND, depth),
                    None => to_crunch.close(),
                }
            }
        }
    };
    thread::scope(|scope| {
        let receiver = super::named(scope, "pipe-in", || super::receive(input, &to_crunch, &tracks::TO_CRUNCH))?;
        let sender = super::named(scope, "pipe-out", || send(&to_send, out))?;
        let workers =
            (0..WORKERS).map(|n| super::named(scope, &format!("crunch-{n}"), work)).collect::<io::Result<Vec<_>>>()?;
        for worker in workers {
            super::joined(worker);
        }
        to_send.close();
        let sent = super::joined(sender);
        super::joined(receiver)?;
        sent
    })?;
    Ok(bytes.into_inner())
}

/// Reads, hashes and compresses one file; `None` if it cannot be read.
fn crunch(mut parcel: Parcel, bytes: &AtomicU64) -> Option<Parcel> {
    let _crunch = slice!(
        CRUNCH,
        "crunch",
        file = parcel.id,
        path = &*parcel.path.to_string_lossy(),
        bytes = parcel.size_bytes,
        |e| e.flow(Flow::global(parcel.id))
    );
    let content = {
        let _read = slice!(DISK, "read file", bytes = parcel.size_bytes);
        read_bounded(&parcel)
    };
    let Some(content) = content else {
        instant!(DISK, "unreadable file", path = &*parcel.path.to_string_lossy());
        return None;
    };
    parcel.checksum = {
        let _hash = slice!(CRUNCH, "hash", bytes = content.len());
        let mut crc = Crc::new();
        for block in content.chunks(BLOCK_BYTES) {
            let _block = slice!(CRUNCH, "hash block", bytes = block.len());
            crc.update(block);
        }
        crc.sum()
    };
    parcel.content = {
        let _compress = slice!(CRUNCH, "compress", bytes = content.len());
        compress(&content)
    };
    let total = bytes.fetch_add(content.len() as u64, Ordering::Relaxed) + content.len() as u64;
    counter!(CRUNCH, &tracks::BYTES_CRUNCHED, total);
    if parcel.content.len() * 10 > content.len() * 9 {
        let ratio = parcel.content.len() as f64 / content.len() as f64;
        instant!(CRUNCH, "hardly compressible", file = parcel.id, ratio = ratio);
    }
    Some(parcel)
}

fn read_bounded(parcel: &Parcel) -> Option<Vec<u8>> {
    let file = std::fs::File::open(&parcel.path).ok()?;
    let mut content = Vec::with_capacity(usize::try_from(parcel.size_bytes).ok()?.min(MAX_FILE_BYTES));
    // The file may have grown since it was found.
    file.take(MAX_FILE_BYTES as u64).read_to_end(&mut content).ok()?;
    Some(content)
}

fn compress(content: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(content.len() / 2), Compression::fast());
    for block in content.chunks(BLOCK_BYTES) {
        let _block = slice!(CRUNCH, "compress block", bytes = block.len());
        // Writing into a Vec cannot fail.
        let _ = encoder.write_all(block);
    }
    encoder.finish().unwrap_or_default()
}

fn send(queue: &Queue<Parcel>, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    while let Some((parcel, depth)) = queue.pop() {
        counter!(QUEUES, &tracks::TO_SEND, depth);
        let _send =
            slice!(PIPES, "send", file = parcel.id, bytes = parcel.content.len(), |e| e.flow(Flow::global(parcel.id)));
        let sent = parcel.write_to(&mut out).and_then(|()| if depth == 0 { out.flush() } else { Ok(()) });
        if let Err(e) = sent {
            queue.close();
            return Err(e);
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_and_compressed_so_that_it_can_be_restored() {
        let path = std::env::current_exe().unwrap();
        let bytes = AtomicU64::new(0);
        let parcel = Parcel { id: 1, size_bytes: 10, path: path.clone(), ..Parcel::default() };
        let done = crunch(parcel, &bytes).unwrap();
        let mut restored = Vec::new();
        flate2::read::DeflateDecoder::new(done.content.as_slice()).read_to_end(&mut restored).unwrap();
        let original = std::fs::read(path).unwrap();
        assert_eq!(restored, original[..original.len().min(MAX_FILE_BYTES)]);
        assert_eq!(bytes.into_inner(), restored.len() as u64);
    }

    #[test]
    fn an_unreadable_file_is_left_out() {
        let parcel = Parcel { path: "/does/not/exist".into(), ..Parcel::default() };
        assert_eq!(crunch(parcel, &AtomicU64::new(0)), None);
    }
}
