//! Reader that splits a trace file into packets.
//!
//! A file is a `Trace` message: each packet is preceded by the tag of field 1 and its length
//! (`docs/spec/service.md` §18). The whole file may be compressed by gzip or zstd. A packet may
//! hold other packets in compressed form (`docs/spec/service.md` §22); the reader returns them in
//! its place.
//!
//! The reader allocates nothing because of an announced length: buffers grow with the bytes in the
//! file. A small file may inflate to a large trace, in one step or in several. The reader stops
//! when it has cost more than a file of its size may cost; see [`MAX_WORK_RATIO`].

use std::io::{self, BufRead, BufReader, Chain, Cursor, Read};

use esatto_protozero::{
    Fields,
    wire::{self, MAX_MESSAGE_LENGTH, WireType},
};
use esatto_schema::trace_packet::field;
use flate2::bufread::{MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::error::{Error, Place};

/// First byte of each packet: a length-delimited field 1.
const PACKET_TAG: u8 = 0x0a;
/// Longest packet: the longest protobuf message that writers of the format can make.
pub const MAX_PACKET_BYTES: u64 = MAX_MESSAGE_LENGTH as u64;
/// Bytes to which one file may inflate, with all levels of compression added up. Beyond it, reading
/// ends with [`Error::InflatesTooMuch`].
pub const MAX_INFLATED_BYTES: u64 = 1 << 36;
/// Work that each byte of a file may cause by inflating.
///
/// A unit of work is an inflated byte. Opening a compressed packet costs `CONTAINER_WORK` more, and
/// returning a packet costs `PACKET_WORK` more. Real traces inflate by a factor of 5 to 50. Beyond
/// the bound, reading ends with [`Error::TooMuchWork`].
pub const MAX_WORK_RATIO: u64 = 256;
/// Work that every file may cause, however small it is: short traces can be very regular.
pub const MIN_WORK: u64 = 16 << 20;
/// Work of opening a compressed packet: it creates the state of a decompressor.
const CONTAINER_WORK: u64 = 8 << 10;
/// Work of a packet in addition to its bytes.
const PACKET_WORK: u64 = 32;
/// Largest nesting of compressed packets. The service nests none.
pub const MAX_COMPRESSED_NESTING: usize = 4;
/// First bytes of a file that is compressed with zstd.
const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";
/// A varint of 64 bits has at most this many bytes.
const MAX_VARINT_BYTES: usize = 10;
/// Bytes that identify the kind of a file.
const SNIFFED_BYTES: u64 = 8;
/// Memory that is kept for the next packet.
const SPARE_BYTES: usize = 1 << 16;

/// One `TracePacket`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Its encoding.
    pub bytes: Vec<u8>,
    /// Position of its tag.
    pub place: Place,
}

/// Returns the packets of a trace in memory.
pub fn packets(trace: &[u8]) -> PacketReader<&[u8]> {
    PacketReader::new(trace)
}

/// Iterator over the packets of a trace, gzipped or not.
///
/// An error inside a compressed packet ends that packet. Any other error ends the iteration.
/// Everything before the error has been returned.
#[derive(Debug)]
pub struct PacketReader<R: Read> {
    /// The file and the open compressed packets, innermost last. Empty after the end.
    layers: Vec<Layer<R>>,
    containers: u64,
    inflated: u64,
    /// Work caused by compressed data, in the units of [`MAX_WORK_RATIO`].
    work: u64,
    gzipped: bool,
    /// Memory of a packet that is no longer needed.
    spare: Vec<u8>,
    /// Bytes of the trace that were read when it was closed.
    bytes: u64,
    /// The file, after an error that ended the reading.
    left: Option<Layer<R>>,
    /// Bytes that the file takes where it is stored, if they are not those that are read.
    stored: Option<u64>,
}

#[derive(Debug)]
struct Layer<R: Read> {
    source: Source<R>,
    at: u64,
    /// Position in the file of the compressed packet whose content this is.
    container: Option<u64>,
}

#[derive(Debug)]
enum Source<R: Read> {
    New(R),
    Plain(Whole<R>),
    Gzip(BufReader<MultiGzDecoder<Whole<R>>>),
    ZstdFile(Box<BufReader<ZstdFile<Whole<R>>>>),
    Zlib(BufReader<ZlibDecoder<Cursor<Vec<u8>>>>),
    Zstd(Box<BufReader<ZstdDecoder>>),
}

/// Decoder of a whole file: of all its frames.
struct ZstdFile<R: BufRead>(Option<StreamingDecoder<R, FrameDecoder>>);

