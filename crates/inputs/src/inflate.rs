//! Compressed data, whose size is bounded by that of its source.

use std::io::{self, BufRead, BufReader, Read};

use esatto_trace::{MAX_INFLATED_BYTES, MAX_WORK_RATIO, MIN_WORK};
use flate2::Crc;
use flate2::bufread::{DeflateDecoder, MultiGzDecoder};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// A stream of bytes.
pub(crate) type Bytes = Box<dyn BufRead>;

/// Bytes that are inflated at a time.
const BUFFER: usize = 1 << 16;

/// Returns how many bytes data of this size may inflate to.
pub(crate) fn allowed(stored_bytes: u64) -> u64 {
    MIN_WORK + stored_bytes.saturating_mul(MAX_WORK_RATIO).min(MAX_INFLATED_BYTES)
}

/// Inflates gzip, all of its members.
pub(crate) fn gzip(file: Bytes, allowed: u64) -> Bytes {
    buffered(Bounded { inner: MultiGzDecoder::new(file), left: allowed, allowed })
}

/// Inflates zstd, all of its frames.
pub(crate) fn zstd(file: Bytes, allowed: u64) -> Bytes {
    buffered(Bounded { inner: Zstd { file: Some(file), decoder: None }, left: allowed, allowed })
}

/// Inflates an entry of a zip archive, and checks it.
pub(crate) fn entry(file: Bytes, is_deflated: bool, announced: u64, crc: u32, allowed: u64) -> Bytes {
    let inner: Box<dyn Read> = if is_deflated {
        Box::new(Bounded { inner: DeflateDecoder::new(file), left: allowed, allowed })
    } else {
        Box::new(file)
    };
    buffered(Checked { inner, left: announced, announced, crc: Crc::new(), expected: crc })
}

fn buffered(inner: impl Read + 'static) -> Bytes {
    Box::new(BufReader::with_capacity(BUFFER, inner))
}

/// A stream that must not be longer than its source allows.
struct Bounded<R> {
    inner: R,
    left: u64,
    allowed: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left.max(1)).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.inner.read(&mut buffer[..wanted])?;
        if read as u64 > self.left {
            let why =
                format!("the compressed data inflates to more than {} bytes, too many for its size", self.allowed);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// A stream that must have the length and the sum that its archive announces.
struct Checked {
    inner: Box<dyn Read>,
    left: u64,
    announced: u64,
    crc: Crc,
    expected: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let damaged = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = self.inner.read(buffer)?;
        if read as u64 > self.left {
            return Err(damaged(format!("it is longer than the {} bytes that the archive announces", self.announced)));
        }
        self.left -= read as u64;
        self.crc.update(&buffer[..read]);
        if read == 0 && self.left > 0 {
            let there = self.announced - self.left;
            return Err(damaged(format!("it has {there} of the {} bytes that the archive announces", self.announced)));
        }
        if read == 0 && self.crc.sum() != self.expected {
            return Err(damaged("its checksum is not that of the archive".to_owned()));
        }
        Ok(read)
    }
}

/// Decoder of all frames. It refuses windows of more than 100 MiB.
struct Zstd {
    file: Option<Bytes>,
    decoder: Option<StreamingDecoder<Bytes, FrameDecoder>>,
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(decoder) = &mut self.decoder {
                let read = decoder.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                self.file = self.decoder.take().map(StreamingDecoder::into_inner);
            }
            let Some(mut file) = self.file.take() else { return Ok(0) };
            if file.fill_buf()?.is_empty() {
                return Ok(0);
            }
            self.decoder = Some(StreamingDecoder::new(file).map_err(io::Error::other)?);
        }
    }
}
