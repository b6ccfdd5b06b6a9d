//! Comparison of every packet that comes out of a session with the expected one.

use std::collections::BTreeMap;
use std::io::Read as _;

use esatto_schema::trace_stats::BufferStatsReader;
use esatto_schema::{ReadBuffersResponseReader, TraceConfig, TracePacketReader, TraceStatsReader};
use esatto_service::PassEnd;
use esatto_service::{FileId, Output};

use crate::content::{self, Trailer};
use crate::model::{BufferModel, Identity, SessionModel};
use crate::pb::take_varint;
use crate::reference::{Expected, Stats};
use crate::relay::MachineModel;
use crate::world::{CallKind, SERVICE_UID, Tally, World, trace};

/// Bytes after which a pass for a consumer pauses: twice what `docs/spec/service.md §15` has.
const CONSUMER_THRESHOLD: usize = 64 * 1024;
/// The same for a file.
const FILE_THRESHOLD: usize = 1024 * 1024;
/// The first byte of the service's own packets: `trusted_uid`, which no producer may write.
const OWN: u8 = 0x18;

impl World {
    /// Checks one reading pass.
    pub(crate) fn verify_pass(
        &mut self,
        session_id: u64,
        end: PassEnd,
        outputs: &[Output],
        writes: &mut BTreeMap<FileId, usize>,
    ) {
        let pieces = self.pass_output(session_id, outputs, writes);
        self.check_has_more(session_id, end, outputs);
        let Some(session) = self.model.sessions.get_mut(&session_id) else {
            panic!("session {session_id} is read, which is not there");
        };
        let packets = match session.file {
            Some(_) => packets_of_file(&pieces),
            None => packets_of_replies(&pieces),
        };
        let packets = if is_compressed(&session.config) {
            packets.iter().flat_map(|packet| unpacked(packet)).collect()
        } else {
            packets
        };
        let total: usize = packets.iter().map(Vec::len).sum();
        let last = packets.last().map_or(0, Vec::len);
        let threshold = if session.file.is_some() { FILE_THRESHOLD } else { CONSUMER_THRESHOLD };
        // Compression and filters may make batches smaller.
        if end == PassEnd::More && !is_compressed(&session.config) && session.filter.is_none() {
            assert!(total >= threshold, "a pass pauses after {total} bytes");
        }
        // Packets of the service alone do not end a pass.
        let is_first = packets.iter().rev().skip(1).all(|packet| packet.first() == Some(&OWN));
        let is_due = end == PassEnd::More && total - last >= threshold;
        assert!(!is_due || is_first, "a pass goes on behind its threshold");
        if session.file.is_some() {
            session.last_write_ns = self.now_ns;
        }
        let mut pass = Pass {
            session,
            buffers: &mut self.model.buffers,
            identities: &self.model.identities,
            machines: &self.model.machines,
            tally: &mut self.tally,
            at: 0,
            has_begun: false,
            is_exhausted: false,
            discarded: (self.model.discarded_chunks, self.model.discarded_patches),
        };
        for packet in &packets {
            pass.take(packet);
        }
        match end {
            PassEnd::Exhausted => pass.assert_exhausted(),
            PassEnd::Refused => drop(pass.next_expected()),
            PassEnd::More | PassEnd::OutOfWork | PassEnd::NotBegun => {}
        }
        if matches!(end, PassEnd::Exhausted | PassEnd::More) {
            self.assert_machines_are_told(session_id);
        }
        let count = packets.len();
        trace!(self, "session {session_id} read: {count} packets, {total} bytes, {end:?}");
    }
}

impl World {
    /// Checks that the last reply of a pass tells correctly whether another pass follows.
    fn check_has_more(&self, session: u64, end: PassEnd, outputs: &[Output]) {
        let consumer = self.model.sessions.get(&session).filter(|session| session.file.is_none());
        let Some(consumer) = consumer.and_then(|session| session.consumer) else { return };
        let last = outputs.iter().rev().find_map(|output| match output {
            Output::Reply(reply) if reply.call.client.0 as usize == consumer => {
                self.calls.get(&reply.call).filter(|call| call.kind == CallKind::Read).map(|_| reply.has_more)
            }
            _ => None,
        });
        let has_more = matches!(end, PassEnd::More | PassEnd::OutOfWork);
        assert_eq!(last, Some(has_more), "a pass over session {session} ends {end:?}");
    }
}