impl<R: BufRead> ZstdFile<R> {
    fn new(file: R) -> io::Result<Self> {
        Ok(Self(Some(StreamingDecoder::new(file).map_err(io::Error::other)?)))
    }
}

impl<R: BufRead> Read for ZstdFile<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(decoder) = &mut self.0 else { return Ok(0) };
            let read = decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut file) = self.0.take().map(StreamingDecoder::into_inner) else { return Ok(0) };
            if file.fill_buf()?.is_empty() {
                return Ok(0);
            }
            *self = Self::new(file)?;
        }
    }
}

impl<R: BufRead> core::fmt::Debug for ZstdFile<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ZstdFile")
    }
}

/// Decoder of one frame. It refuses windows of more than 100 MiB.
struct ZstdDecoder(StreamingDecoder<Cursor<Vec<u8>>, FrameDecoder>);

impl Read for ZstdDecoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl core::fmt::Debug for ZstdDecoder {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ZstdDecoder")
    }
}

/// The file, preceded by the first bytes that were already read.
type Whole<R> = BufReader<Chain<Cursor<Vec<u8>>, Counted<R>>>;

/// The file, and how many of its bytes were read.
#[derive(Debug)]
struct Counted<R> {
    file: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}

impl<R: Read> PacketReader<R> {
    /// Reads packets from a file. The reader has its own buffers.
    pub fn new(file: R) -> Self {
        let layers = vec![Layer { source: Source::New(file), at: 0, container: None }];
        let (spare, left, stored) = (Vec::new(), None, None);
        Self { layers, containers: 0, inflated: 0, work: 0, gzipped: false, spare, bytes: 0, left, stored }
    }

    /// Sets how many bytes the file takes where it is stored, if the caller inflates it. The work
    /// that the file may cause depends on them.
    #[must_use]
    pub fn with_stored_bytes(mut self, bytes: Option<u64>) -> Self {
        self.stored = bytes;
        self
    }

    /// Returns how many compressed packets were found so far.
    pub fn compressed_packets(&self) -> u64 {
        self.containers
    }

    /// Returns whether the file as a whole is gzipped. Known after the first packet.
    pub fn is_gzipped(&self) -> bool {
        self.gzipped
    }

    /// Returns how many bytes compressed packets have inflated to so far.
    pub fn inflated_bytes(&self) -> u64 {
        self.inflated
    }

    /// Takes back a packet, so that the next one need not allocate memory.
    pub(crate) fn recycle(&mut self, packet: Packet) {
        if packet.bytes.capacity() <= SPARE_BYTES {
            self.spare = packet.bytes;
        }
    }

    /// Returns the work that compressed data has caused so far, in the units of [`MAX_WORK_RATIO`].
    pub fn work(&self) -> u64 {
        self.work
    }

    /// Returns the size of the trace, once it was read to its end without an error. If the file is
    /// compressed as a whole, this is the size of its content.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns how many bytes of the file follow the position up to which it was read, if reading
    /// ended with an error. `None` if there was no such error, or the number is not known: the file
    /// is compressed as a whole, fails, or is longer than [`MAX_INFLATED_BYTES`].
    pub fn count_unread_bytes(&mut self) -> Option<u64> {
        let Source::Plain(file) = self.left.take()?.source else { return None };
        let mut rest = file.take(MAX_INFLATED_BYTES);
        let bytes = io::copy(&mut rest, &mut io::sink()).ok()?;
        (rest.limit() > 0).then_some(bytes)
    }

    /// Returns the work that the part of the file that was read may cause.
    fn allowed_work(&self) -> u64 {
        let read = || self.layers.first().map_or(0, |layer| layer.source.file_bytes());
        let file_bytes = self.stored.unwrap_or_else(read);
        MIN_WORK + file_bytes.saturating_mul(MAX_WORK_RATIO).min(MAX_INFLATED_BYTES)
    }

    /// Reads the first bytes of the file and finds its kind.
    fn open(&mut self) -> Result<(), Error> {
        let Some(Layer { source: Source::New(_), .. }) = self.layers.last() else { return Ok(()) };
        let Some(Layer { source: Source::New(mut file), .. }) = self.layers.pop() else { return Ok(()) };
        let mut head = Vec::new();
        let place = Place { offset: 0, inside: None };
        (&mut file).take(SNIFFED_BYTES).read_to_end(&mut head).map_err(|source| Error::Io { place, source })?;
        let foreign = foreign(&head);
        let head_is_zstd = head.starts_with(ZSTD_MAGIC);
        let first = head.first().copied();
        self.gzipped = head.starts_with(b"\x1f\x8b");
        let counted = Counted { file, bytes: head.len() as u64 };
        let whole = BufReader::with_capacity(1 << 16, Cursor::new(head).chain(counted));
        let source = if head_is_zstd {
            let decoder = ZstdFile::new(whole).map_err(|error| Error::Inflate { place, why: error.to_string() })?;
            Source::ZstdFile(Box::new(BufReader::with_capacity(1 << 16, decoder)))
        } else if self.gzipped {
            Source::Gzip(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(whole)))
        } else {
            match (first, foreign) {
                (None, _) => return Err(Error::Empty),
                (Some(first), Some(what)) => return Err(Error::Foreign { what, first }),
                _ => Source::Plain(whole),
            }
        };
        self.layers.push(Layer { source, at: 0, container: None });
        Ok(())
    }

    /// Reads one packet of the innermost layer; `None` at its end.
    fn read_packet(&mut self) -> Result<Option<Packet>, Error> {
        self.open()?;
        let (inflated, allowed) = (self.inflated, self.allowed_work());
        let Some(layer) = self.layers.last_mut() else { return Ok(None) };
        let start = layer.at;
        let place = layer.place(start);
        let is_compressed = layer.is_compressed();
        if is_compressed && inflated + start > MAX_INFLATED_BYTES {
            return Err(Error::InflatesTooMuch { place, limit: MAX_INFLATED_BYTES });
        }
        if self.work > allowed {
            return Err(Error::TooMuchWork { place, limit: allowed });
        }
        let announced = match layer.short_header() {
            Some(announced) => announced,
            None => match layer.header(place)? {
                Some(announced) => announced,
                None => return Ok(None),
            },
        };
        if announced > MAX_PACKET_BYTES {
            return Err(Error::TooLarge { place, announced, limit: MAX_PACKET_BYTES });
        }
        let mut bytes = core::mem::take(&mut self.spare);
        bytes.clear();
        let left = if is_compressed { allowed - self.work } else { u64::MAX };
        let wanted = announced.min(left);
        let read = match layer.source.fill_buf() {
            // Nearly all packets are in the buffer.
            Ok(buffered) if buffered.len() as u64 >= wanted => {
                let length = usize::try_from(wanted).unwrap_or(usize::MAX);
                bytes.extend_from_slice(&buffered[..length]);
                layer.source.consume(length);
                Ok(length)
            }
            _ => (&mut layer.source).take(wanted).read_to_end(&mut bytes),
        };
        let there = bytes.len() as u64;
        layer.at += there;
        if is_compressed {
            self.work += layer.at - start + PACKET_WORK;
        }
        read.map_err(|error| layer.failure(error))?;
        if there < announced {
            if there == left {
                return Err(Error::TooMuchWork { place, limit: allowed });
            }
            return Err(Error::Torn { place, announced, there });
        }
        Ok(Some(Packet { bytes, place }))
    }

    /// Opens a compressed packet. Returns a packet that is not compressed.
    fn open_packet(&mut self, packet: Packet) -> Result<Option<Packet>, Error> {
        if !may_be_compressed(&packet.bytes) {
            return Ok(Some(packet));
        }
        let compressed = Fields::new(&packet.bytes)
            .find(|f| matches!(f.id, field::COMPRESSED_PACKETS | field::ZSTD_COMPRESSED_PACKETS));
        let Some(compressed) = compressed else { return Ok(Some(packet)) };
        self.containers += 1;
        self.work += CONTAINER_WORK;
        let place = packet.place;
        if self.layers.len() > MAX_COMPRESSED_NESTING {
            return Err(Error::NestedTooDeep { place, limit: MAX_COMPRESSED_NESTING });
        }
        let content = Cursor::new(compressed.as_bytes().to_vec());
        let source = if compressed.id == field::ZSTD_COMPRESSED_PACKETS {
            let inside = Place { offset: place.offset, inside: Some(0) };
            let decoder = StreamingDecoder::new(content)
                .map_err(|error| Error::Inflate { place: inside, why: error.to_string() })?;
            Source::Zstd(Box::new(BufReader::with_capacity(1 << 16, ZstdDecoder(decoder))))
        } else {
            Source::Zlib(BufReader::with_capacity(1 << 16, ZlibDecoder::new(content)))
        };
        self.layers.push(Layer { source, at: 0, container: Some(place.offset) });
        Ok(None)
    }

    /// Leaves the innermost layer.
    fn close(&mut self) {
        let Some(layer) = self.layers.pop() else { return };
        if layer.container.is_none() {
            self.bytes = layer.at;
        }
        if layer.is_compressed() {
            self.inflated += layer.at;
        }
    }
}