/// Returns true if a pass is one compressed packet.
fn is_compressed(config: &TraceConfig) -> bool {
    config.compression_type.is_some() || config.compression.is_some()
}

/// Returns the packets of a compressed pass.
fn unpacked(packet: &[u8]) -> Vec<Vec<u8>> {
    let reader = TracePacketReader::parse(packet).expect("a compressed pass is a packet");
    let mut trace = Vec::new();
    if let Some(deflated) = reader.compressed_packets() {
        let mut decoder = flate2::read::ZlibDecoder::new(deflated);
        decoder.read_to_end(&mut trace).expect("compression: a whole zlib stream");
    } else {
        let frame = reader.zstd_compressed_packets().expect("compression: a pass is not compressed");
        trace = zstd::stream::decode_all(frame).expect("compression: a whole zstd frame");
    }
    packets_of_file(&[&trace])
}

/// Returns the packets of replies.
fn packets_of_replies(replies: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    let mut packet: Vec<u8> = Vec::new();
    for reply in replies {
        for slice in ReadBuffersResponseReader::new(reply).slices() {
            packet.extend_from_slice(slice.data().unwrap_or_default());
            if slice.last_slice_for_packet().unwrap_or(false) {
                packets.push(core::mem::take(&mut packet));
            }
        }
    }
    assert!(packet.is_empty(), "a pass ends within a packet");
    packets
}

fn packets_of_file(batches: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut packets = Vec::new();
    for batch in batches {
        let mut rest = *batch;
        while !rest.is_empty() {
            assert_eq!(rest[0], 0x0a, "files: a batch holds another field than packets");
            rest = &rest[1..];
            let len = take_varint(&mut rest).expect("files: the length of a packet is cut") as usize;
            assert!(len <= rest.len(), "files: a batch ends within a packet");
            packets.push(rest[..len].to_vec());
            rest = &rest[len..];
        }
    }
    packets
}

struct Pass<'a> {
    session: &'a mut SessionModel,
    buffers: &'a mut BTreeMap<u16, BufferModel>,
    identities: &'a BTreeMap<u16, Identity>,
    machines: &'a BTreeMap<u32, MachineModel>,
    tally: &'a mut Tally,
    /// The index of the buffer in the session.
    at: usize,
    has_begun: bool,
    is_exhausted: bool,
    discarded: (u64, u64),
}

struct Next {
    buffer: u16,
    packet: Expected,
    reported_loss: u32,
    tells_first: bool,
}

impl Pass<'_> {
    fn take(&mut self, packet: &[u8]) {
        if self.session.filter.is_some() {
            return self.take_filtered(packet);
        }
        if packet.first() == Some(&OWN) {
            return self.take_service_packet(packet);
        }
        assert!(!self.is_exhausted, "a packet of a producer comes behind the end");
        let Some(next) = self.next_expected() else {
            panic!("read exactly once: a packet comes that is not there (any more): {}", show(packet));
        };
        let len = next.packet.bytes.len();
        assert!(
            packet.get(..len) == Some(&next.packet.bytes[..]),
            "whole and in order: buffer {} must give {} of {:?}, and gives {}",
            next.buffer,
            show(&next.packet.bytes),
            next.packet.key,
            show(packet)
        );
        let trailer = Trailer::parse(&packet[len..]);
        let trailer = trailer.unwrap_or_else(|| panic!("trusted fields: {} behind a packet", show(&packet[len..])));
        let must = self.trailer_of(&next, trailer.sequence);
        assert_eq!(
            trailer,
            must,
            "trusted fields and loss marks: behind packet {} of {:?}",
            show(&next.packet.bytes),
            next.packet.key
        );
        assert_eq!(&packet[len..], must.encode(), "trusted fields: their bytes");
        self.check_content(&next, trailer.loss);
        self.tally.packets += 1;
        self.tally.bytes += packet.len() as u64;
    }

    /// Checks a packet of a session with a filter.
    fn take_filtered(&mut self, packet: &[u8]) {
        let reader = TracePacketReader::parse(packet).expect("filters: a packet is no message");
        let Some(sequence) = reader.trusted_packet_sequence_id().filter(|&id| id != 1) else {
            return self.take_service_packet(packet);
        };
        assert!(!self.is_exhausted, "a packet of a producer comes behind the end");
        let Some(next) = self.next_expected() else {
            panic!("read exactly once: a packet comes that is not there (any more): {}", show(packet));
        };
        let trailer = self.trailer_of(&next, sequence);
        let whole = [&next.packet.bytes[..], &trailer.encode()].concat();
        let filter = self.session.filter.as_mut().expect("a session with a filter");
        let must = filter.filter_to_vec(&whole).expect("filters: what the service takes is a message");
        assert!(packet == must, "filters: {} comes out as {}, not as {}", show(&whole), show(packet), show(&must));
        self.check_content(&next, trailer.loss);
        self.tally.packets += 1;
        self.tally.bytes += packet.len() as u64;
    }

    /// Returns the next valid packet of the session's buffers.
    fn next_expected(&mut self) -> Option<Next> {
        loop {
            let id = *self.session.buffers.get(self.at)?;
            let buffer = self.buffers.get_mut(&id)?;
            if !core::mem::replace(&mut self.has_begun, true) {
                buffer.reference.resume_read();
            }
            match buffer.reference.next_packet() {
                Some(packet) => match content::validate(&packet.bytes) {
                    Some((reported_loss, tells_first)) => {
                        return Some(Next { buffer: id, packet, reported_loss, tells_first });
                    }
                    None => self.session.invalid_packets += 1,
                },
                None => {
                    self.at += 1;
                    self.has_begun = false;
                }
            }
        }
    }

    fn assert_exhausted(&mut self) {
        if !core::mem::replace(&mut self.is_exhausted, true) {
            if let Some(next) = self.next_expected() {
                panic!("read exactly once: {:?} {} is not read", next.packet.key, show(&next.packet.bytes));
            }
        }
    }

    /// Returns the fields that must follow a packet with this sequence id.
    fn trailer_of(&mut self, next: &Next, sequence: u32) -> Trailer {
        let key = next.packet.key;
        let identity = &self.identities[&key.0];
        let id = *self.session.sequence_ids.entry(key).or_insert(sequence);
        let owner = *self.session.keys.entry(sequence).or_insert(key);
        assert_eq!((id, owner), (sequence, key), "trusted fields: sequence ids of {key:?}");
        assert!(id > 1, "trusted fields: sequence id {id} is the service's");
        let is_first = self.session.first_seen.insert(id) && !next.tells_first;
        let lost = next.packet.loss | u32::from(is_first);
        let loss = if lost == 0 { 0 } else { lost | next.reported_loss };
        Trailer { uid: identity.uid, sequence: id, pid: identity.pid, machine: identity.machine, loss }
    }

    /// Checks an honest producer's packet without the reference.
    fn check_content(&mut self, next: &Next, loss: u32) {
        let key = next.packet.key;
        let Some(tag) = self.identities[&key.0].honest else { return };
        let name = content::check(&next.packet.bytes);
        let name = name.unwrap_or_else(|why| panic!("whole: a packet of {key:?} is damaged: {why}"));
        assert_eq!((name.producer, name.writer), (tag, key.1), "isolation: a packet under another name");
        let buffer = self.buffers.get_mut(&next.buffer).expect("it was read");
        let last = buffer.last_read.insert(key, name.number);
        if last.is_none() && buffer.begins_anew {
            return;
        }
        let due = last.map_or(0, |last| last + 1);
        assert!(name.number >= due, "in order and once: {name:?} comes behind number {last:?}");
        let lost = name.number - due;
        assert!(lost == 0 || loss != 0, "loss marks: {lost} packets are missing before {name:?}");
        let is_early = buffer.reference.told_early.remove(&key);
        assert!(
            lost != 0 || next.packet.loss == 0 || is_early,
            "loss marks: nothing is missing before {name:?}, it says {loss}"
        );
        self.tally.losses += u64::from(lost);
    }

    fn take_service_packet(&mut self, bytes: &[u8]) {
        let packet = TracePacketReader::parse(bytes).expect("a packet of the service is a message");
        assert_eq!(packet.trusted_uid(), Some(SERVICE_UID));
        let is_of_sequence = packet.remote_clock_sync().is_none();
        assert_eq!(packet.trusted_packet_sequence_id(), is_of_sequence.then_some(1));
        self.session.machines_told.take(packet, self.machines);
        if let Some(stats) = packet.trace_stats() {
            self.assert_exhausted();
            self.check_stats(stats);
        } else if packet.service_event().is_some_and(|event| event.read_tracing_buffers_completed() == Some(true)) {
            self.assert_exhausted();
        } else if packet.trace_config().is_some() {
            self.session.configs_read += 1;
            assert_eq!(self.session.configs_read, 1, "the config is told twice");
        } else if packet.trace_uuid().is_some() {
            self.session.uuids_read += 1;
            assert_eq!(self.session.uuids_read, 1, "the uuid is told twice");
        } else if packet.trigger().is_some() {
            self.session.triggers_read += 1;
        }
    }

    fn check_stats(&self, stats: TraceStatsReader<'_>) {
        check_stats(self.session, self.buffers, stats, self.discarded);
    }
}