impl<R: Read> Iterator for PacketReader<R> {
    type Item = Result<Packet, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.layers.is_empty() {
            match self.read_packet() {
                Ok(Some(packet)) => match self.open_packet(packet) {
                    Ok(Some(packet)) => return Some(Ok(packet)),
                    Ok(None) => {}
                    // A compressed packet that cannot be opened is skipped.
                    Err(error) => return Some(Err(error)),
                },
                Ok(None) => self.close(),
                Err(error @ (Error::InflatesTooMuch { .. } | Error::TooMuchWork { .. })) => {
                    self.layers.truncate(1);
                    self.left = self.layers.pop();
                    return Some(Err(error));
                }
                Err(error) if self.layers.len() == 1 => {
                    self.left = self.layers.pop().filter(|_| !matches!(error, Error::Io { .. }));
                    return Some(Err(error));
                }
                Err(error) => {
                    self.close();
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

/// Returns whether a packet has the first byte of the tag of compressed packets somewhere. This is
/// a much faster look than one at each field.
fn may_be_compressed(packet: &[u8]) -> bool {
    const fn first_byte(number: u32) -> u8 {
        wire::tag(number, WireType::LengthDelimited).to_le_bytes()[0] | 0x80
    }
    const TAGS: [u8; 2] = [first_byte(field::COMPRESSED_PACKETS), first_byte(field::ZSTD_COMPRESSED_PACKETS)];
    let (Some(first), Some(last)) = (packet.first_chunk(), packet.last_chunk()) else {
        return packet.iter().any(|byte| TAGS.contains(byte));
    };
    // Eight bytes at once. The last ones may be looked at twice.
    let has_tag = |word: &[u8; 8]| TAGS.iter().any(|&tag| has_byte(u64::from_ne_bytes(*word), tag));
    has_tag(first) || has_tag(last) || packet[8..].chunks_exact(8).filter_map(<[u8]>::first_chunk).any(has_tag)
}

/// Returns whether a word has a byte of this value.
fn has_byte(word: u64, byte: u8) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    let zeros = word ^ (ONES * u64::from(byte));
    zeros.wrapping_sub(ONES) & !zeros & (ONES << 7) != 0
}

impl<R: Read> Layer<R> {
    fn is_compressed(&self) -> bool {
        matches!(self.source, Source::Gzip(_) | Source::ZstdFile(_) | Source::Zlib(_) | Source::Zstd(_))
    }

    fn place(&self, at: u64) -> Place {
        match self.container {
            Some(container) => Place { offset: container, inside: Some(at) },
            None => Place { offset: at, inside: None },
        }
    }

    /// Reads the tag of a packet and its length, if they are in the buffer and the length takes one
    /// or two bytes, as nearly always.
    fn short_header(&mut self) -> Option<u64> {
        let (announced, length) = match *self.source.buffered() {
            [PACKET_TAG, length @ ..0x80, ..] => (u64::from(length), 2),
            [PACKET_TAG, low, high @ ..0x80, ..] => (u64::from(low & 0x7f) | u64::from(high) << 7, 3),
            _ => return None,
        };
        self.source.consume(length);
        self.at += length as u64;
        Some(announced)
    }

    /// Reads the tag of a packet, and returns its length; `None` at the end.
    fn header(&mut self, place: Place) -> Result<Option<u64>, Error> {
        let Some(tag) = self.byte()? else { return Ok(None) };
        if tag != PACKET_TAG {
            return Err(Error::Garbage { place, byte: tag });
        }
        let mut announced = 0u64;
        for index in 0.. {
            let byte = self.byte()?.ok_or(Error::TornHeader { place })?;
            if index + 1 == MAX_VARINT_BYTES && byte > 1 {
                return Err(Error::TooLarge { place, announced: u64::MAX, limit: MAX_PACKET_BYTES });
            }
            announced |= u64::from(byte & 0x7f) << (7 * index);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(Some(announced))
    }

    fn byte(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match self.source.fill_buf() {
                Ok(buffer) => {
                    let Some(&byte) = buffer.first() else { return Ok(None) };
                    self.source.consume(1);
                    self.at += 1;
                    return Ok(Some(byte));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failure(error)),
            }
        }
    }

    fn failure(&self, error: io::Error) -> Error {
        let place = self.place(self.at);
        if self.is_compressed() {
            Error::Inflate { place, why: error.to_string() }
        } else {
            Error::Io { place, source: error }
        }
    }
}

impl<R: Read> Source<R> {
    /// Returns the bytes that are in the buffer already.
    fn buffered(&self) -> &[u8] {
        match self {
            Self::New(_) => &[],
            Self::Plain(inner) => inner.buffer(),
            Self::Gzip(inner) => inner.buffer(),
            Self::ZstdFile(inner) => inner.buffer(),
            Self::Zlib(inner) => inner.buffer(),
            Self::Zstd(inner) => inner.buffer(),
        }
    }

    /// Returns how much of the file has been read, if this is the file.
    fn file_bytes(&self) -> u64 {
        let whole = match self {
            Self::Plain(whole) => whole,
            Self::Gzip(decoder) => decoder.get_ref().get_ref(),
            Self::ZstdFile(decoder) => match &decoder.get_ref().0 {
                Some(decoder) => decoder.get_ref(),
                None => return u64::MAX,
            },
            Self::New(_) | Self::Zlib(_) | Self::Zstd(_) => return 0,
        };
        whole.get_ref().get_ref().1.bytes
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::New(_) => Ok(0),
            Self::Plain(inner) => inner.read(buffer),
            Self::Gzip(inner) => inner.read(buffer),
            Self::ZstdFile(inner) => inner.read(buffer),
            Self::Zlib(inner) => inner.read(buffer),
            Self::Zstd(inner) => inner.read(buffer),
        }
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::New(_) => Ok(&[]),
            Self::Plain(inner) => inner.fill_buf(),
            Self::Gzip(inner) => inner.fill_buf(),
            Self::ZstdFile(inner) => inner.fill_buf(),
            Self::Zlib(inner) => inner.fill_buf(),
            Self::Zstd(inner) => inner.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::New(_) => {}
            Self::Plain(inner) => inner.consume(amount),
            Self::Gzip(inner) => inner.consume(amount),
            Self::ZstdFile(inner) => inner.consume(amount),
            Self::Zlib(inner) => inner.consume(amount),
            Self::Zstd(inner) => inner.consume(amount),
        }
    }
}

const JSON: &str = "it looks like JSON, perhaps a trace of Chrome's older format";

/// Returns the kind that a file seems to be, if it does not begin like a trace.
fn foreign(head: &[u8]) -> Option<&'static str> {
    let known: &[(&[u8], &str)] = &[
        (b"{", JSON),
        (b"\x7fELF", "it is an ELF binary"),
        (b"PK\x03\x04", "it is a zip archive, perhaps a bugreport with traces in it"),
        (b"\xfd7zXZ", "it is compressed with xz"),
        (b"BZh", "it is compressed with bzip2"),
        (b"# tracer", "it is the kernel's ftrace text"),
        (b"PERFILE2", "it is a recording of perf"),
        (b"<", "it looks like XML or HTML, perhaps a systrace"),
    ];
    if head.first() == Some(&PACKET_TAG) {
        return None;
    }
    let found = known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| *what);
    // Sections of other formats begin with a bracket and a name.
    let in_list = head.iter().find(|byte| **byte != b'[' && !byte.is_ascii_whitespace());
    let is_list = head.first() == Some(&b'[') && in_list.is_none_or(|byte| !byte.is_ascii_alphabetic());
    let found = found.or_else(|| is_list.then_some(JSON));
    let text = || head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    found.or_else(|| Some(if text() { "it looks like a text" } else { "it is of an unknown kind" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_compressed_packets_are_seen_anywhere() {
        let tags = [field::COMPRESSED_PACKETS, field::ZSTD_COMPRESSED_PACKETS]
            .map(|number| wire::tag(number, WireType::LengthDelimited).to_le_bytes()[0] | 0x80);
        for length in 0..40 {
            // Neighbours of the tags are none.
            for filling in [0, 0x7f, 0xff, tags[0] - 1, tags[0] + 1, tags[1] - 1, tags[1] + 1] {
                let mut packet = vec![filling; length];
                assert!(tags.contains(&filling) || !may_be_compressed(&packet), "{length} of {filling}");
                for at in 0..length {
                    for tag in tags {
                        packet[at] = tag;
                        assert!(may_be_compressed(&packet), "{tag} at {at} of {length}");
                    }
                    packet[at] = filling;
                }
            }
        }
    }
}