/// Compares statistics with the simulator's own counts.
pub(crate) fn check_stats(
    session: &SessionModel,
    buffers: &BTreeMap<u16, BufferModel>,
    stats: TraceStatsReader<'_>,
    (chunks, patches): (u64, u64),
) {
    assert_eq!(stats.invalid_packets().unwrap_or(0), session.invalid_packets, "counted once: invalid packets");
    assert_eq!(stats.chunks_discarded().unwrap_or(0), chunks, "counted once: chunks for no buffer");
    assert_eq!(stats.patches_discarded().unwrap_or(0), patches, "counted once: patches for no buffer");
    let mut of_service = stats.buffer_stats();
    for id in &session.buffers {
        let told = of_service.next().expect("statistics of every buffer");
        let reference = &buffers[id].reference;
        assert_eq!(told.buffer_size(), Some(reference.capacity() as u64));
        assert_eq!(told_stats(told), reference.stats, "counted once: buffer {id} of the session");
    }
    assert!(of_service.next().is_none(), "statistics of a buffer too many");
}

fn told_stats(told: BufferStatsReader<'_>) -> Stats {
    let or_0 = |value: Option<u64>| value.unwrap_or(0);
    Stats {
        bytes_written: or_0(told.bytes_written()),
        chunks_written: or_0(told.chunks_written()),
        chunks_rewritten: or_0(told.chunks_rewritten()),
        chunks_relocated: or_0(told.chunks_relocated()),
        chunks_overwritten: or_0(told.chunks_overwritten()),
        bytes_overwritten: or_0(told.bytes_overwritten()),
        chunks_read: or_0(told.chunks_read()),
        bytes_read: or_0(told.bytes_read()),
        padding_bytes_written: or_0(told.padding_bytes_written()),
        padding_bytes_cleared: or_0(told.padding_bytes_cleared()),
        out_of_order: or_0(told.chunks_committed_out_of_order()),
        write_wrap_count: or_0(told.write_wrap_count()),
        patches_succeeded: or_0(told.patches_succeeded()),
        patches_failed: or_0(told.patches_failed()),
        readaheads_succeeded: or_0(told.readaheads_succeeded()),
        readaheads_failed: or_0(told.readaheads_failed()),
        abi_violations: or_0(told.abi_violations()),
        chunks_discarded: or_0(told.chunks_discarded()),
        packet_loss: or_0(told.trace_writer_packet_loss()),
    }
}

/// Formats the beginning of a packet and its identity.
fn show(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(24)];
    format!("[{} bytes {head:02x?}… {:?}]", bytes.len(), content::check(bytes).ok())
}
